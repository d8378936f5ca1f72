"""``tallybook init``: notebooks, runbooks and settings in a folder of one's own."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tallybook.cli import output
from tallybook.layout import is_book

if TYPE_CHECKING:
    from tallybook.runbook.laying import Laid

HELP = "lay notebooks, runbooks and settings into a folder of your own"
_SAID = ("laid", "updated", "same", "edited", "removed")


def add(parser: argparse.ArgumentParser) -> None:
    """Its argument and option."""
    parser.add_argument("folder", metavar="DIR", help="a new folder, or one of an earlier init")
    output.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """0; raises BadInput where the folder is no folder for it."""
    from tallybook.runbook import laying

    laid = laying.lay(Path(args.folder))
    book = laid.root / "book"
    made = not is_book(book)
    if made:
        _make(book)
    shown = {"folder": str(laid.root), "book": str(book), "files": dict(laid.files)}
    output.answer(shown, args.json, text=lambda: _told(laid, book, made))
    return 0


def _make(book: Path) -> None:
    from tallybook.book import Book

    with Book.open(book):
        pass


def _told(laid: Laid, book: Path, made: bool) -> str:
    counts = [(len(laid.those(what)), what) for what in _SAID]
    lines = [", ".join(f"{count} {what}" for count, what in counts if count) + f" in {laid.root}"]
    lines += [f"a new book: {book}"] if made else []
    lines += [_differs(laid, name) for name in laid.those("edited")]
    lines += [f"you took it away, and it is left so: {name}" for name in laid.those("removed")]
    lines.append(f"next: cd {laid.root} && tallybook runbook list")
    return "\n".join(lines)


def _differs(laid: Laid, name: str) -> str:
    from tallybook.runbook.laying import carried_as

    carried = carried_as(name)
    new = f"; this version has it as {carried}" if carried else ""
    return f"you edited it, and it is left so: {laid.root / name}{new}"
