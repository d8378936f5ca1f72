"""What is wrong with a book: the promises, checked on its files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tallybook.book import Book
from tallybook.book.folding import fold_history, from_checkpoints
from tallybook.book.store import marks
from tallybook.event import Event
from tallybook.job import Job
from tallybook.layout import Layout
from tallybook.log import anchor as anchors
from tallybook.log.reader import history
from tallybook.log.verify import verify
from tallybook.queue.contract import Selection

_ENDS = (
    "job.done",
    "job.retry_scheduled",
    "job.dead",
    "job.snoozed",
    "job.lease_expired",
    "job.released",
    "job.cancelled",
)
_SETTLES = _ENDS[:4]


def audit(path: str | Path) -> list[str]:
    """What is wrong with the book at ``path``, a line each; nothing where all promises hold.

    The log is whole; leases of a job, of a resource and of an ordering key never overlap, and the
    tokens of a job count up; no settle comes after the end of its lease; the log folded anew equals
    state.db, jobs and cache alike, but for payloads that the log was not to keep. Changes nothing
    but what opening a book repairs. Call it when nothing runs.
    """
    layout = Layout(Path(path))
    with Book.open(layout.root, create=False) as book:
        jobs = {job.job_id: job for job in book.jobs(limit=2**62)}
        entries = {entry.key: entry for entry in book.entries(2**62)}
    found = [problem.reason for problem in verify(layout, marks(layout)).problems]
    found += _Leases().problems(layout)
    for folded_jobs, folded_entries in _folds(layout):
        found += _unlike("job", folded_jobs, _as_kept(jobs, folded_jobs))
        found += _unlike("cache entry", folded_entries, entries)
    return found


def _folds(layout: Layout) -> Iterator[tuple[Mapping[str, Job], Mapping[str, object]]]:
    """What the log says, folded from its start, where it has one, and from each checkpoint."""
    if not anchors.read(layout):
        tables, _ = fold_history(layout)
        yield tables.jobs, tables.entries
    for store in from_checkpoints(layout):
        jobs = store.queue.select(Selection(), 2**62)
        entries = list(store.cache.scan())
        store.connection.close()
        yield {job.job_id: job for job in jobs}, {entry.key: entry for entry in entries}


@dataclass
class _Leases:
    """A walk over the log that knows who holds which lease, and until when by boot time."""

    held: dict[str, tuple[int, int, str]] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)
    shares: dict[str, list[tuple[str, ...]]] = field(default_factory=dict)
    taken: dict[tuple[str, ...], str] = field(default_factory=dict)
    found: list[str] = field(default_factory=list)
    is_whole: bool = True

    def problems(self, layout: Layout) -> list[str]:
        self.is_whole = anchors.read(layout) is None
        for event, _ in history(layout):
            if event.name == "job.enqueued":
                self._note(event)
            elif event.name in ("job.leased", "job.extended"):
                self._lease(event)
            elif event.name in _ENDS and event["job_id"] in self.held:
                self._end(event)
        return self.found

    def _note(self, event: Event) -> None:
        """What the job may have only while no other lease has it."""
        named = [("resource", event.get("resource"))]
        named.append((f"ordering key of {event['topic']}", event.get("ordering_key")))
        shares: list[tuple[str, ...]] = [(kind, name) for kind, name in named if name]
        if shares:
            self.shares[event["job_id"]] = shares

    def _take(self, event: Event) -> None:
        for share in self.shares.get(event["job_id"], ()):
            other = self.taken.get(share)
            if other in self.held and other != event["job_id"]:
                self._tell(event, f"is leased while job {other} has its {' '.join(share)}")
            self.taken[share] = event["job_id"]

    def _lease(self, event: Event) -> None:
        job_id, token = event["job_id"], event["lease_token"]
        if event.name == "job.leased":
            if job_id in self.held:
                self._tell(event, "is leased while another lease is open")
            self._take(event)
            before = self.last.get(job_id, 0 if self.is_whole else token - 1)
            if token != before + 1:
                self._tell(event, f"follows lease {before}")
        elif self.held.get(job_id, (0 if self.is_whole else token,))[0] != token:
            self._tell(event, "extends a lease that is not open")
        self.last[job_id] = token
        until_us = event.boot_us + event["lease_ms"] * 1000
        self.held[job_id] = (token, until_us, event.boot_id)

    def _end(self, event: Event) -> None:
        token, until_us, boot_id = self.held.pop(event["job_id"])
        if event.get("lease_token", token) != token:
            self._tell(event, f"ends lease {event['lease_token']} while lease {token} is open")
        if event.boot_id != boot_id:
            return
        if event.name in _SETTLES and event.boot_us > until_us:
            self._tell(event, f"settles {event.boot_us - until_us} µs after its lease")
        rescued = event.name == "job.lease_expired" and event.get("reason") == "expired"
        if rescued and event.boot_us < until_us:
            self._tell(event, f"rescues {until_us - event.boot_us} µs before the lease is over")

    def _tell(self, event: Event, what: str) -> None:
        self.found.append(f"seq {event.seq}: {event.name} of job {event['job_id']} {what}")


def _as_kept(jobs: Mapping[str, Job], folded: Mapping[str, Job]) -> Mapping[str, Job]:
    """``jobs`` without the payloads that the log was not to keep."""
    lost = {job_id for job_id, job in folded.items() if job.payload_is_lost} & jobs.keys()
    bare = {"payload_json": "", "payload_bytes": 0}
    return {**jobs, **{job_id: jobs[job_id].changed(bare) for job_id in lost}}


def _unlike(kind: str, folded: Mapping[str, object], kept: Mapping[str, object]) -> list[str]:
    return [
        f"{kind} {name}: the log says {folded.get(name)}, state.db {kept.get(name)}"
        for name in {**folded, **kept}
        if folded.get(name) != kept.get(name)
    ]
