"""Charts of an incident: a throughput to brush, and what follows the brush."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import polars

from tallybook.ops import windows
from tallybook.ops.charts import drawing
from tallybook.ops.charts.drawing import BLUE, GREEN, GREY, ORANGE, RED, Chart
from tallybook.ops.incident import Incident, Slice

BRUSH, NOW = "brush", "now"
_WIDE, _HALF = 780, 330
_LOW = 130
_FLOWS = ("arrivals", "starts", "completions")
_DEPTHS = ("pending", "leased", "dead")
_MARKS = ("p50", "p95", "p99")
_MEASURES = {"run_us": "run (s)", "total_us": "total (s)"}
_TAKEN = {"expired": RED, "worker died": GREY, "reboot": "#000000"}
_NAMED, _MOST_LANES = 6, 16
_ENDS = ("since", "until")
_OTHER = "(other)"
_HOW = "drag along the time to brush a window; double click to take the brush away"


def brushed_throughput(incident: Incident, part: Slice | None = None, *, how: str = _HOW) -> Chart:
    """Arrivals, starts and completions of the whole span; a drag along it is the selection
    ``brush``, which ``how`` explains. ``part`` is the brush that it begins with."""
    alt = drawing.altair_module()
    long = _long(incident.flow(), _FLOWS, "what", "jobs")
    begun = {"value": {"x": [_shown(part.since), _shown(part.until)]}} if part else {}
    brush = alt.selection_interval(name=BRUSH, encodings=["x"], **begun)
    lines = alt.Chart(drawing.packed(long)).mark_line(interpolate="step-after", strokeWidth=1.3)
    chart = lines.encode(
        x=_time(incident.whole, "since"),
        y=alt.Y("jobs:Q", title=f"jobs in {_step(incident)}"),
        color=alt.Color("what:N", title=None, scale=drawing.colours(_FLOWS, (ORANGE, BLUE, GREEN))),
        strokeDash=alt.StrokeDash("what:N", title=None, scale=drawing.dashes(_FLOWS)),
    ).properties(width=_WIDE, height=_LOW).add_params(brush)  # fmt: skip
    return drawing.dressed(chart, "Throughput", how)


def slice_panels(incident: Incident, part: Slice) -> Chart:
    """Latency, heat map, errors and lease lanes of a slice, in one picture."""
    alt = drawing.altair_module()
    left = alt.vconcat(*_latencies(incident, part), spacing=6)
    right = alt.vconcat(_heat(incident, part), _errors(incident, part), spacing=6)
    upper = alt.hconcat(left, right, spacing=18).resolve_scale(color="independent")
    whole = alt.vconcat(upper, _lanes(incident, part), spacing=12)
    return drawing.dressed(whole.resolve_scale(color="independent"), "In this slice")


def queue_depth(incident: Incident, grain: int) -> Chart:
    """Jobs pending, leased and dead over the span, with a rule at the end of ``grain``; where it
    stands is the parameter ``now`` (``moment_shown``)."""
    alt = drawing.altair_module()
    long = _long(incident.depth(), _DEPTHS, "status", "jobs")
    lines = alt.Chart(drawing.packed(long)).mark_line(interpolate="step-after", strokeWidth=1.3)
    drawn = lines.encode(
        x=_time(incident.whole, "until"),
        y=alt.Y("jobs:Q", title="jobs"),
        color=alt.Color(
            "status:N", title=None, scale=drawing.colours(_DEPTHS, (ORANGE, BLUE, RED))
        ),
        strokeDash=alt.StrokeDash("status:N", title=None, scale=drawing.dashes(_DEPTHS)),
    )
    now = alt.param(name=NOW, value=moment_shown(incident, grain))
    rule = alt.Chart(drawing.values([{"rule": 1}])).mark_rule(strokeWidth=1.5)
    moved = rule.transform_calculate(until=NOW).encode(x="until:T")
    chart = (drawn + moved).properties(width=_WIDE, height=100).add_params(now)
    return drawing.dressed(chart, "Depth of the queue")


def job_lanes(trace: polars.DataFrame, zone: str = "UTC") -> Chart:
    """The events of a trace (``ops.trace``) along the time, a row a kind of event."""
    alt = drawing.altair_module()
    if trace.is_empty():
        return drawing.empty("Trace", "no event of the log has this id")
    kinds = trace["event"].unique(maintain_order=True).to_list()
    local = trace.with_columns(polars.col("occurred_at").dt.convert_time_zone(zone)).with_columns(
        who=polars.coalesce("worker", polars.lit("(no worker)"))
    )
    workers = local["who"].unique(maintain_order=True).to_list()
    points = alt.Chart(drawing.rows(local)).mark_point(filled=True, size=70, tooltip=True)
    chart = points.encode(
        x=drawing.time_axis(local, "occurred_at", zone),
        y=alt.Y("event:N", title=None, sort=kinds),
        color=alt.Color("who:N", title=None, scale=drawing.colours(workers[:7])),
        shape=alt.Shape("who:N", legend=None),
    ).properties(width=_WIDE - 120, height=alt.Step(20))
    return drawing.dressed(chart, "Trace", f"{trace.height:,} events")


def _latencies(incident: Incident, part: Slice) -> list[Chart]:
    alt = drawing.altair_module()
    found = incident.latency(part)
    scale = drawing.colours(_MARKS, (BLUE, ORANGE, RED))
    panels = []
    for measure, title in _MEASURES.items():
        long = _long(found.filter(polars.col("measure") == measure), _MARKS, "mark", "seconds")
        lines = alt.Chart(drawing.packed(long)).mark_line(
            strokeWidth=1.4, point=alt.OverlayMarkDef(size=8)
        )
        panels.append(lines.encode(
            x=_time(part, "since", quiet=measure == "run_us"),
            y=alt.Y("seconds:Q", title=title, axis=alt.Axis(tickCount=4, format=",.3~r")),
            color=alt.Color("mark:N", title=None, scale=scale),
            strokeDash=alt.StrokeDash("mark:N", legend=None, scale=drawing.dashes(_MARKS)),
        ).properties(width=_HALF, height=_LOW))  # fmt: skip
    return panels


def _heat(incident: Incident, part: Slice) -> Chart:
    alt = drawing.altair_module()
    cells = alt.Chart(drawing.packed(incident.heat(part))).mark_rect().encode(
        x=_time(part, "since", quiet=True),
        x2="until:T",
        y=alt.Y("from_s:Q", title="run (s)", scale=alt.Scale(type="log", nice=False),
                axis=alt.Axis(format=",.3~r", tickCount=4, grid=False)),
        y2="to_s:Q",
        color=alt.Color("n:Q", title="leases that ended",
                        scale=alt.Scale(scheme="viridis", type="sqrt", reverse=True),
                        legend=alt.Legend(gradientLength=140, tickCount=3)),
    ).properties(width=_HALF, height=_LOW)  # fmt: skip
    words = {"run (s)": drawing.between("from_s", "to_s"), "leases that ended": "datum.n"}
    return drawing.told(cells, _ENDS, part.zone, words)


def _errors(incident: Incident, part: Slice) -> Chart:
    alt = drawing.altair_module()
    found, names = _named(incident.errors(part))
    bars = alt.Chart(drawing.packed(found)).mark_bar(orient="vertical", stroke=None).encode(
        x=_time(part, "since"),
        x2="until:T",
        y=alt.Y("n:Q", title="failed leases", stack="zero",
                axis=alt.Axis(tickCount=4, tickMinStep=1)),
        color=alt.Color("error:N", title=None, scale=drawing.colours(names),
                        legend=alt.Legend(columns=3)),
    ).properties(width=_HALF, height=_LOW - 20)  # fmt: skip
    words = {"failed leases": "datum.n", "error": "datum.error"}
    return drawing.told(bars, _ENDS, part.zone, words)


def _named(errors: polars.DataFrame) -> tuple[polars.DataFrame, list[str]]:
    """The errors with all but the most frequent under one name, and the names in their order."""
    ranked = errors.group_by("error").agg(polars.col("n").sum()).sort(
        "n", "error", descending=[True, False]
    )["error"].to_list()  # fmt: skip
    kept = ranked[:_NAMED]
    named = polars.when(polars.col("error").is_in(kept)).then("error").otherwise(polars.lit(_OTHER))
    summed = errors.with_columns(error=named).group_by("since", "until", "error").agg(
        polars.col("n").sum()
    )  # fmt: skip
    names = kept + ([_OTHER] if len(ranked) > _NAMED else [])
    return summed.sort("since", "error"), names


def _lanes(incident: Incident, part: Slice) -> Chart:
    alt = drawing.altair_module()
    busy, taken = incident.lanes(part), incident.taken(part)
    lanes = _chosen(busy, taken)
    length = (polars.col("until") - polars.col("since")).dt.total_microseconds() / 1e6
    kept = busy.filter(polars.col("worker").is_in(lanes)).with_columns(
        held=polars.col("held_s") / length
    )
    rects = alt.Chart(drawing.packed(kept)).mark_rect().encode(
        x=_time(part, "since"),
        x2="until:T",
        y=alt.Y("worker:N", title=None, sort=lanes),
        color=alt.Color("held:Q", title="leases held",
                        scale=alt.Scale(range=["#eaf3f9", BLUE], domainMin=0),
                        legend=alt.Legend(gradientLength=140, tickCount=3, format=",.3~r")),
    )  # fmt: skip
    bars = _taken(taken.filter(polars.col("worker").is_in(lanes)), lanes, part)
    rects = drawing.told(rects, _ENDS, part.zone, drawing.HELD)
    layered = alt.layer(rects, *bars).resolve_scale(color="independent")
    return layered.properties(width=_WIDE - 110, height=alt.Step(16))


def _taken(taken: polars.DataFrame, lanes: list[str], part: Slice) -> list[Chart]:
    alt = drawing.altair_module()
    if taken.is_empty():
        return []
    hows = [how for how in _TAKEN if how in taken["how"].to_list()]
    bars = alt.Chart(drawing.packed(taken)).mark_bar(
        height=6, stroke="white", strokeWidth=0.5, minBandSize=3
    )
    scale = drawing.colours(hows, [_TAKEN[how] for how in hows])
    drawn = bars.encode(
        x=_time(part, "since"), x2="until:T", y=alt.Y("worker:N", title=None, sort=lanes),
        color=alt.Color("how:N", title="lease taken", scale=scale),
    )  # fmt: skip
    words = {"worker": "datum.worker", "lease taken": "datum.how"}
    return [drawing.told(drawn, _ENDS, part.zone, words)]


def _chosen(busy: polars.DataFrame, taken: polars.DataFrame) -> list[str]:
    """The workers to show, by name: those with taken leases first, then the busiest."""
    counts = taken.group_by("worker").len("taken")
    ranked = busy.group_by("worker").agg(polars.col("held_s").sum()).join(
        counts, on="worker", how="left"
    ).with_columns(polars.col("taken").fill_null(0)).sort(
        "taken", "held_s", "worker", descending=[True, True, False]
    )  # fmt: skip
    return sorted(ranked["worker"].head(_MOST_LANES).to_list())


def _long(
    frame: polars.DataFrame, names: tuple[str, ...], name: str, value: str
) -> polars.DataFrame:
    return frame.unpivot(names, index=["since", "until"], variable_name=name, value_name=value)


def _time(part: Slice, column: str, *, quiet: bool = False) -> Any:
    """The time axis over the whole of a slice."""
    reach = polars.DataFrame({"window_start": [part.since], "window_end": [part.until]})
    return drawing.time_axis(reach, column, part.zone, quiet=quiet)


def moment_shown(incident: Incident, grain: int) -> float:
    """Where the chart of the queue has its rule for the end of ``grain``."""
    zone = windows.named_zone(incident.grains.zone)
    return _shown(incident.grains.start(grain + 1).astimezone(zone))


def brushed(value: Any, zone: str) -> tuple[datetime, datetime] | None:
    """The times that the selection ``brush`` reaches, from what a chart says of it.

    A time that the clock of the zone shows twice is the first one where the brush begins and the
    second where it ends.
    """
    ends = sorted(next(iter(value.values()), ())) if isinstance(value, dict) else ()
    if len(ends) != 2 or ends[0] == ends[1]:
        return None
    named = windows.named_zone(zone)
    first, last = (windows.EPOCH + timedelta(milliseconds=end) for end in ends)
    return first.replace(tzinfo=named, fold=0), last.replace(tzinfo=named, fold=1)


def _shown(moment: datetime) -> float:
    """The number that a chart has for a moment: milliseconds of the clock of its zone."""
    local = moment.replace(tzinfo=None)
    return (local - windows.EPOCH.replace(tzinfo=None)).total_seconds() * 1000


def _step(incident: Incident) -> str:
    seconds = incident.grains.step.total_seconds()
    return f"{seconds:g} s" if seconds < 60 else f"{seconds / 60:g} min"
