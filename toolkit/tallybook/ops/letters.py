"""Dead letters: which jobs lie there, of what they died, and what may be done about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars

from tallybook.ops.finding import Finding
from tallybook.ops.thresholds import DEFAULTS, DeadLetters
from tallybook.ops.warehouse import Warehouse
from tallybook.ops.windows import WHOLE, Span
from tallybook.ops.wording import command, counted

_ADVICE = {
    "may pass": "the other side may answer by now: requeue, once it does",
    "stays": "the other side refuses the job itself: mend its cause, or discard",
    "unknown": "an error of the handler: mend it, then requeue",
}
_ACTS = {"may pass": "requeue", "stays": "discard", "unknown": "requeue"}


def dead_letters(
    warehouse: Warehouse, span: Span = WHOLE, *, topic: str = "", error: str = ""
) -> polars.DataFrame:
    """One row a job that lies in the dead letters and died in the span, oldest first.

    Of ``topic`` and with ``error`` in the type or words of its last error, where they are given.
    ``outlook`` is ``may pass`` (HTTP 408, 425, 429 and 5xx, a lost answer, a timeout, a server
    that was not reached), ``stays`` (any other HTTP status, a payload that does not fit) or
    ``unknown``. ``requeues`` counts how often it was taken out before; ``evidence`` are the numbers
    (seq) of the events of its deaths.
    """
    return warehouse.frame("dead_letters", {**span.bounds(), "topic": topic, "error": error})


def by_cause(letters: polars.DataFrame) -> polars.DataFrame:
    """One row a topic, error type and outlook of ``dead_letters``, most first: jobs, came_back
    (dead again after a requeue), first_at, last_at, example_job_id, example_error."""
    causes = letters.group_by("topic", "error_type", "outlook", maintain_order=True).agg(
        polars.len().alias("jobs"),
        (polars.col("requeues") > 0).sum().alias("came_back"),
        polars.col("died_at").min().alias("first_at"),
        polars.col("died_at").max().alias("last_at"),
        polars.col("job_id").first().alias("example_job_id"),
        polars.col("error").first().alias("example_error"),
    )
    return causes.sort("jobs", "topic", "error_type", descending=[True, False, False])


def chosen(letters: polars.DataFrame, limit: int) -> list[str]:
    """The ids of the oldest ``limit`` of ``dead_letters``."""
    return [str(job_id) for job_id in letters["job_id"].head(limit)]


def findings(
    warehouse: Warehouse,
    span: Span = WHOLE,
    thresholds: DeadLetters = DEFAULTS.dead_letters,
    *,
    topic: str = "",
    error: str = "",
) -> list[Finding]:
    """A finding a topic and error of which more lie there than is borne, and one of the jobs that
    came back after they had been requeued."""
    letters = dead_letters(warehouse, span, topic=topic, error=error)
    found = [
        _cause(warehouse, cause, letters)
        for cause in by_cause(letters).iter_rows(named=True)
        if cause["jobs"] > thresholds.jobs
    ]
    back = letters.filter(polars.col("requeues") >= max(thresholds.came_back, 1))
    if back.height:
        found.append(_came_back(warehouse, back))
    borne = f", {counted(letters.height, 'dead letter')} borne" if letters.height else ""
    where = " in this window" if span.narrow else ""
    clean = [Finding("clean", "info", f"No job in the dead letters{where}{borne}")]
    return found or clean


def _cause(warehouse: Warehouse, cause: Mapping[str, Any], letters: polars.DataFrame) -> Finding:
    same = (polars.col("topic") == cause["topic"]) & (
        polars.col("error_type") == cause["error_type"]
    )
    ids = _named(letters.filter(same & (polars.col("outlook") == cause["outlook"])))
    title = f"Dead letters of {cause['topic']} with {cause['error_type']}: {cause['jobs']:,}"
    told = (
        f"from {cause['first_at']:%Y-%m-%d %H:%M:%S}Z to {cause['last_at']:%Y-%m-%d %H:%M:%S}Z, "
        f"such as: {cause['example_error'] or 'no words'}; {_ADVICE[cause['outlook']]}"
    )
    wanted = ("--topic", cause["topic"], "--error", cause["error_type"], "--dry-run")
    words = ("jobs", _ACTS[cause["outlook"]], *wanted)
    act = _shown_only(warehouse, cause["example_job_id"]) or command(warehouse.book, *words)
    return Finding("dead_letters", "problem", title, ids, told, act)


def _came_back(warehouse: Warehouse, back: polars.DataFrame) -> Finding:
    most = int(str(back["requeues"].max()))
    title = f"Jobs that died again after they were requeued: {back.height:,}"
    told = f"up to {counted(most, 'requeue')}; another one will not help them"
    discard = command(warehouse.book, "jobs", "discard", *back["job_id"].head(3).to_list())
    act = _shown_only(warehouse, back["job_id"][0]) or discard
    return Finding("came_back", "warning", title, _named(back), told, act)


def _shown_only(warehouse: Warehouse, job_id: str) -> str:
    """What to type where there is no queue that could be changed."""
    return command(warehouse.book, "trace", job_id) if warehouse.imported else ""


def _named(letters: polars.DataFrame) -> tuple[str, ...]:
    return tuple(letters.select(polars.coalesce("idempotency_key", "job_id")).to_series())
