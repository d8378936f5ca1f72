"""Charts of what failed."""

from __future__ import annotations

import polars

from tallybook.ops import letters, questions
from tallybook.ops.charts import drawing
from tallybook.ops.charts.drawing import BLUE, HEIGHT, ORANGE, RED, WIDTH, Chart
from tallybook.ops.warehouse import Warehouse
from tallybook.ops.windows import WHOLE, Span

_NAMED = 6
_MOST_CAUSES = 20
_OUTLOOKS = ("may pass", "stays", "unknown")
_KINDS = ("retried", "dead")
_OTHER = "(other)"
_NOTHING = "no attempt failed in this span"


def outcomes(warehouse: Warehouse, span: Span = WHOLE) -> Chart:
    """Attempts that were retried and jobs that died, a bar each reason."""
    title = "Failed attempts by reason"
    frame = questions.outcomes(warehouse, span).head(20)
    if frame.is_empty():
        return drawing.empty(title, _NOTHING)
    alt = drawing.altair_module()
    reason = polars.coalesce("error_type", polars.lit("(none)"))
    summed = frame.with_columns(reason=reason).group_by("reason", maintain_order=True)
    counted = summed.agg(polars.col("retried", "dead").sum())
    counted = counted.with_columns(attempts=polars.col("retried") + polars.col("dead"))
    long = counted.drop("attempts").unpivot(
        _KINDS, index="reason", variable_name="what", value_name="attempts"
    )
    y = alt.Y("reason:N", title=None, sort=counted["reason"].to_list())
    bars = alt.Chart(drawing.rows(long)).mark_bar().encode(
        y=y,
        x=alt.X("attempts:Q", title="attempts",
                axis=drawing.count_axis(counted["attempts"].to_list())),
        color=alt.Color("what:N", title=None, scale=drawing.colours(_KINDS, (ORANGE, RED))),
        order=alt.Order("what:N", sort="descending"),
    )  # fmt: skip
    counts = alt.Chart(drawing.rows(counted)).mark_text(align="left", dx=4).encode(
        y=y, x="attempts:Q", text=alt.Text("attempts:Q", format=",")
    )  # fmt: skip
    chart = (bars + counts).properties(width=WIDTH - 120, height=alt.Step(24))
    return drawing.dressed(chart, title)


def retries_by_reason(warehouse: Warehouse, span: Span = WHOLE) -> Chart:
    """Attempts that failed in each window, stacked by reason."""
    title = "Failed attempts over time"
    frame = questions.failures(warehouse, drawing.legible(warehouse, span))
    failed = frame.drop_nulls("reason")
    if failed.is_empty():
        return drawing.empty(title, _NOTHING)
    alt = drawing.altair_module()
    counted = failed.group_by("reason").agg(polars.col("attempts").sum())
    ranked = counted.sort("attempts", "reason", descending=[True, False])["reason"].to_list()
    named = ranked[:_NAMED]
    reason = (
        polars.when(polars.col("reason").is_in(named)).then("reason").otherwise(polars.lit(_OTHER))
    )
    folded = failed.with_columns(reason=reason).group_by("window_start", "window_end", "reason")
    stacked = folded.agg(polars.col("attempts").sum()).sort("window_start", "reason")
    names = named + ([_OTHER] if len(ranked) > _NAMED else [])
    bars = alt.Chart(drawing.rows(stacked)).mark_bar(
        orient="vertical", stroke="white", strokeWidth=0.5
    )
    chart = bars.encode(
        x=drawing.time_axis(frame, "window_start", span.zone),
        x2="window_end:T",
        y=alt.Y(
            "attempts:Q", title="attempts", stack="zero", axis=drawing.count_axis(_heights(stacked))
        ),
        color=alt.Color("reason:N", title=None, scale=drawing.colours(names)),
    ).properties(width=WIDTH, height=HEIGHT)
    words = {"attempts": "datum.attempts", "reason": "datum.reason"}
    return drawing.dressed(drawing.told(chart, drawing.WINDOW, span.zone, words), title)


def dead_letters(
    warehouse: Warehouse, span: Span = WHOLE, *, topic: str = "", error: str = ""
) -> Chart:
    """Jobs in the dead letters, a bar each topic and error, in the colour of their outlook."""
    title = "Dead letters by cause"
    found = letters.dead_letters(warehouse, span, topic=topic, error=error)
    if found.is_empty():
        return drawing.empty(title, "no job in the dead letters in this span")
    alt = drawing.altair_module()
    cause = polars.format("{}: {}", "topic", "error_type")
    causes = letters.by_cause(found).with_columns(cause=cause).head(_MOST_CAUSES)
    base = alt.Chart(drawing.rows(causes.select("cause", "outlook", "jobs"))).encode(
        y=alt.Y("cause:N", title=None, sort=causes["cause"].to_list()),
        x=alt.X("jobs:Q", title="jobs", axis=drawing.count_axis(causes["jobs"].to_list())),
    )
    scale = drawing.colours(_OUTLOOKS, (BLUE, RED, ORANGE))
    bars = base.mark_bar().encode(color=alt.Color("outlook:N", title="the error", scale=scale))
    counts = base.mark_text(align="left", dx=4).encode(text=alt.Text("jobs:Q", format=","))
    chart = (bars + counts).properties(width=WIDTH - 220, height=alt.Step(24))
    return drawing.dressed(chart, title, f"{found.height:,} in the dead letters")


def _heights(stacked: polars.DataFrame) -> list[int]:
    """The attempts of each stack."""
    return stacked.group_by("window_start").agg(polars.col("attempts").sum())["attempts"].to_list()
