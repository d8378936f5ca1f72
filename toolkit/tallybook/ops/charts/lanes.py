"""The chart of leases: a lane each worker."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars

from tallybook.ops import questions
from tallybook.ops.charts import drawing
from tallybook.ops.charts.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, WIDTH, Chart
from tallybook.ops.leases import stuck_leases
from tallybook.ops.warehouse import Warehouse
from tallybook.ops.windows import WHOLE, Span
from tallybook.ops.wording import counted

_MOST_LANES = 24
_MOST_STUCK = 500
_HOWS = ("expired", "refused", "reboot", "overdue", "late", "worker died")
_COLOURS = (RED, PURPLE, "#000000", ORANGE, GREEN, GREY)


def lease_lanes(warehouse: Warehouse, span: Span = WHOLE) -> Chart:
    """How busy each worker was, and over it each lease that its holder did not end in time."""
    title = "Leases by worker"
    every_window = questions.busy(warehouse, drawing.legible(warehouse, span))
    busy = every_window.drop_nulls("worker")
    if busy.is_empty():
        return drawing.empty(
            title, warehouse.silent.get("workers", "no lease was held in this span")
        )
    stuck = _stuck(warehouse, span)
    lanes = _lanes(busy, stuck)
    shown = stuck.filter(polars.col("worker").is_in(lanes)).head(_MOST_STUCK)
    x = drawing.time_axis(every_window, "window_start", span.zone)
    layers = [_busy(busy.filter(polars.col("worker").is_in(lanes)), lanes, x, span.zone)]
    if shown.height:
        layers.append(_bars(shown, lanes, span.zone))
    alt = drawing.altair_module()
    chart = alt.layer(*layers).resolve_scale(color="independent")
    chart = chart.properties(width=WIDTH - 100, height=alt.Step(24))
    return drawing.dressed(chart, title, _said(busy, lanes, stuck, shown))


def _stuck(warehouse: Warehouse, span: Span) -> polars.DataFrame:
    start, end = questions.reach(warehouse, span)
    over = polars.coalesce("refused_at", "ended_at", "locked_until")
    found = stuck_leases(warehouse, replace(span, since=None)).with_columns(over_at=over)
    inside = (polars.col("leased_at") < end) & (polars.col("over_at") >= start)
    clipped = found.filter(inside).with_columns(
        leased_at=polars.col("leased_at").clip(start, end),
        over_at=polars.col("over_at").clip(start, end),
    )
    return clipped.with_columns(polars.col("leased_at", "over_at").dt.convert_time_zone(span.zone))


def _lanes(busy: polars.DataFrame, stuck: polars.DataFrame) -> list[str]:
    """The workers with stuck leases first, then the busiest; in the order of their names."""
    counted = busy.group_by("worker").agg(polars.col("held_s").sum()).join(
        stuck.group_by("worker").len("stuck"), on="worker", how="left"
    )  # fmt: skip
    ranked = counted.with_columns(polars.col("stuck").fill_null(0)).sort(
        "stuck", "held_s", "worker", descending=[True, True, False]
    )
    return sorted(ranked["worker"].head(_MOST_LANES).to_list())


def _busy(busy: polars.DataFrame, lanes: list[str], x: Any, zone: str) -> Chart:
    alt = drawing.altair_module()
    chart = alt.Chart(drawing.rows(busy)).mark_rect().encode(
        x=x,
        x2="window_end:T",
        y=alt.Y("worker:N", title=None, sort=lanes),
        color=alt.Color("held:Q", title="leases held",
                        scale=alt.Scale(range=["#eaf3f9", BLUE], domainMin=0),
                        legend=alt.Legend(format=",.3~r", gradientLength=120)),
    )  # fmt: skip
    return drawing.told(chart, drawing.WINDOW, zone, drawing.HELD)


def _bars(stuck: polars.DataFrame, lanes: list[str], zone: str) -> Chart:
    alt = drawing.altair_module()
    hows = [how for how in _HOWS if how in stuck["how"].to_list()]
    scale = drawing.colours(hows, [_COLOURS[_HOWS.index(how)] for how in hows])
    shown = stuck.select("worker", "leased_at", "over_at", "how", "job_id")
    chart = alt.Chart(drawing.rows(shown)).mark_bar(
        height=9, stroke="white", strokeWidth=1, minBandSize=3
    ).encode(
        x=alt.X("leased_at:T"),
        x2="over_at:T",
        y=alt.Y("worker:N", title=None, sort=lanes),
        color=alt.Color("how:N", title="stuck lease", scale=scale),
    )  # fmt: skip
    words = {"worker": "datum.worker", "stuck lease": "datum.how", "job": "datum.job_id"}
    return drawing.told(chart, ("leased_at", "over_at"), zone, words)


def _said(
    busy: polars.DataFrame, lanes: list[str], stuck: polars.DataFrame, shown: polars.DataFrame
) -> str:
    workers = busy["worker"].n_unique()
    lanes_said = counted(workers, "worker")
    if workers != len(lanes):
        lanes_said = f"{len(lanes)} of {lanes_said}"
    stuck_said = counted(shown.height, "stuck lease")
    return f"{lanes_said}, {stuck_said}" + (
        f" of {stuck.height:,}" if shown.height < stuck.height else ""
    )
