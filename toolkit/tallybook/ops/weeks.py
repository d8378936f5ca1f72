"""Two periods of some days, one after the other: what became of this one against the one before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import polars

from tallybook.ops import questions
from tallybook.ops.finding import Finding
from tallybook.ops.thresholds import DEFAULTS, WeeklyReview
from tallybook.ops.warehouse import Warehouse
from tallybook.ops.windows import WHOLE, Instant, Span
from tallybook.ops.wording import command, counted

WEEK = 7
_RATIO = polars.when(polars.col("before") > 0).then(polars.col("now") / polars.col("before"))
_NAMED = 3
_BEGUN = 10  # a log that begins in the first tenth of the period before tells of all of it


def periods(
    warehouse: Warehouse, until: Instant = None, *, days: int = WEEK, zone: str = "UTC"
) -> tuple[Span, Span]:
    """The ``days`` before the last ones, and the last ones: up to ``until``, or the log's end."""
    _, end = questions.reach(warehouse, Span(until=until, zone=zone))
    length = timedelta(days=days)
    now = Span(end - length, end, zone=zone)
    return replace(now, since=end - 2 * length, until=end - length), now


def figures(warehouse: Warehouse, before: Span, now: Span) -> polars.DataFrame:
    """One row a figure: figure, before, now, ratio (null where before is 0 or null).

    arrived, done, dead, runs, failed_runs, failed_share, leases_lost, results_refused,
    cache_writes, and p95 of wait, run and total in seconds.
    """
    sides = [_period(warehouse, span) for span in (before, now)]
    rows = [{"figure": name, "before": sides[0][name], "now": sides[1][name]} for name in sides[0]]
    schema = {"figure": polars.String, "before": polars.Float64, "now": polars.Float64}
    return polars.DataFrame(rows, schema=schema).with_columns(ratio=_RATIO)


def new_errors(warehouse: Warehouse, now: Span) -> polars.DataFrame:
    """One row an error type that no run had before the span: error_type, runs, jobs, first_at,
    example_job_id, example_error."""
    return warehouse.frame("new_errors", now.bounds())


def left_open(warehouse: Warehouse, now: Span) -> polars.DataFrame:
    """One row a job that arrived before the span and has not ended at its end: job_id,
    idempotency_key, topic, arrived_at."""
    return warehouse.frame("left_open", now.bounds())


def days(warehouse: Warehouse, span: Span) -> polars.DataFrame:
    """One row a day of the span, by the clock of its zone: arrivals, starts, completions."""
    return questions.throughput(warehouse, replace(span, every="1d"))


def findings(
    warehouse: Warehouse,
    before: Span,
    now: Span,
    thresholds: WeeklyReview = DEFAULTS.weekly_review,
) -> list[Finding]:
    """What became worse between the periods, what is new in the last one, and what it left."""
    told = {row["figure"]: row for row in figures(warehouse, before, now).to_dicts()}
    why = _incomparable(warehouse, before, told, thresholds)
    compared = [] if why else _worse(warehouse, told, thresholds)
    found = [*compared, *_died(warehouse, now), *_new(warehouse, now), *_left(warehouse, now)]
    notes = [Finding("not_compared", "info", f"The periods are not compared: {why}")] if why else []
    if found:
        return [*found, *notes]
    return [Finding("clean", "info", "Nothing became worse, and nothing was left"), *notes]


def _period(warehouse: Warehouse, span: Span) -> dict[str, float | None]:
    counts = warehouse.frame("period_figures", span.bounds()).row(0, named=True)
    times = questions.latency(warehouse, replace(span, every=""))
    slow = {f"{name}_p95_s": times[f"{name}_p95_s"].item() for name in questions.MEASURES}
    share = counts["failed_runs"] / counts["runs"] if counts["runs"] else None
    return {**counts, "failed_share": share, **slow}


def _incomparable(
    warehouse: Warehouse,
    before: Span,
    told: Mapping[str, Mapping[str, Any]],
    thresholds: WeeklyReview,
) -> str:
    """Why the periods cannot be compared; empty where they can."""
    first, _ = questions.reach(warehouse, WHOLE)
    start, end = questions.reach(warehouse, before)
    if first > start + (end - start) / _BEGUN:
        return f"the log begins at {first:%Y-%m-%d %H:%M:%S}Z, after the period before began"
    few = min(told["arrived"]["before"], told["arrived"]["now"])
    if few < thresholds.least_jobs:
        return f"{few:,.0f} jobs arrived in one of them, fewer than {thresholds.least_jobs:,}"
    return ""


def _worse(
    warehouse: Warehouse, told: Mapping[str, Mapping[str, Any]], thresholds: WeeklyReview
) -> list[Finding]:
    found = []
    for name in questions.MEASURES:
        row = told[f"{name}_p95_s"]
        if row["ratio"] and row["ratio"] > thresholds.slower:
            title = f"95 of 100 jobs: {name} took {row['ratio']:,.1f} times as long as before"
            evidence = f"p95 {row['before']:,.3f} s before, {row['now']:,.3f} s now"
            act = command(warehouse.book, "analyze", "latency", "--by", "topic")
            found.append(Finding("slower", "warning", title, (name,), evidence, act))
    return [*found, *_failing(warehouse, told, thresholds), *_fewer(warehouse, told, thresholds)]


def _failing(
    warehouse: Warehouse, told: Mapping[str, Mapping[str, Any]], thresholds: WeeklyReview
) -> list[Finding]:
    share, runs = told["failed_share"], told["failed_runs"]
    if not (share["now"] and runs["now"] > runs["before"]):
        return []
    if share["before"] and share["now"] <= thresholds.more_failures * share["before"]:
        return []
    evidence = (f"{runs['before']:,.0f} runs failed before ({share['before'] or 0:.1%}), "
                f"{runs['now']:,.0f} now ({share['now']:.1%})")  # fmt: skip
    act = command(warehouse.book, "analyze", "latency", "--by", "error")
    return [Finding("more_failures", "warning", "More runs fail than before", (), evidence, act)]


def _fewer(
    warehouse: Warehouse, told: Mapping[str, Mapping[str, Any]], thresholds: WeeklyReview
) -> list[Finding]:
    row = told["arrived"]
    if not row["ratio"] or row["ratio"] >= thresholds.fewer_jobs:
        return []
    evidence = f"{row['before']:,.0f} jobs arrived before, {row['now']:,.0f} now"
    act = command(warehouse.book, "analyze", "throughput", "--every", "1d")
    return [Finding("fewer_jobs", "warning", "Fewer jobs arrive than before", (), evidence, act)]


def _died(warehouse: Warehouse, now: Span) -> list[Finding]:
    dead = warehouse.frame("dead", now.bounds())
    if dead.is_empty():
        return []
    act = command(warehouse.book, "runbook", "run", "dead_letters")
    told = "; ".join(dead["detail"].unique(maintain_order=True).to_list()[:_NAMED])
    title = f"Jobs that died and lie in the dead letters: {dead.height:,}"
    return [Finding("dead", "problem", title, _keys(dead), told, act)]


def _new(warehouse: Warehouse, now: Span) -> list[Finding]:
    first, _ = questions.reach(warehouse, WHOLE)
    found = new_errors(warehouse, now)
    if found.is_empty() or (now.start_at and first >= now.start_at):
        return []
    words = [f"{row['error_type']}: {counted(row['runs'], 'run')}, since "
             f"{row['first_at']:%Y-%m-%d %H:%M:%S}Z, such as: {row['example_error'] or 'no words'}"
             for row in found.head(_NAMED).to_dicts()]  # fmt: skip
    act = command(warehouse.book, "trace", str(found["example_job_id"][0]))
    title = f"Errors that were not seen before: {found.height:,}"
    return [
        Finding("new_error", "warning", title, tuple(found["error_type"]), "; ".join(words), act)
    ]


def _left(warehouse: Warehouse, now: Span) -> list[Finding]:
    left = left_open(warehouse, now)
    if left.is_empty():
        return []
    told = f"the oldest arrived at {left['arrived_at'][0]:%Y-%m-%d %H:%M:%S}Z"
    act = command(warehouse.book, "trace", str(left["job_id"][0]))
    title = f"Jobs from before that have not ended: {left.height:,}"
    return [Finding("left_open", "warning", title, _keys(left), told, act)]


def _keys(rows: polars.DataFrame) -> tuple[str, ...]:
    return tuple(rows.select(polars.coalesce("idempotency_key", "job_id")).to_series())
