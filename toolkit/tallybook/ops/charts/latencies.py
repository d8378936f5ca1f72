"""Charts of time: how long jobs wait, run and take in all."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import polars

from tallybook.errors import BadInput
from tallybook.ops import periods, questions, windows
from tallybook.ops.charts import drawing
from tallybook.ops.charts.drawing import BLUE, HEIGHT, ORANGE, RED, WIDTH, Chart
from tallybook.ops.periods import MARKS
from tallybook.ops.questions import MEASURES
from tallybook.ops.warehouse import Warehouse
from tallybook.ops.windows import AUTO, WHOLE, Instant, Span
from tallybook.ops.wording import counted

_SIDES = ("before", "after")


def latency_bands(warehouse: Warehouse, span: Span = WHOLE) -> Chart:
    """p50, p95 and p99 of wait, run and total, by when the job was enqueued; a panel each."""
    title = "Latency by time of arrival"
    every = replace(span, every=span.every or AUTO)
    frame = questions.latency(warehouse, drawing.legible(warehouse, every))
    long = _long(frame, "window_start")
    if long["seconds"].null_count() == long.height:
        return drawing.empty(title, "no job of this span has started")
    alt = drawing.altair_module()
    scale = drawing.colours(MARKS, (BLUE, ORANGE, RED))
    known = _known(long)
    panels = [
        alt.Chart(drawing.rows(long.filter(polars.col("measure") == measure)))
        .mark_line(strokeWidth=1.8, point=alt.OverlayMarkDef(size=10))
        .encode(
            x=drawing.time_axis(frame, "window_start", span.zone, quiet=measure != known[-1]),
            y=alt.Y("seconds:Q", title=f"{measure} (s)"),
            color=alt.Color("mark:N", title=None, scale=scale,
                            legend=alt.Legend(symbolType="stroke")),
            strokeDash=alt.StrokeDash("mark:N", title=None, scale=drawing.dashes(MARKS),
                                      legend=alt.Legend(symbolType="stroke")),
        )
        .properties(width=WIDTH, height=120)
        for measure in known
    ]  # fmt: skip
    n, still_open = frame["n"].sum(), frame["open"].sum()
    said = f"{n:,} jobs ended, {still_open:,} open (not in the percentiles)"
    untold = [f"no {measure} is known" for measure in MEASURES if measure not in known]
    return drawing.dressed(alt.vconcat(*panels, spacing=8), title, "; ".join([said, *untold]))


def _known(long: polars.DataFrame) -> list[str]:
    """The measures with a value: a log may say of no job when it was due, or when it started."""
    found = long.drop_nulls("seconds")["measure"].unique()
    return [measure for measure in MEASURES if measure in found]


def latency_heatmap(warehouse: Warehouse, span: Span = WHOLE) -> Chart:
    """How many jobs took how long from due to end, by when they were enqueued."""
    title = "How long jobs take, by time of arrival"
    frame = questions.latency_cells(warehouse, drawing.legible(warehouse, span))
    ended = frame.drop_nulls("from_s")
    if ended.is_empty():
        return drawing.empty(title, "no job of this span has ended")
    alt = drawing.altair_module()
    chart = alt.Chart(drawing.rows(ended)).mark_rect()
    chart = chart.encode(
        x=drawing.time_axis(frame, "window_start", span.zone),
        x2="window_end:T",
        y=alt.Y("from_s:Q", title="total (s)", scale=alt.Scale(type="log", nice=False),
                axis=alt.Axis(format="~g", tickCount=6)),
        y2="to_s:Q",
        color=alt.Color("jobs:Q", title="jobs", scale=alt.Scale(scheme="viridis", type="sqrt",
                                                               reverse=True)),
    ).properties(width=WIDTH, height=HEIGHT)  # fmt: skip
    chart = drawing.told(chart, drawing.WINDOW, span.zone, {
        "total (s)": drawing.between("from_s", "to_s"), "jobs": "datum.jobs",
    })  # fmt: skip
    return drawing.dressed(chart, title, f"{frame['jobs'].sum():,} jobs that ended")


def before_after(
    warehouse: Warehouse,
    before: Span | None = None,
    after: Span | None = None,
    *,
    moment: Instant = None,
    zone: str = "UTC",
) -> Chart:
    """Percentiles of the jobs enqueued in two periods; without both, before and after ``moment``
    (the middle of the log)."""
    title = "Before and after"
    try:
        halves = (before, after) if before and after else None
        periods_ = halves or periods.halves(warehouse, Span(zone=zone), moment=moment)
    except BadInput:
        return drawing.empty(title, "the log has jobs on one side of that moment only")
    found = [questions.latency(warehouse, replace(span, every="")) for span in periods_]
    sides = [
        _long(frame).with_columns(side=polars.lit(side))
        for side, frame in zip(_SIDES, found, strict=True)
    ]
    long = polars.concat(sides).drop_nulls()
    if long.is_empty():
        return drawing.empty(title, "no job has started")
    told = [
        f"{side}: {counted(int(frame['n'].item()), 'job')}, {_told(warehouse, span)}"
        for side, frame, span in zip(_SIDES, found, periods_, strict=True)
    ]
    return drawing.dressed(_dumbbells(long), title, told)


def _told(warehouse: Warehouse, span: Span) -> str:
    zone = windows.named_zone(span.zone)
    first, last = (at.astimezone(zone) for at in questions.reach(warehouse, span))
    style = "%Y-%m-%d %H:%M:%S" + (".%f" if last - first < timedelta(minutes=1) else "")
    return f"{first:{style}} to {last:{style}} ({span.zone})"


def _dumbbells(long: polars.DataFrame) -> Chart:
    alt = drawing.altair_module()
    base = alt.Chart(drawing.rows(long)).encode(
        x=alt.X("seconds:Q", title="seconds"), y=alt.Y("mark:N", title=None, sort=list(MARKS))
    )
    points = base.mark_point(filled=True, size=110, opacity=0.9).encode(
        color=alt.Color("side:N", title=None, scale=drawing.colours(_SIDES, (ORANGE, BLUE))),
        shape=alt.Shape(
            "side:N",
            title=None,
            scale=alt.Scale(domain=list(_SIDES), range=["circle", "square"]),
        ),
    )
    line = base.mark_line(color="#bbbbbb").encode(detail="mark:N")
    layered = alt.layer(line, points).properties(width=WIDTH - 60, height=70)
    return layered.facet(row=alt.Row("measure:N", title=None, sort=list(MEASURES)), spacing=6)


def _long(frame: polars.DataFrame, *index: str) -> polars.DataFrame:
    """One row a measure and percentile; null where nothing was measured, so that a line breaks."""
    columns = [f"{measure}_{mark}_s" for measure in MEASURES for mark in MARKS]
    long = frame.unpivot(columns, index=list(index), variable_name="name", value_name="seconds")
    parts = polars.col("name").str.split("_")
    return long.with_columns(measure=parts.list.get(0), mark=parts.list.get(1))
