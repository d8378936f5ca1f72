"""Taking a lease from its holder by hand: for ``jobs release`` and ``locks release``."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tallybook.errors import BadInput

if TYPE_CHECKING:
    from tallybook.book import Book
    from tallybook.job import Job


def add(parser: argparse.ArgumentParser) -> None:
    """The options of a release."""
    parser.add_argument("--reason", default="by hand", help="for the log; default: by hand")
    parser.add_argument("--force", action="store_true", help="also from a worker that lives")


def release(book: Book, job: Job, what: str, args: argparse.Namespace) -> bool:
    """Take the lease of ``job``; False where it has ended meanwhile. ``what`` names, for the error,
    what is held. Raises BadInput where the holder lives, unless it is forced."""
    from tallybook.payload import checked_text
    from tallybook.worker.sign import is_alive

    reason = checked_text("--reason", args.reason) or ""
    if is_alive(book, job.locked_by or "") and not args.force:
        raise BadInput(
            f"{what} is held by worker {job.locked_by}, which lives; stop that worker, or take the "
            "lease with --force: the job may then run twice at once"
        )
    return book.release_by_hand(job, reason)


def told(released: bool) -> str:
    """What a person is told."""
    return "released" if released else "its lease has ended meanwhile"
