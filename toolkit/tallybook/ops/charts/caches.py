"""Charts of the cache."""

from __future__ import annotations

import polars

from tallybook.ops import cached, questions
from tallybook.ops.charts import drawing
from tallybook.ops.charts.drawing import BLUE, GREEN, GREY, ORANGE, RED, WIDTH, Chart
from tallybook.ops.warehouse import Warehouse
from tallybook.ops.windows import WHOLE, Span

_COMPARED = {"same": GREEN, "differs": RED, "only_log": ORANGE, "only_state": GREY}


def cache_history(warehouse: Warehouse, span: Span = WHOLE) -> Chart:
    """Keys in the cache over time, and the writes and invalidations of each window."""
    title = "The cache over time"
    if "cache" in warehouse.silent:
        return drawing.empty(title, warehouse.silent["cache"])
    frame = questions.cache_changes(warehouse, drawing.legible(warehouse, span))
    if not frame.select("puts", "invalidations", "keys").sum_horizontal().sum():
        return drawing.empty(title, "the log has no cache entry in this span")
    alt = drawing.altair_module()
    base = alt.Chart(drawing.rows(frame))
    keys = base.mark_line(interpolate="step-after", color=BLUE, strokeWidth=1.8).encode(
        x=drawing.time_axis(frame, "window_end", span.zone, quiet=True),
        y=alt.Y("keys:Q", title="keys"),
    )
    names = ("puts", "invalidations")
    long = frame.unpivot(names, index=["window_start", "window_end"], variable_name="what",
                         value_name="changes").filter(polars.col("changes") > 0)  # fmt: skip
    drawn = alt.Chart(drawing.rows(long)).mark_bar(orient="vertical", stroke="white")
    bars = drawn.encode(
        x=drawing.time_axis(frame, "window_start", span.zone),
        x2="window_end:T",
        y=alt.Y("changes:Q", title="changes", stack="zero"),
        color=alt.Color("what:N", title=None, scale=drawing.colours(names, (ORANGE, RED))),
    )  # fmt: skip
    bars = drawing.told(bars, drawing.WINDOW, span.zone,
                        {"changes": "datum.changes", "what": "datum.what"})  # fmt: skip
    panels = [panel.properties(width=WIDTH, height=110) for panel in (keys, bars)]
    return drawing.dressed(alt.vconcat(*panels, spacing=8), title)


def cache_compared(warehouse: Warehouse) -> Chart:
    """How many keys of the log and of state.db agree."""
    title = "The cache: log against state.db"
    if told := warehouse.silent.get("cache") or warehouse.silent.get("state"):
        return drawing.empty(title, told)
    compared = cached.compare_cache(warehouse)
    if compared.is_empty():
        return drawing.empty(title, "neither the log nor state.db holds a cache entry")
    alt = drawing.altair_module()
    counted = {
        status: compared.filter(polars.col("status") == status).height for status in _COMPARED
    }
    data = drawing.values(
        {"status": name.replace("_", " "), "keys": count} for name, count in counted.items()
    )
    names = [name.replace("_", " ") for name in _COMPARED]
    base = alt.Chart(data).encode(
        y=alt.Y("status:N", title=None, sort=names), x=alt.X("keys:Q", title="keys")
    )
    scale = drawing.colours(names, _COMPARED.values())
    bars = base.mark_bar().encode(color=alt.Color("status:N", legend=None, scale=scale))
    counts = base.mark_text(align="left", dx=4).encode(text=alt.Text("keys:Q", format=","))
    return drawing.dressed(
        (bars + counts).properties(width=WIDTH - 120, height=alt.Step(24)), title
    )
