"""Charts of a reconciliation."""

from __future__ import annotations

from tallybook.ops.charts import drawing
from tallybook.ops.charts.drawing import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    WIDTH,
    Chart,
    Drawing,
)
from tallybook.ops.reconciling import Explained, Ledger, Reconciliation, Untold
from tallybook.ops.silence import Silence

_COLOURS = {"match": GREEN, "differs": RED, "only local": ORANGE, "only cloud": BLUE}
_CAUSES = {"unexplained": PURPLE, "in_flight": GREY}
_MOST_COLUMNS = 30
_MOST_RUNS = 60


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


def reconcile_causes(explained: Explained | Untold) -> Chart:
    """Rows that differ by their cause, a bar each; the unexplained first."""
    title = "Why rows differ"
    if isinstance(explained, Untold):
        return drawing.empty(title, explained.words)
    counted = {row["cause"]: row["rows"] for row in explained.causes.iter_rows(named=True)}
    if not counted:
        return drawing.empty(title, "no row differs")
    shades = {cause: _CAUSES.get(cause, ORANGE) for cause in counted}
    said = f"{sum(counted.values()):,} rows, by the history of their keys in the log"
    return drawing.dressed(_bars(counted, "rows", shades), title, said)


def reconcile_runs(ledger: Ledger) -> Drawing | Silence:
    """Rows that do not match, run by run, by status, of the last sixty runs, as ``show`` draws
    them; without a run a sentence."""
    title = "Rows that do not match, over runs"
    runs = [run.run for run in ledger.runs[-_MOST_RUNS:]]
    if not runs:
        return Silence(ledger.words[:1].upper() + ledger.words[1:])
    rows = [
        {"run": row["run"], "status": row["status"].replace("_", " "), "rows": row["rows"],
         "covers": row["covers"], "verdict": row["verdict"]}
        for row in ledger.frame().iter_rows(named=True)
        if row["run"] in runs and row["status"] != "match"
    ]  # fmt: skip
    alt = drawing.altair_module()
    names = list(dict.fromkeys(row["status"] for row in rows))
    shades = [_COLOURS.get(name, GREY) for name in names]
    base = alt.Chart(drawing.values(rows or [{"run": runs[0], "status": "", "rows": 0}]))
    bars = base.mark_bar().encode(
        x=alt.X("run:N", title="run (UTC)", scale=alt.Scale(domain=runs), sort=runs,
                axis=alt.Axis(labelLimit=160, labelAngle=-40)),
        y=alt.Y("rows:Q", title="rows", axis=drawing.count_axis(row["rows"] for row in rows)),
        color=alt.Color("status:N", title="status", scale=drawing.colours(names, shades)),
        tooltip=["run:N", "covers:N", "verdict:N", "status:N", alt.Tooltip("rows:Q", format=",")],
    )  # fmt: skip
    chart = bars.properties(width=WIDTH, height=220)
    return drawing.show(drawing.dressed(chart, title, ledger.words))


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
