"""``tallybook cache``: list entries, show one, forget some, make the cache anew from the log."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tallybook.cli import output, rebuild, selecting, trace
from tallybook.errors import BadInput, IncompleteInput
from tallybook.layout import find_book, require_book

if TYPE_CHECKING:
    from tallybook.book import Book
    from tallybook.clock import Moment
    from tallybook.entry import Entry

HELP = "list cache entries, show one with its history, forget some, rebuild from the log"
_LISTED = ("key", "version", "state", "origin", "pending", "ttl_s", "updated_at", "value")
_VALUE_WIDTH = 60
_PAST = (
    "occurred_at", "change", "version", "job_id", "attempt", "worker", "position", "value",
)  # fmt: skip
_HIDDEN = ("value_json", "boot_us", "boot_id")


def add(parser: argparse.ArgumentParser) -> None:
    """The actions and their options."""
    actions = parser.add_subparsers(
        dest="action", required=True, metavar="get|list|invalidate|rebuild"
    )
    getting = actions.add_parser("get", help="one entry, or all that the log says of its key")
    getting.add_argument("key", metavar="KEY")
    getting.add_argument(
        "--history", action="store_true", help="every write of the key, with who made it"
    )
    _add_listing(actions.add_parser("list", help="entries by key"))
    _add_invalidating(actions.add_parser("invalidate", help="forget entries"))
    rebuild.add_cache(
        actions.add_parser("rebuild", help="the cache from the log, a checkpoint or an export")
    )
    output.add_book(getting)
    output.add_json(getting)


def _add_listing(listing: argparse.ArgumentParser) -> None:
    listing.add_argument("--prefix", default="", metavar="TEXT", help="keys that begin with it")
    listing.add_argument("--pending", action="store_true", help="not yet with the other side")
    listing.add_argument("--expired", action="store_true", help="whose TTL is over")
    listing.add_argument("--limit", type=int, default=100, metavar="N", help="default 100")
    output.add_book(listing)
    output.add_json(listing)


def _add_invalidating(invalidating: argparse.ArgumentParser) -> None:
    invalidating.add_argument("key", nargs="?", metavar="KEY", help="forget this entry")
    invalidating.add_argument("--depends-on", metavar="KEY", help="forget what depends on it")
    selecting.add_bounds(invalidating, "furthest")
    invalidating.add_argument("--reason", default="by hand", help="for the log; default: by hand")
    invalidating.add_argument("--dry-run", action="store_true", help="only say what would go")
    output.add_book(invalidating)
    output.add_json(invalidating)


def run(args: argparse.Namespace) -> int:
    """0; of ``rebuild`` also 4. Raises BadInput where the entry is not there."""
    actions = {"get": _get, "list": _list, "invalidate": _invalidate, "rebuild": rebuild.run_cache}
    return actions[args.action](args)


def _get(args: argparse.Namespace) -> int:
    if args.history:
        return _history(args)
    from tallybook.book import Book

    with Book.read(find_book(args.book)) as book:
        entry = book.entry(args.key)
        if entry is None:
            raise BadInput(f"no cache entry {args.key!r}; see: tallybook cache list")
        shown = _shown(entry, book.moment())
    output.answer(shown, args.json, text=lambda: _told(shown))
    return 0


def _history(args: argparse.Namespace) -> int:
    """0; 4 where the log is damaged, with what is left. Raises BadInput where nothing is."""
    from tallybook.recover.provenance import provenance

    layout = require_book(find_book(args.book))
    found = provenance(layout, args.key)
    lost = trace.lost(found.holes, found.quarantined)
    if not found.writes:
        kind = IncompleteInput if lost else BadInput
        pruned = "; it was pruned" if found.pruned_seq else ""
        told = f"no event in {layout.log} has the cache key {args.key!r}"
        raise kind(told + pruned + (f"; {lost}" if lost else ""))
    shown = {
        "key": args.key,
        "complete": found.complete,
        "writes": [asdict(write) for write in found.writes],
        "events": [trace.shown(event) for event in found.events],
    }
    output.answer(shown, args.json, text=lambda: _told_history(shown["writes"], found.pruned_seq))
    if lost:
        sys.stderr.write(f"tallybook: {lost}\n")
    return 0 if found.complete else rebuild.INCOMPLETE


def _told_history(writes: list[dict[str, Any]], pruned_seq: int) -> str:
    rows = [
        write
        | {
            "change": write["event"].removeprefix("cache."),
            "position": f"{write['segment'][:8]} seq {write['seq']}",
            "value": (write["reason"] or "")
            if write["value"] is None
            else json.dumps(write["value"], ensure_ascii=False)[:_VALUE_WIDTH],
        }
        for write in writes
    ]
    told = output.table(rows, _PAST)
    pruned = f"earlier writes may be in the lines up to seq {pruned_seq}, which were pruned"
    return told + (f"\n{pruned}" if pruned_seq else "")


def _list(args: argparse.Namespace) -> int:
    from tallybook.book import Book

    if args.limit < 1:
        raise BadInput(f"--limit {args.limit}: use a number from 1 up")
    with Book.read(find_book(args.book)) as book:
        found = book.entries(
            args.limit + 1,
            prefix=args.prefix,
            pending=args.pending or None,
            expired=args.expired or None,
        )
        moment = book.moment()
    shown = output.listed("entries", found, args.limit, lambda entry: _shown(entry, moment))
    output.answer(shown, args.json, text=lambda: _table(shown))
    return 0


def _invalidate(args: argparse.Namespace) -> int:
    from tallybook.book import Book
    from tallybook.payload import checked_text

    if (args.key is None) == (args.depends_on is None):
        raise BadInput("give a KEY or --depends-on KEY, one of them")
    if args.key is not None and (args.limit is not None or args.all):
        raise BadInput("--limit and --all go with --depends-on: a KEY is one entry")
    selecting.check_bounds(args)
    checked_text("--reason", args.reason)
    with Book.open(find_book(args.book), create=False) as book:
        would_go = _would_go(book, args)
        selecting.require_few(args, len(would_go), "entries depend on it", "forget")
        keys = would_go if args.dry_run else _gone(book, args)
    if args.key is not None and not keys:
        raise BadInput(f"no cache entry {args.key!r}; see: tallybook cache list")
    shown = {"invalidated": keys, "dry_run": args.dry_run}
    output.answer(shown, args.json, text=lambda: _told_gone(keys, args.dry_run))
    return 0


def _would_go(book: Book, args: argparse.Namespace) -> list[str]:
    if args.depends_on is not None:
        return book.dependents(args.depends_on, args.limit)
    return [args.key] if book.entry(args.key) else []


def _gone(book: Book, args: argparse.Namespace) -> list[str]:
    if args.depends_on is not None:
        return book.invalidate_dependents(args.depends_on, reason=args.reason, limit=args.limit)
    return [args.key] if book.invalidate(args.key, reason=args.reason) else []


def _shown(entry: Entry, moment: Moment) -> dict[str, Any]:
    shown = {name: value for name, value in asdict(entry).items() if name not in _HIDDEN}
    state = "expired" if entry.is_expired(moment) else "fresh"
    return shown | {"depends_on": list(entry.depends_on), "state": state, "value": entry.value}


def _table(shown: dict[str, Any]) -> str:
    if not shown["entries"]:
        return "no cache entries match"
    rows = [
        row | {"value": _words(row["value"])[:_VALUE_WIDTH], "pending": _yes(row["pending"])}
        for row in shown["entries"]
    ]
    return output.and_more(output.table(rows, _LISTED), shown)


def _yes(flag: bool) -> str:
    return "yes" if flag else "no"


def _told(shown: dict[str, Any]) -> str:
    told = {name: value for name, value in shown.items() if value not in (None, "", [])}
    width = max(map(len, told))
    return "\n".join(f"{name.ljust(width)}  {_words(value)}" for name, value in told.items())


def _told_gone(keys: list[str], dry_run: bool) -> str:
    said = "would be forgotten" if dry_run else "forgotten"
    return "\n".join([f"{output.counted(len(keys), 'cache key')} {said}", *keys])


def _words(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
