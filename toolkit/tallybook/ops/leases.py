"""Leases and what became of them: which, how, what proves it, what mends it."""

import shlex
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import polars

from tallybook.ops import heartbeats, windows
from tallybook.ops.warehouse import Warehouse
from tallybook.ops.windows import MICROSECOND, WHOLE, Instant, Span
from tallybook.ops.wording import counted, naming

TAKEN = ("expired", "worker died", "reboot", "refused", "overdue")
STATUSES = ("held", "late", "expired", "orphan", "hung", "waiting in memory", "double run",
            "clock-skewed", "poison")  # fmt: skip
FINE = ("held", "waiting in memory")
_OVER = polars.coalesce("refused_at", "ended_at", "locked_until")
_STUCK = (
    "job_id", "idempotency_key", "lease_token", "topic", "worker", "how", "leased_at",
    "locked_until", "started_at", "ended_at", "refused_at", "next_worker", "next_leased_at",
    "job_status", "evidence", "command",
)  # fmt: skip


def stuck_leases(
    warehouse: Warehouse, span: Span = WHOLE, *, at: Instant = None
) -> polars.DataFrame:
    """One row a lease that was not ended by its holder in time, as of ``at`` (the log's end).

    ``how`` is expired, worker died or reboot (taken from its holder), refused (and its holder came
    back too late), overdue (still held after ``locked_until``) or late (settled after it, and
    accepted). ``evidence`` are the numbers (seq) of its events; ``command`` shows its history.
    Only leases that reach into the span, as of its end.
    """
    found = _found(warehouse, span, at).filter(polars.col("how").is_not_null())
    lone = found.unique(["job_id", "lease_token"], keep="first", maintain_order=True)
    return lone.with_columns(command=_traces(warehouse, lone)).select(_STUCK)


def lease_states(
    warehouse: Warehouse, span: Span = WHOLE, *, at: Instant = None
) -> polars.DataFrame:
    """One row a lease and status, as of ``at`` (the log's end), that reaches into the span.

    Every open lease is there: held, orphan (its worker is gone), expired (its time is over), hung
    (it runs ten times longer than 99 of 100 runs of its topic, and longer than its lease) or
    waiting in memory (claimed, not started). Of those that ended: late (settled after its time),
    expired (taken from its holder), hung (so, while its handler ran), waiting in memory (so,
    before that began), double run (two runs of the job overlapped), clock-skewed (the clock was
    set meanwhile) and poison (the job took two workers or more with it). ``evidence`` are the
    numbers (seq) of its events from ``segment`` on, ``detail`` says it in words and numbers,
    ``command`` is what to type.
    """
    both = polars.concat(
        [_found(warehouse, span, at), _doubled(warehouse, span, at)], how="diagonal_relaxed"
    )
    rows, named = both.to_dicts(), naming(warehouse.book)
    told = both.with_columns(
        detail=polars.Series([_detail(row) for row in rows], dtype=polars.String),
        command=_traces(warehouse, both)
        if warehouse.imported
        else polars.Series([_mend(named, row) for row in rows], dtype=polars.String),
    )
    return told.drop("kills", "run_p99_s", "runs", "clock_moved_s", "now_at", "overlap_s").sort(
        "leased_at", "job_id", "lease_token", "status"
    )


def releasable(leases: polars.DataFrame) -> list[str]:
    """The jobs of ``lease_states`` whose lease is still open and will not be ended by its holder:
    orphan or expired."""
    left = leases.filter(
        polars.col("status").is_in(["orphan", "expired"]) & polars.col("ended_at").is_null()
    )
    return [str(job_id) for job_id in left["job_id"].unique(maintain_order=True)]


def double_runs(warehouse: Warehouse, span: Span = WHOLE) -> polars.DataFrame:
    """One row a pair of runs of one job that overlapped: both leases, workers and intervals,
    overlap_s, winner_token and winner_settle (whose settle was taken), refused_tokens, evidence
    (seqs), segments and command.

    A run reaches from its start to its end as its worker measured it; one that never settled to
    the last sign that its worker gave of it. So an overlap is proven, not supposed.
    """
    found = warehouse.frame("double_runs", span.bounds())
    return found.with_columns(command=_traces(warehouse, found))


def _found(warehouse: Warehouse, span: Span, at: Instant) -> polars.DataFrame:
    start, end = span.start_at, span.end_at
    moment = windows.instant(at, windows.named_zone(span.zone)) or (end and end - MICROSECOND)
    beats = heartbeats.read(warehouse.book)
    asked = {"at": moment, "beating": beats is not None, "beats": [asdict(b) for b in beats or []]}
    found = warehouse.frame("lease_states", asked)
    return found.filter(start <= _OVER) if start else found


def _doubled(warehouse: Warehouse, span: Span, at: Instant) -> polars.DataFrame:
    """The later lease of each double run, as a row of ``lease_states``."""
    until = at if at else span.until
    pairs = double_runs(warehouse, Span(span.since, until, zone=span.zone))
    return pairs.select(
        "job_id",
        "idempotency_key",
        polars.col("second_token").alias("lease_token"),
        polars.col("second_worker").alias("worker"),
        polars.lit("double run").alias("status"),
        polars.col("second_leased_at").alias("leased_at"),
        polars.col("second_started_at").alias("started_at"),
        polars.col("second_until_at").alias("ended_at"),
        polars.col("first_worker").alias("next_worker"),
        polars.col("segments").list.first().alias("segment"),
        "evidence",
        "overlap_s",
    )


def _detail(row: Mapping[str, Any]) -> str:
    told = _DETAILS.get(row["status"], _taken)
    return told(row)


def _held(row: Mapping[str, Any]) -> str:
    if row["locked_until"] is None:
        return f"{row['worker'] or 'a worker'} has it; the log does not say until when"
    return f"{row['worker']} holds it until {row['locked_until']:%H:%M:%S}Z"


def _late(row: Mapping[str, Any]) -> str:
    over = (row["ended_at"] - row["locked_until"]).total_seconds()
    return f"{row['worker']} settled it {over:,.3f} s after its end; nobody had taken it"


def _taken(row: Mapping[str, Any]) -> str:
    if row["how"] == "overdue":
        over = (row["now_at"] - row["locked_until"]).total_seconds()
        return f"{row['worker']} holds it {over:,.3f} s longer than it may"
    said = f"taken from {row['worker']}: {row['how']}"
    return f"{said}; its late result came" if row["how"] == "refused" else said


def _orphan(row: Mapping[str, Any]) -> str:
    return f"{row['worker']} is gone; held until {row['locked_until']:%H:%M:%S}Z"


def _hung(row: Mapping[str, Any]) -> str:
    ran = ((row["ended_at"] or row["now_at"]) - row["started_at"]).total_seconds()
    said = f"its handler had run {ran:,.3f} s"
    if not row["runs"]:
        return said
    runs = counted(row["runs"], "run")
    return f"{said}; 99 % of {runs} of its topic took at most {row['run_p99_s']:,.3f} s"


def _waiting(row: Mapping[str, Any]) -> str:
    waited = ((row["ended_at"] or row["now_at"]) - row["leased_at"]).total_seconds()
    return f"{row['worker']} has not started it in {waited:,.3f} s"


def _double(row: Mapping[str, Any]) -> str:
    return f"{row['next_worker']} and {row['worker']} ran it at once for {row['overlap_s']:,.3f} s"


def _skewed(row: Mapping[str, Any]) -> str:
    if row["clock_moved_s"] is not None and abs(row["clock_moved_s"]) >= 1:
        return f"the clock was set by {row['clock_moved_s']:+,.3f} s while it was held"
    return "its run began before it was claimed, by the clock of its worker"


def _poison(row: Mapping[str, Any]) -> str:
    return f"{counted(row['kills'], 'lease')} of the job did not outlive it"


_DETAILS = {
    "held": _held, "late": _late, "expired": _taken, "orphan": _orphan, "hung": _hung,
    "waiting in memory": _waiting, "double run": _double, "clock-skewed": _skewed,
    "poison": _poison,
}  # fmt: skip


def _mend(named: tuple[str, ...], row: Mapping[str, Any]) -> str:
    """What to type about it: what mends it where something does, else what shows it."""
    status, job_status, still_open = row["status"], row["job_status"], row["ended_at"] is None
    words: tuple[str, ...] = ("trace",)
    if status == "poison" and job_status in ("dead", "pending", "leased"):
        words = ("jobs", "discard" if job_status == "dead" else "cancel")
    elif status == "hung" and still_open:
        words = ("jobs", "cancel")
    elif status in ("orphan", "expired") and still_open:
        words = ("jobs", "release")
    return shlex.join(("tallybook", *words, row["job_id"], *named))


def _traces(warehouse: Warehouse, frame: polars.DataFrame) -> polars.Series:
    """The command that shows the history of each job."""
    named = naming(warehouse.book)
    told = [shlex.join(("tallybook", "trace", job, *named)) for job in frame["job_id"]]
    return polars.Series(told, dtype=polars.String)
