"""``tallybook log``: verify the log of a book."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from tallybook.cli import output
from tallybook.layout import find_book, require_book

if TYPE_CHECKING:
    from tallybook.log.verify import Problem, Verification

HELP = "verify the log of a book"
INCOMPLETE = 4


def add(parser: argparse.ArgumentParser) -> None:
    """The action and its options."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="verify")
    verifying = actions.add_parser("verify", help="check every line, sequence and hash")
    output.add_book(verifying)
    output.add_json(verifying)


def run(args: argparse.Namespace) -> int:
    """0 where the log is whole, else 4."""
    from tallybook.book.store import marks
    from tallybook.log.verify import verify

    layout = require_book(find_book(args.book))
    found = verify(layout, marks(layout))
    shown = asdict(found) | {"complete": found.complete}
    output.answer(shown, args.json, text=lambda: _told(found))
    return 0 if found.complete else INCOMPLETE


def _told(found: Verification) -> str:
    counts = (found.lines, "line"), (found.segments, "segment"), (len(found.writers), "writer")
    lines = [", ".join(output.counted(number, word) for number, word in counts)]
    lines += [f"warning: {warning}" for warning in found.warnings]
    lines += [_place(problem) + problem.reason for problem in found.problems]
    lines.append("complete" if found.complete else "INCOMPLETE: what the lines above name is lost")
    return "\n".join(lines)


def _place(problem: Problem) -> str:
    if problem.file is None:
        return ""
    return f"{problem.file} line {problem.line} byte {problem.offset}: "
