"""Findings of the backlog and of the settings: the advice, judged by thresholds."""

from __future__ import annotations

import polars

from tallybook.ops import backlogs, questions, reviewing
from tallybook.ops.backlogs import Advice
from tallybook.ops.finding import Finding, Severity
from tallybook.ops.thresholds import DEFAULTS, Backlog, SettingsReview
from tallybook.ops.warehouse import Warehouse
from tallybook.ops.windows import WHOLE, Span
from tallybook.ops.wording import command, counted, sentence

_SEVERITIES: dict[str, Severity] = {
    "topic paused": "warning",
    "more workers": "problem",
    "slower intake": "problem",
    "cloud slow": "warning",
    "batch too small": "warning",
    "drains": "info",
}
_TITLES = {
    "topic paused": "Jobs wait in a paused topic",
    "more workers": "More workers are needed",
    "slower intake": "More comes in than the other side takes",
    "cloud slow": "The other side is slow or gives no answer",
    "batch too small": "Jobs are due while workers idle",
    "drains": "The backlog drains",
}


def oldest_due(warehouse: Warehouse, span: Span = WHOLE) -> polars.DataFrame:
    """One row a topic with jobs that are pending and due at the end of the span, longest wait
    first: topic, jobs, oldest_s (how long its oldest is due), oldest_job_id."""
    _, until = questions.reach(warehouse, span)
    return warehouse.frame("oldest_due", {"until": until})


def backlog(
    warehouse: Warehouse, span: Span = WHOLE, thresholds: Backlog = DEFAULTS.backlog
) -> list[Finding]:
    """What holds jobs up, what to do about it, and whether they take longer than is borne."""
    advised = backlogs.advice(warehouse, span)
    found = [_advised(one) for one in advised]
    found += _slow_to_drain(warehouse, span, thresholds)
    found += _waiting(warehouse, span, thresholds)
    return found or [Finding("clean", "info", f"Nothing is pending{_where(span)}")]


def _advised(advice: Advice) -> Finding:
    ids = (advice.topic,) if advice.topic else ()
    kind = advice.kind.replace(" ", "_")
    title = _TITLES[advice.kind] + (f": {advice.topic}" if advice.topic else "")
    return Finding(kind, _SEVERITIES[advice.kind], title, ids, advice.words, advice.command)


def _slow_to_drain(warehouse: Warehouse, span: Span, thresholds: Backlog) -> list[Finding]:
    rows = backlogs.backlog(warehouse, span).to_dicts()
    every = next((row for row in rows if row["topic"] is None and row["pending"]), None)
    if every is None or not thresholds.drain_s:
        return []
    drain_s = every["drain_s"]
    if drain_s is not None and drain_s <= thresholds.drain_s:
        return []
    lasts = "never drains at this rate" if drain_s is None else f"takes {drain_s:,.0f} s to drain"
    told = (
        f"{counted(every['pending'], 'job')} pending; {every['arrivals_per_s']:,.2f} jobs/s come, "
        f"{every['service_per_s']:,.2f} can be done; borne are {thresholds.drain_s:,.0f} s"
    )
    act = command(warehouse.book, "analyze", "backlog")
    return [Finding("drains_slowly", "problem", f"The backlog {lasts}", (), told, act)]


def _waiting(warehouse: Warehouse, span: Span, thresholds: Backlog) -> list[Finding]:
    late = oldest_due(warehouse, span).filter(polars.col("oldest_s") > thresholds.oldest_due_s)
    if late.is_empty() or not thresholds.oldest_due_s:
        return []
    words = [
        f"{row['topic']}: {counted(row['jobs'], 'job')} due, oldest {row['oldest_s']:,.0f} s"
        for row in late.to_dicts()
    ]
    trace = command(warehouse.book, "trace", str(late["oldest_job_id"][0]))
    title = f"Topics whose oldest due job waits longer than {thresholds.oldest_due_s:,.0f} s"
    topics = tuple(late["topic"])
    return [Finding("waits_long", "problem", f"{title}: {len(topics):,}", topics,
                    "; ".join(words[:3]), trace)]  # fmt: skip


def settings_review(
    warehouse: Warehouse,
    span: Span = WHOLE,
    thresholds: SettingsReview = DEFAULTS.settings_review,
) -> list[Finding]:
    """A finding a setting of a topic that what was measured calls unsafe; ids are topic.setting."""
    if told := warehouse.silent.get("settings"):
        return [Finding("clean", "info", sentence(told))]
    rows = reviewing.settings_review(warehouse, span).to_dicts()
    unsafe = [row for row in rows if row["over"] > thresholds.over_share * row["n"]]
    found = [
        Finding(
            "unsafe_setting",
            "warning",
            f"{row['setting']} of {row['topic']} is unsafe at {row['value'] or 0:g}",
            (f"{row['topic']}.{row['setting']}",),
            row["detail"],
            _proposed(row["topic"], row["setting"], row["proposed"]),
        )
        for row in unsafe
        if row["verdict"] == "unsafe"
    ]
    measured = sum(row["verdict"] != "not measured" for row in rows)
    clean = f"Each of {counted(measured, 'measured setting')} is safe{_where(span)}"
    return found or [Finding("clean", "info", clean if measured else "No setting was measured")]


def _proposed(topic: str, setting: str, value: float | None) -> str:
    """What to write into book.toml, or how to start the worker; empty where nothing is proposed."""
    if value is None:
        return ""
    if setting in ("lease", "heartbeat"):
        return f"tallybook worker MODULE --lease {value:g}"
    return f'in book.toml: [topics."{topic}"] {setting} = {value:g}'


def _where(span: Span) -> str:
    return " in this window" if span.narrow else ""
