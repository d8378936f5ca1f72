"""The undo file of a plan: what stood before each action, written before the first is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from tallybook.book import Book
from tallybook.entry import Entry, Put
from tallybook.errors import BadInput, unwritable
from tallybook.job import Job
from tallybook.layout import FILE_MODE
from tallybook.log.durable import replace_file
from tallybook.recover.plans.file import Action, Plan

_KEPT = ("etag", "last_modified", "origin", "pending", "ttl_s", "value_schema", "synced_at")


@dataclass(frozen=True, slots=True)
class Before:
    """What stood before action ``n``: the fields of ``entry.Put`` with the job that wrote it (None:
    no entry), and of the ``job.dead`` that a requeue takes back."""

    n: int
    entry: Mapping[str, Any] | None = None
    death: Mapping[str, Any] | None = None


def path_of(plan: Path) -> Path:
    """Where the undo file of a plan lies: beside it."""
    return plan.with_name(plan.name.removesuffix(".ndjson") + ".undo.ndjson")


def keep(path: Path, plan: Plan, book: Book) -> None:
    """Write what stands before the actions of ``plan``. A file of this same plan is left as it is:
    it knows what stood before the first of them. Raises BadInput where nothing can be written,
    NoRoom on a full disk."""
    if path.exists() and read(path, plan) is not None:
        return
    found = [asdict(_before(book, one)) for one in plan.to_do]
    rows = [{"undo_of": plan.head.plan}, *found]
    try:
        replace_file(path, b"".join(orjson.dumps(row) + b"\n" for row in rows), "undo")
        path.chmod(FILE_MODE)
    except OSError as error:
        raise unwritable(f"{path}: the undo file", error) from None


def read(path: Path, plan: Plan) -> dict[int, Before]:
    """What stood before each action, by its number. Raises BadInput where that is not known."""
    try:
        rows = [orjson.loads(line) for line in path.read_bytes().splitlines() if line.strip()]
        of = rows[0]["undo_of"]
        found = {row["n"]: Before(**row) for row in rows[1:]}
    except OSError as error:
        raise BadInput(
            f"cannot read the undo file {path}: {error.strerror}; without it nothing says what "
            "stood before the plan"
        ) from None
    except (ValueError, KeyError, TypeError, IndexError):
        raise BadInput(
            f"{path} is no undo file; it was written by 'tallybook plan apply'"
        ) from None
    if of != plan.head.plan:
        raise BadInput(f"{path} is the undo file of plan {of}, not of {plan.head.plan}")
    return found


def put(action: Action, before: Before) -> Put | None:
    """The write that brings back an entry; None where there was none."""
    if before.entry is None or action.entry_key is None:
        return None
    told = dict(before.entry)
    told["depends_on"] = tuple(told.pop("depends_on", ()) or ())
    told.pop("job_id", None)
    return Put(action.entry_key, **told)


def _before(book: Book, action: Action) -> Before:
    entry = book.entry(action.entry_key) if action.entry_key else None
    job = book.job(str(action.job["job_id"])) if action.job else None
    return Before(action.n, _fields(entry) if entry else None, _death(job) if job else None)


def _fields(entry: Entry) -> dict[str, Any]:
    kept = {name: getattr(entry, name) for name in _KEPT}
    beside = {"depends_on": list(entry.depends_on), "job_id": entry.job_id}
    return {"value": entry.value} | beside | kept


def _death(job: Job) -> dict[str, Any]:
    """The fields with which a job is dead as it was."""
    return {
        "attempt_count": job.attempt_count,
        "rescue_count": job.rescue_count,
        "error_type": job.error_type,
        "error": job.last_error,
        "status": str(job.status),
    }
