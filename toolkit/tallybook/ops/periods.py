"""Two periods compared: what changed between them, group by group."""

from dataclasses import replace
from datetime import datetime

import polars

from tallybook.errors import BadInput
from tallybook.ops import questions, windows
from tallybook.ops.questions import MEASURES
from tallybook.ops.warehouse import Warehouse
from tallybook.ops.windows import WHOLE, Instant, Span

MARKS = ("p50", "p95", "p99")
_INDEX = ("jobs_per_s", "open", *(f"{measure}_{mark}_s" for measure in MEASURES for mark in MARKS))


def halves(
    warehouse: Warehouse, span: Span = WHOLE, *, moment: Instant = None
) -> tuple[Span, Span]:
    """The span before and after ``moment``, by default its middle. Raises BadInput where the
    moment is not inside the span."""
    start, end = questions.reach(warehouse, span)
    middle = windows.instant(moment, windows.named_zone(span.zone)) or start + (end - start) / 2
    if not start < middle < end:
        raise BadInput(
            f"{middle.isoformat()} is not inside {start.isoformat()} to {end.isoformat()}"
        )
    return replace(span, since=start, until=middle), replace(span, since=middle, until=end)


def compare(
    warehouse: Warehouse, before: Span, after: Span, *, by: str | None = None
) -> polars.DataFrame:
    """One row a group and measure of the jobs enqueued in each period: measure, before, after,
    difference, ratio (after / before; null where before is 0 or null), n_before, n_after.

    Measures are jobs_per_s (jobs that arrived, over the length of the period), open, and p50_s,
    p95_s and p99_s of wait, run and total. A group that one period lacks has nulls there, and
    0 jobs. ``by`` is topic, worker or error (the last of a job), or nothing for all jobs.
    """
    index = by or "group"
    sides = [_measured(warehouse, span, by) for span in (before, after)]
    joined = sides[0].join(
        sides[1], on=[index, "measure"], how="full", coalesce=True, suffix="_after"
    )
    counts = polars.col("measure").is_in(["jobs_per_s", "open"])
    filled = joined.rename({"value": "before", "value_after": "after", "n": "n_before",
                            "n_after": "n_after"}).with_columns(
        polars.col("n_before", "n_after").fill_null(0),
        *(polars.when(counts).then(polars.col(side).fill_null(0)).otherwise(side).alias(side)
          for side in ("before", "after")),
    )  # fmt: skip
    judged = filled.with_columns(
        difference=polars.col("after") - polars.col("before"),
        ratio=polars.when(polars.col("before") > 0).then(
            polars.col("after") / polars.col("before")
        ),
        order=polars.col("measure").replace_strict(_INDEX, range(len(_INDEX))),
    ).sort(index, "order")
    names = [index, "measure", "before", "after", "difference", "ratio", "n_before", "n_after"]
    return judged.select(names if by else names[1:])


def _measured(warehouse: Warehouse, span: Span, by: str | None) -> polars.DataFrame:
    """One row a group and measure: value, and n, the jobs that it is of."""
    asked = replace(span, every="")
    start, end = questions.reach(warehouse, asked)
    found = questions.latency(warehouse, asked, by=by)
    named = found if by else found.with_columns(group=polars.lit(""))
    counted = named.with_columns(
        n=polars.col("n") + polars.col("open"),
        jobs_per_s=(polars.col("n") + polars.col("open")) / _seconds(start, end),
        open=polars.col("open").cast(polars.Float64),
    )
    return counted.unpivot(
        _INDEX, index=[by or "group", "n"], variable_name="measure", value_name="value"
    )


def _seconds(start: datetime, end: datetime) -> float:
    return (end - start).total_seconds()
