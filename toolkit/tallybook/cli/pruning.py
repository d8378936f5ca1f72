"""``tallybook jobs prune``: jobs that ended long ago leave the tables; the log keeps them."""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any

from tallybook.cli import output
from tallybook.errors import BadInput
from tallybook.job import Job
from tallybook.layout import find_book


def add(actions: Any) -> argparse.ArgumentParser:
    """The action and its options."""
    parser: argparse.ArgumentParser = actions.add_parser(
        "prune", help="jobs that are older than their topic keeps them leave the tables"
    )
    parser.add_argument("--limit", type=int, default=1000, metavar="N", help="default 1000")
    parser.add_argument("--dry-run", action="store_true", help="say how many; change nothing")
    return parser


def run(args: argparse.Namespace) -> int:
    """0, also where no job is old enough."""
    from tallybook.book import Book

    if args.limit < 1:
        raise BadInput(f"--limit {args.limit}: use a number from 1 up")
    with Book.open(find_book(args.book), create=False) as book:
        gone = book.prune(args.limit, dry_run=args.dry_run)
    counts = dict.fromkeys(("done", "dead", "cancelled"), 0)
    counts |= Counter(job.status for job in gone)
    shown = {"dry_run": args.dry_run, "pruned": len(gone), **counts}
    output.answer(shown, args.json, text=lambda: _told(gone, args.dry_run))
    return 0


def _told(gone: list[Job], dry_run: bool) -> str:
    if not gone:
        return "no job is older than its topic keeps it"
    return f"{output.counted(len(gone), 'job')} {'would be ' * dry_run}pruned"
