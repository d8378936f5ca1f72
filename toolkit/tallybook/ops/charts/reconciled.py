"""Charts of a reconciliation."""

from __future__ import annotations

from tallybook.ops.charts import drawing
from tallybook.ops.charts.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, WIDTH, Chart
from tallybook.ops.reconciling import Reconciliation, Untold

_COLOURS = {"match": GREEN, "differs": RED, "only local": ORANGE, "only cloud": BLUE}
_MOST_COLUMNS = 30


def reconcile_status(reconciliation: Reconciliation | Untold) -> Chart:
    """Rows of each side by status, a bar each."""
    title = "Rows by status"
    if isinstance(reconciliation, Untold):
        return drawing.empty(title, reconciliation.words)
    counted = {s.replace("_", " "): rows for s, rows in reconciliation.statuses.items() if rows}
    if not counted:
        return drawing.empty(title, "both sides are empty")
    sides = f"{reconciliation.rows_local:,} rows local, {reconciliation.rows_cloud:,} in the cloud"
    shades = {
        status: _COLOURS.get(status, PURPLE if "unreadable" in status else GREY)
        for status in counted
    }
    return drawing.dressed(_bars(counted, "rows", shades), title, sides)


def reconcile_columns(reconciliation: Reconciliation | Untold) -> Chart:
    """Changed cells of each column, a bar each."""
    title = "Changed cells by column"
    if isinstance(reconciliation, Untold):
        return drawing.empty(title, reconciliation.words)
    counted = dict(list(reconciliation.changed_cells_by_column.items())[:_MOST_COLUMNS])
    if not counted:
        return drawing.empty(title, "no cell differs")
    left = len(reconciliation.changed_cells_by_column) - len(counted)
    said = f"{reconciliation.changed_cells:,} changed cells" + (
        f"; {left} more columns" if left else ""
    )
    return drawing.dressed(_bars(counted, "cells", dict.fromkeys(counted, RED)), title, said)


def _bars(counted: dict[str, int], what: str, shades: dict[str, str]) -> Chart:
    alt = drawing.altair_module()
    names = list(counted)
    data = drawing.values(
        {"name": name, "count": count} for name, count in zip(names, counted.values(), strict=True)
    )
    base = alt.Chart(data).encode(
        y=alt.Y("name:N", title=None, sort=names),
        x=alt.X(
            "count:Q",
            title=what,
            axis=drawing.count_axis(counted.values()),
        ),
    )
    scale = drawing.colours(names, shades.values())
    bars = base.mark_bar().encode(color=alt.Color("name:N", legend=None, scale=scale))
    counts = base.mark_text(align="left", dx=4).encode(text=alt.Text("count:Q", format=","))
    return (bars + counts).properties(width=WIDTH - 160, height=alt.Step(24))
