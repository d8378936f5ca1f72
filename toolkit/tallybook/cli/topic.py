"""``tallybook topic``: list, pause, resume and drain topics."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from tallybook.cli import output
from tallybook.errors import BadInput
from tallybook.job import Status
from tallybook.layout import find_book

if TYPE_CHECKING:
    from tallybook.book import BookView

HELP = "list, pause, resume or drain topics"
_COLUMNS = ("topic", "status", *(str(status) for status in Status))
_LOOK_S = 0.1


def add(parser: argparse.ArgumentParser) -> None:
    """The actions and their options."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="list|pause|…")
    listing = actions.add_parser("list", help="topics, whether they are paused, and their jobs")
    pausing = actions.add_parser("pause", help="let nobody claim jobs of a topic")
    resuming = actions.add_parser("resume", help="let them be claimed again")
    draining = actions.add_parser("drain", help="wait until a topic has no open job")
    for action in (pausing, resuming, draining):
        action.add_argument("topic", metavar="TOPIC")
    for action in (pausing, resuming):
        action.add_argument("--reason", default="by hand", help="for the log; default: by hand")
    pausing.add_argument("--force", action="store_true", help="also a topic that has no job yet")
    draining.add_argument("--timeout", type=float, metavar="S", help="wait no longer; exit 1 then")
    for action in (listing, pausing, resuming, draining):
        output.add_book(action)
        output.add_json(action)


def run(args: argparse.Namespace) -> int:
    """0; 1 where ``drain`` stopped waiting."""
    actions = {"list": _list, "pause": _pause, "resume": _resume, "drain": _drain}
    return actions[args.action](args)


def _list(args: argparse.Namespace) -> int:
    from tallybook.book import Book

    with Book.read(find_book(args.book)) as book:
        counts, switched = book.counts(), book.topics()
    topics = [
        {"topic": topic, "status": switched.get(topic, "active")}
        | {str(status): counts.get(topic, {}).get(status, 0) for status in Status}
        for topic in sorted({*counts, *switched})
    ]
    empty = "no topics"
    output.answer(
        {"topics": topics}, args.json, lambda: output.table(topics, _COLUMNS) if topics else empty
    )
    return 0


def _pause(args: argparse.Namespace) -> int:
    from tallybook.book import Book

    with Book.open(find_book(args.book), create=False) as book:
        if not args.force:
            _require_known(book, args.topic, "; --force pauses it before its first job")
        changed = book.pause(args.topic, _reason(args))
        leased = book.counts().get(args.topic, {}).get(Status.LEASED, 0)
    shown = {"topic": args.topic, "status": "paused", "changed": changed, "leased": leased}
    words = f"paused; {output.counted(leased, 'job')} still running" if leased else "paused"
    output.answer(shown, args.json, lambda: words if changed else "it was paused already")
    return 0


def _resume(args: argparse.Namespace) -> int:
    from tallybook.book import Book

    with Book.open(find_book(args.book), create=False) as book:
        _require_known(book, args.topic)
        changed = book.resume(args.topic, _reason(args))
    shown = {"topic": args.topic, "status": "active", "changed": changed}
    output.answer(shown, args.json, lambda: "resumed" if changed else "it was not paused")
    return 0


def _drain(args: argparse.Namespace) -> int:
    from tallybook.book import Book

    if args.timeout is not None and args.timeout < 0:
        raise BadInput(f"--timeout {args.timeout:g}: use 0 s or more")
    with Book.open(find_book(args.book), create=False) as book:
        _require_known(book, args.topic)
        left = _wait_until_drained(book, args.topic, args.timeout)
    shown = {"topic": args.topic, "drained": not left, "left": left}
    words = f"{output.counted(left, 'job')} left" if left else "drained"
    output.answer(shown, args.json, lambda: words)
    return 1 if left else 0


def _wait_until_drained(book: BookView, topic: str, timeout_s: float | None) -> int:
    """Returns how many jobs were left open when the time was over. Raises BadInput where a pause
    would make the wait endless."""
    began_s, progress = time.monotonic(), output.Progress("open jobs")
    try:
        while left := _open_jobs(book, topic):
            if timeout_s is not None and time.monotonic() - began_s >= timeout_s:
                return left
            progress.show(left)
            time.sleep(_LOOK_S)
    finally:
        progress.close()
    return 0


def _open_jobs(book: BookView, topic: str) -> int:
    counts = book.counts().get(topic, {})
    pending = counts.get(Status.PENDING, 0)
    if pending and book.topics().get(topic) == "paused":
        raise BadInput(
            f"topic {topic} is paused with {output.counted(pending, 'pending job')}, so it cannot "
            f"drain; see: tallybook topic resume {topic}"
        )
    return pending + counts.get(Status.LEASED, 0)


def _require_known(book: BookView, topic: str, hint: str = "") -> None:
    known = {*book.counts(), *book.topics(), *book.settings.topics}
    if topic not in known:
        words = ", ".join(sorted(known)) or "none"
        raise BadInput(f"no job has topic {topic!r}; topics: {words}{hint}")


def _reason(args: argparse.Namespace) -> str:
    from tallybook.payload import checked_text

    return checked_text("--reason", args.reason) or ""
