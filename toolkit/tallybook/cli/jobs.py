"""``tallybook jobs``: list, show and release jobs; requeue, discard and cancel by selection."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from tallybook.cli import exporting, output, pruning, releasing, selecting, steering
from tallybook.errors import BadInput
from tallybook.job import Job, Status
from tallybook.layout import find_book
from tallybook.payload import visible

HELP = "list, show, export, requeue, discard, cancel or release jobs"
_LISTED = (
    "job_id", "topic", "idempotency_key", "status", "attempt_count", "rescue_count",
    "updated_at", "last_error",
)  # fmt: skip
_LAST_ERROR_WIDTH = 60


def add(parser: argparse.ArgumentParser) -> None:
    """The actions and their options."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="list|show|…")
    listing = actions.add_parser("list", help="jobs, oldest first")
    selecting.add(listing, [str(status) for status in Status])
    listing.add_argument("--limit", type=int, default=100, metavar="N", help="default 100")
    showing = actions.add_parser("show", help="all of one job")
    showing.add_argument("job_id", metavar="ID")
    showing.add_argument(
        "--history", action="store_true", help="with its events; of a dead letter always"
    )
    dropping = actions.add_parser("release", help="take the lease of a job from its holder")
    dropping.add_argument("job_id", metavar="ID")
    releasing.add(dropping)
    steered = (*steering.add(actions), exporting.add(actions))
    for action in (listing, showing, dropping, *steered, pruning.add(actions)):
        output.add_book(action)
        output.add_json(action)


def run(args: argparse.Namespace) -> int:
    """0; raises BadInput where the job is not there."""
    own = {
        "list": _list,
        "show": _show,
        "release": _release,
        "export": exporting.run,
        "prune": pruning.run,
    }
    return own.get(args.action, steering.run)(args)


def _list(args: argparse.Namespace) -> int:
    from tallybook.book import Book

    if args.limit < 1:
        raise BadInput(f"--limit {args.limit}: use a number from 1 up")
    with Book.read(find_book(args.book)) as book:
        jobs = book.selected(selecting.selection(args, book), args.limit + 1)
        nothing = selecting.nothing(book, args.topic)
    shown = output.listed("jobs", jobs, args.limit, _shown)
    output.answer(shown, args.json, text=lambda: _table(shown) if jobs else nothing)
    return 0


def _show(args: argparse.Namespace) -> int:
    from tallybook.book import Book

    with Book.read(find_book(args.book)) as book:
        job = _known(book.job(args.job_id), args.job_id)
        ahead = book.in_the_way(job)
    shown = _shown(job) | (_behind(ahead) if ahead else {})
    if job.status == Status.DEAD or args.history:
        shown |= _history(find_book(args.book), job.job_id)
    output.answer(shown, args.json, text=lambda: _told(shown))
    return 0


def _release(args: argparse.Namespace) -> int:
    from tallybook.book import Book

    with Book.open(find_book(args.book), create=False) as book:
        job = _known(book.job(args.job_id), args.job_id)
        if job.status != Status.LEASED:
            raise BadInput(f"job {job.job_id} is {job.status}: it has no lease to release")
        released = releasing.release(book, job, f"job {job.job_id}", args)
    shown = {"job_id": job.job_id, "released": released, "worker": job.locked_by}
    output.answer(shown, args.json, text=lambda: releasing.told(released))
    return 0


def _known(job: Job | None, job_id: str) -> Job:
    if job is None:
        raise BadInput(f"no job {job_id}; see: tallybook jobs list")
    return job


def _shown(job: Job) -> dict[str, Any]:
    shown = {name: value for name, value in job._asdict().items() if not name.endswith("_json")}
    result = None if job.result_json is None else json.loads(job.result_json)
    return shown | {"payload": job.payload, "result": result}


def _behind(ahead: Job) -> dict[str, Any]:
    """The job that a job waits for, as it stands."""
    held = {"worker": ahead.locked_by, "locked_until": ahead.locked_until}
    named = {"job_id": ahead.job_id, "topic": ahead.topic, "status": ahead.status}
    return {"behind": named | (held if ahead.locked_by else {})}


def _table(shown: dict[str, Any]) -> str:
    rows = [
        row | {"last_error": (row["last_error"] or "-")[:_LAST_ERROR_WIDTH]}
        for row in shown["jobs"]
    ]
    waits = ("waits_for",) if any(row["waits_for"] for row in rows) else ()
    return output.and_more(output.table(rows, (*_LISTED, *waits)), shown)


def _history(root: Path, job_id: str) -> dict[str, Any]:
    """The events of a job from the log, and the traceback of its last failed run."""
    from tallybook.cli import trace
    from tallybook.layout import require_book
    from tallybook.log.reader import history

    events = [e for e, _ in history(require_book(root)) if e.get("job_id") == job_id]
    tracebacks = [e["traceback"] for e in events if e.get("traceback")]
    shown = [trace.shown(event) | {"line": trace.line(event)} for event in events]
    return {"traceback": tracebacks[-1] if tracebacks else None, "history": shown}


def _told(shown: dict[str, Any]) -> str:
    told = {name: value for name, value in shown.items() if value not in (None, "")}
    traceback, history = told.pop("traceback", ""), told.pop("history", ())
    width = max(map(len, told))
    parts = ["\n".join(f"{name.ljust(width)}  {_words(value)}" for name, value in told.items())]
    parts += [traceback.rstrip()] if traceback else []
    parts += ["\n".join(event["line"] for event in history)] if history else []
    return "\n\n".join(parts)


def _words(value: Any) -> str:
    return visible(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
