"""``tallybook locks``: who has which resource, and taking it from its holder."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from tallybook.cli import output, releasing
from tallybook.errors import BadInput
from tallybook.layout import find_book

if TYPE_CHECKING:
    from tallybook.book import HeldLock

HELP = "list the resources that leased jobs have, or release one"
_LISTED = ("resource", "topic", "job_id", "worker", "held_s", "locked_until")


def add(parser: argparse.ArgumentParser) -> None:
    """The actions and their options."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="list|release")
    listing = actions.add_parser("list", help="who has which resource, by name")
    listing.add_argument("--topic", metavar="TOPIC", help="of jobs of this topic")
    listing.add_argument("--worker", metavar="NAME", help="held by this worker")
    listing.add_argument("--limit", type=int, default=100, metavar="N", help="default 100")
    dropping = actions.add_parser("release", help="take the lease of its job from the holder")
    dropping.add_argument("resource", metavar="RESOURCE")
    releasing.add(dropping)
    for action in (listing, dropping):
        output.add_book(action)
        output.add_json(action)


def run(args: argparse.Namespace) -> int:
    """0; raises BadInput where nobody has the resource."""
    return _list(args) if args.action == "list" else _release(args)


def _list(args: argparse.Namespace) -> int:
    from tallybook.book import Book

    if args.limit < 1:
        raise BadInput(f"--limit {args.limit}: use a number from 1 up")
    with Book.read(find_book(args.book)) as book:
        held = book.locks(args.limit + 1, topic=args.topic, worker=args.worker)
    shown = output.listed("locks", held, args.limit, _shown)
    output.answer(shown, args.json, lambda: _table(shown) if held else "no locks match")
    return 0


def _table(shown: dict[str, Any]) -> str:
    return output.and_more(output.table(shown["locks"], _LISTED), shown)


def _shown(held: HeldLock) -> dict[str, Any]:
    lock = held.lock
    return {
        "resource": lock.resource,
        "topic": lock.topic,
        "job_id": lock.job_id,
        "worker": lock.worker,
        "lease_token": lock.lease_token,
        "acquired_at": lock.acquired_at,
        "held_s": round(held.held_ms / 1000, 3),
        "locked_until": held.locked_until,
    }


def _release(args: argparse.Namespace) -> int:
    from tallybook.book import Book

    with Book.open(find_book(args.book), create=False) as book:
        lock = book.lock(args.resource)
        job = book.job(lock.job_id) if lock else None
        if job is None:
            raise BadInput(f"nobody has resource {args.resource!r}; see: tallybook locks list")
        released = releasing.release(book, job, f"resource {args.resource!r}", args)
    shown = {
        "resource": args.resource,
        "job_id": job.job_id,
        "released": released,
        "worker": job.locked_by,
    }
    output.answer(shown, args.json, lambda: releasing.told(released))
    return 0
