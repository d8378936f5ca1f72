"""``tallybook status``: what stands where now. Needs no lock."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tallybook.cli import output
from tallybook.clock import from_text
from tallybook.errors import BadInput
from tallybook.layout import find_book

if TYPE_CHECKING:
    from tallybook.book import BookView

HELP = "what stands where now: jobs, workers, alerts"
_SILENT_S = 15.0
_WATCH_S = 2.0
_CLEAR = "\x1b[H\x1b[J"
_STATUSES = ("pending", "leased", "done", "dead", "cancelled")


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--check", action="store_true", help="exit 1 where there is an alert")
    parser.add_argument("--watch", action="store_true", help="again every 2 s, until Ctrl-C")
    output.add_book(parser)
    output.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """0; with ``--check`` 1 where there is an alert. With ``--watch`` until Ctrl-C."""
    if args.watch and args.check:
        raise BadInput("give --watch or --check, not both")
    while args.watch:
        if sys.stdout.isatty() and not args.json:
            sys.stdout.write(_CLEAR)
        _answer(args)
        time.sleep(_WATCH_S)
    return 1 if _answer(args) and args.check else 0


def _answer(args: argparse.Namespace) -> list[str]:
    """Print what stands where; returns the alerts."""
    from tallybook.book import Book

    with Book.read(find_book(args.book)) as book:
        workers = _workers(book)
        alerts = _alerts(book, workers)
        shown = {
            "book": str(book.layout.root),
            "node_id": book.node.node_id,
            "jobs": book.counts(),
            "oldest_pending_s": _oldest_s(book),
            "workers": workers,
            "alerts": alerts,
        }
    output.answer(shown, args.json, text=lambda: _told(shown))
    return alerts


def _workers(book: BookView) -> list[dict[str, Any]]:
    """Workers by their heartbeat files, with how long ago each last beat."""
    from tallybook.worker.sign import signs

    return [_worker(book, path, sign) for path, sign in signs(book)]


def _worker(book: BookView, path: Path, sign: dict[str, Any]) -> dict[str, Any]:
    from tallybook.worker.sign import is_dead

    now = book.moment()
    shown = {name: sign.get(name) for name in ("worker", "pid", "host", "threads", "topics")}
    silent_s = None
    if sign.get("boot_id") == now.boot_id and isinstance(sign.get("boot_us"), int):
        silent_s = round((now.boot_us - sign["boot_us"]) / 1e6, 1)
    state = "dead" if is_dead(book, path, sign) else "silent"
    if state == "silent" and silent_s is not None and silent_s < _SILENT_S:
        state = "alive"
    running = len(sign.get("jobs") or ())
    return shown | {"state": state, "last_beat_s": silent_s, "running": running}


def _alerts(book: BookView, workers: list[dict[str, Any]]) -> list[str]:
    alerts = [
        f"the log lost its end: {mark.source} saw seq {mark.seq}; see: tallybook log verify"
        for mark in book.lost_marks()
    ]
    alerts += [
        f"the log lost {output.counted(hole.last_seq - hole.first_seq + 1, 'line')} "
        f"({output.seqs(hole.first_seq, hole.last_seq)} of writer {hole.writer[:8]}): jobs and "
        "keys may be missing or old; see: tallybook log verify"
        for hole in book.told_losses()
    ]
    alerts += _said_of_files(book)
    alerts += [
        f"worker {worker['worker']} (pid {worker['pid']}) is {worker['state']}"
        for worker in workers
        if worker["state"] != "alive"
    ]
    late = [job for job in book.jobs(status="leased", limit=10_000) if job.is_late(book.moment())]
    if late:
        leases = output.counted(len(late), "lease")
        alerts.append(f"{leases} ran out with no word from the worker; a running worker rescues")
    for topic, counts in book.counts().items():
        if counts.get("dead"):
            alerts.append(
                f"{output.counted(counts['dead'], 'dead letter')} on {topic}; "
                "see: tallybook jobs list --status dead"
            )
    return alerts


def _said_of_files(book: BookView) -> list[str]:
    """A lock that nobody gives back, a WAL that nobody can reset."""
    from tallybook.book import wal
    from tallybook.log.lock import stopped_holder

    pid, grown = stopped_holder(book.layout.log), wal.warning(book.layout)
    held = f"the log is held by a stopped process {pid}: continue it (kill -CONT {pid}) or kill it"
    return ([held] if pid else []) + ([grown] if grown else [])


def _oldest_s(book: BookView) -> float | None:
    oldest = book.oldest_pending_at()
    if oldest is None:
        return None
    return round((book.moment().now - from_text(oldest)).total_seconds(), 3)


def _told(shown: dict[str, Any]) -> str:
    rows = [{"topic": t} | dict.fromkeys(_STATUSES, 0) | c for t, c in shown["jobs"].items()]
    parts = [output.table(rows, ("topic", *_STATUSES)) if rows else "no jobs"]
    if shown["workers"]:
        columns = ("worker", "pid", "state", "threads", "running", "last_beat_s")
        parts.append(output.table(shown["workers"], columns))
    parts += [f"alert: {alert}" for alert in shown["alerts"]]
    return "\n\n".join(parts)
