"""Charts of amounts over time: what comes, starts and is completed, and what waits."""

from __future__ import annotations

from datetime import timedelta

import polars

from tallybook.ops import health, questions, weeks
from tallybook.ops.charts import drawing
from tallybook.ops.charts.drawing import BLUE, GREEN, HEIGHT, ORANGE, RED, WIDTH, Chart
from tallybook.ops.warehouse import Warehouse
from tallybook.ops.windows import WHOLE, Span
from tallybook.ops.wording import counted

_RATES = ("arrivals", "starts", "completions")
_DEPTHS = ("pending", "leased", "dead")
_ENDS = ("arrivals", "completions")
_PARTS = ("jobs", "cache", "workers and topics", "log")
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


def by_day(warehouse: Warehouse, span: Span = WHOLE) -> Chart:
    """Jobs that arrived and were completed, two bars a day of the zone of the span."""
    title = "Jobs by day"
    frame = weeks.days(warehouse, span)
    if not frame.select(_ENDS).sum_horizontal().sum():
        return drawing.empty(title, "no job arrived or was completed in this span")
    alt = drawing.altair_module()
    days = frame.with_columns(day=polars.col("window_start").dt.strftime("%a %m-%d"))
    long = days.unpivot(_ENDS, index="day", variable_name="what", value_name="jobs")
    counts = drawing.count_axis(long["jobs"].to_list())
    chart = alt.Chart(drawing.rows(long)).mark_bar().encode(
        x=alt.X("day:N", title=f"day in {span.zone}", sort=days["day"].to_list(),
                axis=alt.Axis(labelAngle=0, labelOverlap="parity")),
        xOffset=alt.XOffset("what:N", sort=list(_ENDS)),
        y=alt.Y("jobs:Q", title="jobs", axis=counts),
        color=alt.Color("what:N", title=None, scale=drawing.colours(_ENDS, (ORANGE, GREEN))),
    ).properties(width=WIDTH, height=HEIGHT)  # fmt: skip
    return drawing.dressed(chart, title)


def growth(warehouse: Warehouse, span: Span = WHOLE) -> Chart:
    """Events of the log in each window, stacked by what they are of."""
    title = "The log over time"
    frame = health.growth(warehouse, drawing.legible(warehouse, span))
    written = frame.drop_nulls("part")
    if written.is_empty():
        return drawing.empty(title, "the log has no event in this span")
    alt = drawing.altair_module()
    stacks = written.group_by("window_start").agg(polars.col("events").sum())
    bars = alt.Chart(drawing.rows(written)).mark_bar(orient="vertical", stroke="white",
                                                     strokeWidth=0.5)  # fmt: skip
    chart = bars.encode(
        x=drawing.time_axis(frame, "window_start", span.zone),
        x2="window_end:T",
        y=alt.Y("events:Q", title=f"events every {_width(frame)}", stack="zero",
                axis=drawing.count_axis(stacks["events"].to_list())),
        color=alt.Color("part:N", title=None,
                        scale=drawing.colours(_PARTS, (BLUE, ORANGE, GREEN, RED))),
    ).properties(width=WIDTH, height=HEIGHT)  # fmt: skip
    chart = drawing.told(chart, drawing.WINDOW, span.zone,
                         {"events": "datum.events", "part": "datum.part"})  # fmt: skip
    return drawing.dressed(chart, title, counted(int(stacks["events"].sum()), "event"))


def _width(frame: polars.DataFrame) -> str:
    """The length of the windows in words."""
    widest = frame.select((polars.col("window_end") - polars.col("window_start")).max()).item()
    for unit, word in _UNITS.items():
        if widest >= unit and not widest % unit:
            count = widest // unit
            return word if count == 1 else f"{count} {word}s"
    return str(widest)
