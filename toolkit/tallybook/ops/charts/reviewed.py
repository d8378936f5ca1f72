"""The chart of settings: how much of what was measured is beyond each."""

from __future__ import annotations

import polars

from tallybook.ops import reviewing
from tallybook.ops.charts import drawing
from tallybook.ops.charts.drawing import GREEN, RED, WIDTH, Chart
from tallybook.ops.warehouse import Warehouse
from tallybook.ops.windows import WHOLE, Span

_MOST = 40
_VERDICTS = ("safe", "unsafe")


def settings(warehouse: Warehouse, span: Span = WHOLE) -> Chart:
    """The share of runs, extensions or jobs that were beyond each setting that was measured."""
    title = "Beyond the settings"
    rows = reviewing.settings_review(warehouse, span)
    measured = rows.filter(polars.col("verdict").is_in(_VERDICTS))
    if measured.is_empty():
        none = "no job was claimed in this span: nothing is measured"
        return drawing.empty(title, warehouse.silent.get("settings", none))
    alt = drawing.altair_module()
    named = measured.select(
        "verdict",
        share=polars.col("over") / polars.col("n"),
        of=polars.format("{} of {}", "over", "n"),
        setting=polars.format("{}: {}", "topic", "setting"),
    ).sort("share", "setting", descending=[True, False]).head(_MOST)  # fmt: skip
    base = alt.Chart(drawing.rows(named)).encode(
        y=alt.Y("setting:N", title=None, sort=named["setting"].to_list()),
        x=alt.X("share:Q", title="share beyond it", scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(format="%", tickCount=5)),
    )  # fmt: skip
    scale = drawing.colours(_VERDICTS, (GREEN, RED))
    bars = base.mark_bar(minBandSize=2).encode(
        color=alt.Color("verdict:N", title=None, scale=scale)
    )
    counts = base.mark_text(align="left", dx=4).encode(text="of:N")
    chart = (bars + counts).properties(width=WIDTH - 220, height=alt.Step(22))
    return drawing.dressed(chart, title, "runs, extensions or jobs, of those that were measured")
