"""Charts of amounts over time: what comes, starts and is completed, and what waits."""

from __future__ import annotations

from datetime import timedelta

import polars

from tallybook.ops import questions
from tallybook.ops.charts import drawing
from tallybook.ops.charts.drawing import BLUE, GREEN, HEIGHT, ORANGE, RED, WIDTH, Chart
from tallybook.ops.warehouse import Warehouse
from tallybook.ops.windows import WHOLE, Span

_RATES = ("arrivals", "starts", "completions")
_DEPTHS = ("pending", "leased", "dead")
_UNITS = {
    timedelta(days=1): "day",
    timedelta(hours=1): "hour",
    timedelta(minutes=1): "minute",
    timedelta(seconds=1): "second",
    timedelta(milliseconds=1): "millisecond",
}


def throughput(warehouse: Warehouse, span: Span = WHOLE) -> Chart:
    """Arrivals, starts and completions per second, a step a window."""
    title = "Throughput"
    frame = questions.throughput(warehouse, drawing.legible(warehouse, span))
    if not frame.select(_RATES).sum_horizontal().sum():
        return drawing.empty(title, "no job arrived, started or ended in this span")
    alt = drawing.altair_module()
    long = frame.unpivot([f"{rate}_per_s" for rate in _RATES], index="window_start",
                         variable_name="what", value_name="per_s")  # fmt: skip
    long = long.with_columns(polars.col("what").str.strip_suffix("_per_s"))
    lines = alt.Chart(drawing.rows(long)).mark_line(interpolate="step-after", strokeWidth=1.8)
    chart = lines.encode(
        x=drawing.time_axis(frame, "window_start", span.zone),
        y=alt.Y("per_s:Q", title="jobs per second"),
        color=alt.Color("what:N", title=None, scale=drawing.colours(_RATES, (ORANGE, BLUE, GREEN))),
        strokeDash=alt.StrokeDash("what:N", title=None, scale=drawing.dashes(_RATES)),
    ).properties(width=WIDTH, height=HEIGHT)
    return drawing.dressed(chart, title, f"a step every {_width(frame)}")


def depth(warehouse: Warehouse, span: Span = WHOLE) -> Chart:
    """Jobs that are pending, leased or dead at the end of each window."""
    title = "Depth of the queue"
    frame = questions.depth(warehouse, drawing.legible(warehouse, span))
    if not frame.select(_DEPTHS).sum_horizontal().sum():
        return drawing.empty(title, "no job was open or dead in this span")
    alt = drawing.altair_module()
    long = frame.unpivot(_DEPTHS, index="window_end", variable_name="status", value_name="jobs")
    lines = alt.Chart(drawing.rows(long)).mark_line(interpolate="step-after", strokeWidth=1.8)
    chart = lines.encode(
        x=drawing.time_axis(frame, "window_end", span.zone),
        y=alt.Y("jobs:Q", title="jobs", axis=drawing.count_axis(long["jobs"].to_list())),
        color=alt.Color(
            "status:N", title=None, scale=drawing.colours(_DEPTHS, (ORANGE, BLUE, RED))
        ),
        strokeDash=alt.StrokeDash("status:N", title=None, scale=drawing.dashes(_DEPTHS)),
    ).properties(width=WIDTH, height=HEIGHT)
    return drawing.dressed(chart, title, f"counted every {_width(frame)}")


def _width(frame: polars.DataFrame) -> str:
    """The length of the windows in words."""
    widest = frame.select((polars.col("window_end") - polars.col("window_start")).max()).item()
    for unit, word in _UNITS.items():
        if widest >= unit and not widest % unit:
            count = widest // unit
            return word if count == 1 else f"{count} {word}s"
    return str(widest)
