"""``tallybook log``: verify, follow and prune the log of a book."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from tallybook.cli import output
from tallybook.errors import BadInput
from tallybook.layout import archive_dir, find_book, out_dir, require_book

if TYPE_CHECKING:
    from tallybook.book.pruning import Pruned
    from tallybook.event import Event
    from tallybook.log.verify import Problem, Verification

HELP = "verify, follow or prune the log of a book"
INCOMPLETE = 4


def add(parser: argparse.ArgumentParser) -> None:
    """The actions and their options."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="verify|tail|prune")
    _add_verify(actions.add_parser("verify", help="check every line, sequence, hash, manifest"))
    _add_tail(actions.add_parser("tail", help="print the newest events, and those that come"))
    _add_prune(actions.add_parser("prune", help="remove old segments that a checkpoint covers"))


def _add_verify(parser: argparse.ArgumentParser) -> None:
    output.add_book(parser)
    output.add_json(parser)
    parser.set_defaults(do=_verify)


def _add_tail(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", "--lines", type=int, default=10, metavar="N",
                        help="how many of the newest (default: 10)")  # fmt: skip
    parser.add_argument("-f", "--follow", action="store_true", help="go on with those that come")
    parser.add_argument("--json", action="store_true", help="one JSON object an event and line")
    output.add_book(parser)
    parser.set_defaults(do=_tail)


def _add_prune(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--keep-days", type=float, metavar="N",
                        help="keep segments with an event of the last N days")  # fmt: skip
    parser.add_argument("--before", metavar="TIME",
                        help="keep segments with an event of this time or later")  # fmt: skip
    parser.add_argument("--archived", nargs="?", const="", metavar="DIR",
                        help="keep segments that 'tallybook compact' has not brought into the "
                        "archive DIR (default: ./tallybook-out/<node_id>/archive)")  # fmt: skip
    parser.add_argument("--dry-run", action="store_true", help="say what would go; change nothing")
    output.add_book(parser)
    output.add_json(parser)
    parser.set_defaults(do=_prune)


def run(args: argparse.Namespace) -> int:
    """verify: 0 where the log is whole, else 4; tail and prune: 0."""
    return int(args.do(args))


def _verify(args: argparse.Namespace) -> int:
    from tallybook.book.opening import marks
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


def _tail(args: argparse.Namespace) -> int:
    from tallybook.log.tail import Tail

    if args.lines < 0:
        raise BadInput(f"--lines {args.lines}: use a number from 0 up")
    tail = Tail(require_book(find_book(args.book)))
    for event in tail.newest(args.lines):
        _print(event, args.json)
    if args.follow:
        sys.stdout.flush()
        for event in tail.coming():
            _print(event, args.json)
            sys.stdout.flush()
    return 0


def _print(event: Event, as_json: bool) -> None:
    from tallybook.cli import trace

    text = json.dumps(trace.shown(event), ensure_ascii=False) if as_json else trace.line(event)
    sys.stdout.write((text if as_json else output.plain(text)) + "\n")


def _prune(args: argparse.Namespace) -> int:
    from tallybook.book import Book
    from tallybook.book.pruning import prune

    root = find_book(args.book)
    require_book(root)
    if not args.dry_run and (args.keep_days, args.before, args.archived) == (None, None, None):
        raise BadInput(
            "say what is to stay: --keep-days N, --before TIME or --archived; "
            "--keep-days 0 removes all that a checkpoint covers"
        )
    with Book.open(root, create=False) as book:
        before = _before(args, book.moment().now)
        archive = _archive(args.archived, book.node.node_id)
        pruned = prune(book, before, archive=archive, dry_run=args.dry_run)
    output.answer(asdict(pruned), args.json, text=lambda: _told_pruned(pruned))
    return 0


def _before(args: argparse.Namespace, now: datetime) -> str | None:
    from tallybook.clock import to_text

    if args.keep_days is not None and args.before is not None:
        raise BadInput("give --keep-days or --before, not both")
    if args.keep_days is not None:
        if not 0 <= args.keep_days <= 36_500:
            raise BadInput(f"--keep-days {args.keep_days:g}: use 0 to 36500")
        return to_text(now - timedelta(days=args.keep_days))
    if args.before is None:
        return None
    try:
        moment = datetime.fromisoformat(args.before)
    except ValueError:
        raise BadInput(f"--before {args.before!r}: write a time as in 2026-11-29T22:00Z") from None
    return to_text(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def _archive(given: str | None, node_id: str) -> Path | None:
    """The folder that ``--archived`` names, None without it; raises BadInput where it is none."""
    if given is None:
        return None
    folder = Path(given) if given else archive_dir(out_dir(None, node_id))
    if not folder.is_dir():
        raise BadInput(f"no archive at {folder}: make one with 'tallybook compact', or name it")
    return folder


def _told_pruned(pruned: Pruned) -> str:
    rows = [asdict(cut) for cut in pruned.segments]
    lines = [output.table(rows, ["segment", "bytes", "last_occurred_at"])] if rows else []
    done = "would be removed" if pruned.dry_run else "removed"
    counts = output.counted(len(rows), "segment"), output.counted(pruned.events, "event")
    lines.append(f"{', '.join(counts)}, {pruned.bytes:,} bytes {done}")
    if pruned.stopped_at:
        lines.append(f"kept from {pruned.stopped_at}; run 'tallybook compact' first")
    if pruned.checkpoint:
        lines.append(f"a fold begins with checkpoints/{pruned.checkpoint}")
    return "\n".join(lines)
