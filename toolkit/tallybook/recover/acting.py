"""The acts of runbooks on jobs: requeue, discard or release those that were chosen, then look.

A dry run reads the book and says what would happen. What is done goes through the book, a change
of at most 500 jobs at a time, each an event in its log with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars

from tallybook import layout as layouts
from tallybook import steering
from tallybook.book import Book, BookView
from tallybook.clock import to_text
from tallybook.errors import BadInput, TallybookError
from tallybook.job import Job, Status
from tallybook.ops import frames
from tallybook.ops.opening import open_warehouse
from tallybook.ops.silence import Silence
from tallybook.ops.warehouse import Warehouse
from tallybook.ops.wording import command, counted
from tallybook.worker.sign import is_alive

RELEASE = "release"
_A_CHANGE = 500
_REASON = "runbook"
_NAMED = 20
_LEFT = {
    "requeue": (Status.PENDING, Status.LEASED, Status.DONE),
    "discard": (Status.CANCELLED,),
    RELEASE: (Status.PENDING, Status.DONE, Status.DEAD, Status.CANCELLED),
}
_UNCHANGED = Silence("Nothing was changed, so there is nothing to check.")
_UNDO = {"requeue": "cancel", "discard": "requeue"}


@dataclass(frozen=True, slots=True)
class Acted:
    """What became of the jobs that were chosen: ``changed`` (in a dry run: would be changed), and
    ``passed_over`` with the reason of each. ``acted_at`` is when, ``tokens`` their leases then."""

    book: Path
    action: str
    dry_run: bool
    changed: tuple[str, ...] = ()
    passed_over: tuple[tuple[str, str], ...] = ()
    acted_at: str = ""
    tokens: tuple[int, ...] = ()

    @property
    def words(self) -> str:
        """One sentence for a person."""
        if not (self.changed or self.passed_over):
            return "no job was chosen: nothing was changed"
        jobs = counted(len(self.changed), "job")
        did = f"{jobs} would be {_PAST[self.action]}; nothing was changed"
        told = did if self.dry_run else f"{jobs} {_PAST[self.action]}"
        passed = len(self.passed_over)
        return told + (f"; {counted(passed, 'job')} passed over" if passed else "")

    @property
    def undo(self) -> str:
        """The command that takes it back; where there is none, why."""
        if self.dry_run or not self.changed:
            return "nothing was changed: there is nothing to take back"
        if self.action == RELEASE:
            return "a lease is not given back: its job is pending and is run again"
        return command(self.book, "jobs", _UNDO[self.action], *self.changed)

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        rows = [(one, f"{'would be ' * self.dry_run}{_PAST[self.action]}") for one in self.changed]
        rows += [(one, f"passed over: {why}") for one, why in self.passed_over]
        if not rows:
            return {"text/plain": self.words}
        table = polars.DataFrame(rows, schema=["job_id", self.action], orient="row")
        return {"text/plain": self.words, "text/html": frames.html(table)}


_PAST = {"requeue": "requeued", "discard": "discarded", RELEASE: "released"}


def act(book: Path, action: str, job_ids: Sequence[str], *, dry_run: bool) -> Acted:
    """Requeue, discard or release the jobs of those ids; a dry run says which it would.

    Passed over are jobs in no state for it, and leases of workers that live; in a dry run all of
    them where the queue cannot be read. Raises BadInput for another action, and for a change of a
    book that has no queue.
    """
    if action not in _PAST:
        raise BadInput(f"no action {action!r}: choose {', '.join(_PAST)}")
    if not job_ids:
        return Acted(book, action, dry_run)
    if dry_run:
        return _foreseen(book, action, job_ids)
    root = layouts.require_book(book).root
    with Book.open(root, create=False) as opened:
        fitting, passed = _sorted(opened, action, job_ids)
        return _done(opened, Acted(root, action, False, passed_over=passed), fitting)


def _foreseen(book: Path, action: str, job_ids: Sequence[str]) -> Acted:
    """What would be done; a book of another system, or with a damaged log, says why nothing."""
    try:
        with Book.read(layouts.require_book(book).root) as read:
            fitting, passed = _sorted(read, action, job_ids)
    except TallybookError as error:
        return Acted(book, action, True, (), tuple((job_id, str(error)) for job_id in job_ids))
    return Acted(book, action, True, tuple(job.job_id for job in fitting), passed)


def _done(book: Book, asked: Acted, fitting: Sequence[Job]) -> Acted:
    at = to_text(book.moment().now)
    changed = {job_id for page in _pages(fitting) for job_id in _change(book, asked.action, page)}
    missed = tuple((job.job_id, "changed meanwhile, or its idempotency key is another job's")
                   for job in fitting if job.job_id not in changed)  # fmt: skip
    taken = [job for job in fitting if job.job_id in changed]
    return Acted(
        asked.book,
        asked.action,
        False,
        tuple(job.job_id for job in taken),
        (*asked.passed_over, *missed),
        at,
        tuple(job.lease_token for job in taken),
    )


def _pages(jobs: Sequence[Job]) -> Iterator[Sequence[Job]]:
    return (jobs[start : start + _A_CHANGE] for start in range(0, len(jobs), _A_CHANGE))


def _change(book: Book, action: str, jobs: Sequence[Job]) -> list[str]:
    """The ids of the jobs that were changed."""
    if action == RELEASE:
        return [job.job_id for job in jobs if book.release_by_hand(job, _REASON)]
    events = book.steer(action, [job.job_id for job in jobs], _REASON)
    return [str(event.fields["job_id"]) for event in events]


def _sorted(
    book: BookView, action: str, job_ids: Sequence[str]
) -> tuple[list[Job], tuple[tuple[str, str], ...]]:
    """The jobs that fit the action, and why the others do not."""
    fitting, passed = [], []
    for job_id in dict.fromkeys(job_ids):
        job = book.job(job_id)
        why = _unfit(book, action, job)
        if job is None or why:
            passed.append((job_id, why))
        else:
            fitting.append(job)
    return fitting, tuple(passed)


def _unfit(book: BookView, action: str, job: Job | None) -> str:
    if job is None:
        return "the book has no such job"
    wanted = (Status.LEASED.value,) if action == RELEASE else steering.FITTING[action][:1]
    if job.status not in wanted:
        return f"it is {job.status}"
    if action == RELEASE and is_alive(book, job.locked_by or ""):
        return f"its worker {job.locked_by} lives: stop that first"
    return ""


def as_left(warehouse: Warehouse, acted: Acted) -> Warehouse:
    """The warehouse of the log as the act left it: read again where something was changed."""
    if acted.dry_run or not acted.changed:
        return warehouse
    warehouse.close()
    return open_warehouse(acted.book)


def after(acted: Acted) -> polars.DataFrame | Silence:
    """One row a job that was changed: job_id, status now, holds; a sentence where none was.

    Raises TallybookError where one is not as the act left it, and nothing has happened to it since.
    """
    if acted.dry_run or not acted.changed:
        return _UNCHANGED
    rows = _looked(acted)
    bad = [str(row["job_id"]) for row in rows if not row["holds"]]
    if bad:
        named = ", ".join(bad[:_NAMED])
        raise TallybookError(
            f"{counted(len(bad), 'job')} of {acted.book} not {_PAST[acted.action]}: {named}; "
            "run 'tallybook log verify' and look at the disk"
        )
    schema = {"job_id": polars.String, "status": polars.String, "holds": polars.Boolean}
    return polars.DataFrame(rows, schema=schema)


def _looked(acted: Acted) -> list[Mapping[str, Any]]:
    with Book.read(acted.book) as book:
        pairs = zip(acted.changed, acted.tokens, strict=True)
        return [_row(acted, job_id, token, book.job(job_id)) for job_id, token in pairs]


def _row(acted: Acted, job_id: str, token: int, job: Job | None) -> Mapping[str, Any]:
    if job is None:
        return {"job_id": job_id, "status": "gone", "holds": False}
    moved_on = job.updated_at > acted.acted_at and job.lease_token > token
    holds = job.status in _LEFT[acted.action] or moved_on
    return {"job_id": job_id, "status": str(job.status), "holds": holds}
