"""Findings: what a runbook says at its end, each with the ids that it is about.

A function a runbook; each calls the detectors, so that what is shown and what is said agree.
Those of the backlog, the settings, the dead letters, the log, the week and a reconciliation lie
beside their questions.
Severity is ``info`` (as it should be, or absorbed), ``warning`` (look at it) or ``problem``
(somebody must act). A run with nothing above ``info`` is clean.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import polars

from tallybook.ops import cached, detectors, questions
from tallybook.ops import leases as leases_
from tallybook.ops.advised import backlog, settings_review
from tallybook.ops.finding import Finding, Severity, or_clean
from tallybook.ops.health import findings as log_health
from tallybook.ops.letters import findings as dead_letters
from tallybook.ops.reconciling.findings import findings as reconcile
from tallybook.ops.thresholds import DEFAULTS, StuckLeases, ThroughputLatency
from tallybook.ops.warehouse import Warehouse
from tallybook.ops.weeks import findings as weekly_review
from tallybook.ops.windows import WHOLE, Instant, Span
from tallybook.ops.wording import command, counted, sentence, some, with_count

__all__ = [
    "Finding", "backlog", "cache_rebuild", "dead_letters", "incomplete", "log_health", "reconcile",
    "settings_review", "stuck_leases", "throughput_latency", "weekly_review",
]  # fmt: skip


def throughput_latency(
    warehouse: Warehouse,
    span: Span = WHOLE,
    thresholds: ThroughputLatency = DEFAULTS.throughput_latency,
) -> list[Finding]:
    """Lost answers, retries, dead letters, double deliveries, open jobs, metrics that disagree, and
    where thresholds are set, jobs that take longer.

    Those of the span, but for the metrics, which says so.
    """
    dead = ("jobs", "list", "--status", "dead")
    still_open = ("jobs", "list", "--status", "pending")
    found = [
        _jobs(warehouse, "answer_lost", "warning", "Jobs whose answer was lost on its way",
              detectors.answer_lost(warehouse, span)),
        _jobs(warehouse, "retried", "info", "Jobs that were tried again",
              detectors.retried(warehouse, span)),
        _jobs(warehouse, "dead", "problem", "Jobs in the dead letters",
              detectors.dead(warehouse, span), dead),
        _jobs(warehouse, "delivered_twice", "info", "Jobs delivered twice and absorbed by their "
              "key", detectors.delivered_twice(warehouse, span)),
        _jobs(warehouse, "open_jobs", "warning", "Jobs that have not ended",
              detectors.open_jobs(warehouse, span), still_open),
        *_slow(warehouse, span, thresholds),
        _metrics(warehouse.metrics_gap(), whole=not span.narrow),
    ]  # fmt: skip
    jobs = _arrived(warehouse, span, "jobs")
    return _or_clean(found, "Every job ended at its first try" if jobs else "No job arrived", span)


def stuck_leases(
    warehouse: Warehouse,
    span: Span = WHOLE,
    thresholds: StuckLeases = DEFAULTS.stuck_leases,
    *,
    at: Instant = None,
) -> list[Finding]:
    """Leases that were taken from their holder, late results, and leases that ended just so.

    Those of the span, as of its end; with ``at`` as of that instant.
    """
    span = replace(span, until=at) if at else span
    _, end = questions.reach(warehouse, span)
    late = leases_.stuck_leases(warehouse, span).filter(polars.col("how") == "late")
    found = [
        _stuck(warehouse, _overdue(detectors.expired_leases(warehouse, span), thresholds, end)),
        _jobs(warehouse, "late_settle_refused", "warning", "Results refused because their lease "
              "was over", detectors.late_settles(warehouse, span)),
        _jobs(warehouse, "settled_late", "info", "Jobs settled after the end of their lease, "
              "before anybody else took them", late.with_columns(detail=polars.lit("accepted"))),
    ]  # fmt: skip
    held = _arrived(warehouse, span, "leases")
    ended = "Every lease was ended in time" if held else "No lease was held"
    return _or_clean(found, sentence(warehouse.silent.get("leases", ended)), span)


def cache_rebuild(warehouse: Warehouse, *, as_of: Instant = None) -> list[Finding]:
    """Whether the cache in state.db is what the log says, key by key.

    State.db knows the end only; where ``as_of`` is given, a finding says that this is the end.
    """
    if told := warehouse.silent.get("cache") or warehouse.silent.get("state"):
        return [Finding("clean", "info", sentence(told))]
    compared = cached.compare_cache(warehouse)
    parity = cached.cache_parity(warehouse).row(0, named=True)
    digests = f"parity {parity['parity_log']} by the log, {parity['parity_state']} by state.db"
    mend = command(warehouse.book, "rebuild")
    found = [
        _keys("rebuilt", "info", "Keys of state.db that are what the log says", compared, "same",
              digests),
        _keys("cache_differs", "problem", "Keys of state.db that differ from the log", compared,
              "differs", digests, mend),
        _keys("cache_lost", "problem", "Keys of the log that are not in state.db", compared,
              "only_log", digests, mend),
        _keys("cache_unknown", "problem", "Keys of state.db that are not in the log", compared,
              "only_state", digests, mend),
    ]  # fmt: skip
    if as_of:
        title = f"Compared is the end of the log, not {as_of}: state.db holds no earlier cache"
        found.append(Finding("noted", "info", title))
    return _or_clean(found, "The log holds no cache entry")


def incomplete(warehouse: Warehouse) -> list[Finding]:
    """What could not be read or is not there; empty for a whole log."""
    found = []
    if warehouse.imported:
        return _not_imported(warehouse)
    verify = command(warehouse.book, "log", "verify")
    lines = warehouse.quarantine.filter(polars.col("file").str.ends_with(".ndjson"))
    if lines.height:
        places = tuple(f"{row[0]}:{row[1]}" for row in lines.iter_rows())
        title = f"{counted(lines.height, 'line')} of the log cannot be read"
        reasons = lines["reason"].unique(maintain_order=True).to_list()
        found.append(Finding("quarantined", "problem", title, places, some(reasons), verify))
    holes = tuple(f"{w[:8]}:{first}-{last}" for w, first, last in warehouse.gaps.iter_rows())
    if holes:
        told = "; ".join([*warehouse.losses, "what happened there is not in any answer"])
        title = f"{counted(len(holes), 'hole')} in the log"
        found.append(Finding("gap", "problem", title, holes, told, verify))
    found += [Finding("noted", "info", warning) for warning in warehouse.warnings]
    return found


def _arrived(warehouse: Warehouse, span: Span, what: str) -> int:
    return int(warehouse.frame("arrived", span.bounds())[what].item())


def _jobs(
    warehouse: Warehouse,
    kind: str,
    severity: Severity,
    title: str,
    rows: polars.DataFrame,
    words: tuple[str, ...] = (),
) -> Finding | None:
    if rows.is_empty():
        return None
    names = rows.select(polars.coalesce("idempotency_key", "job_id")).to_series()
    details = rows["detail"].drop_nulls().unique(maintain_order=True).to_list()
    ids = tuple(names.unique(maintain_order=True).to_list())
    has_queue = words and not warehouse.imported
    shown = command(warehouse.book, *(words if has_queue else ("trace", str(rows["job_id"][0]))))
    return Finding(kind, severity, with_count(title, len(ids)), ids, some(details), shown)


def _stuck(warehouse: Warehouse, rows: polars.DataFrame) -> Finding | None:
    severity: Severity = "problem" if "overdue" in rows["how"].to_list() else "warning"
    words = [
        f"{row['worker']} held lease {row['lease_token']} until {row['locked_until']:%H:%M:%S}Z, "
        f"{row['how']}"
        for row in rows.to_dicts()
    ]
    told = rows.with_columns(detail=polars.Series(words, dtype=polars.String))
    title = "Jobs with a lease that its holder did not end"
    return _jobs(warehouse, "stuck_lease", severity, title, told)


def _overdue(rows: polars.DataFrame, thresholds: StuckLeases, end: datetime) -> polars.DataFrame:
    """The stuck leases without those that are overdue for so short that it is borne."""
    borne = polars.col("locked_until") > end - timedelta(seconds=thresholds.overdue_s)
    return rows.filter(~((polars.col("how") == "overdue") & borne))


def _slow(warehouse: Warehouse, span: Span, thresholds: ThroughputLatency) -> list[Finding]:
    """A finding a measure of which 95 of 100 jobs take longer than its threshold."""
    borne = {name: getattr(thresholds, f"{name}_p95_s") for name in questions.MEASURES}
    if not any(borne.values()):
        return []
    row = questions.latency(warehouse, replace(span, every="")).row(0, named=True)
    act = command(warehouse.book, "analyze", "latency", "--by", "topic")
    found = [(name, row[f"{name}_p95_s"], row["n"]) for name in borne if borne[name]]
    return [
        Finding("slow", "problem", f"Jobs {name} longer than {borne[name]:g} s", (name,),
                f"95 of 100 of {counted(n, 'job')} took up to {took:,.3f} s", act)
        for name, took, n in found
        if took is not None and took > borne[name]
    ]  # fmt: skip


def _metrics(rows: polars.DataFrame, *, whole: bool) -> Finding | None:
    if rows.is_empty():
        return None
    words = [f"{row['worker']}: {row['in_log']} {row['counted']} in the log, {row['in_metrics']} "
             "in the metrics" for row in rows.iter_rows(named=True)]  # fmt: skip
    workers = tuple(rows["worker"].unique(maintain_order=True).to_list())
    title = "Workers for which metrics and log disagree; the log is right"
    told = some(words) + ("" if whole else " (over the whole log, not this window)")
    return Finding("metrics_disagree", "info", with_count(title, len(workers)), workers, told)


def _keys(
    kind: str,
    severity: Severity,
    title: str,
    compared: polars.DataFrame,
    status: str,
    detail: str,
    mend: str = "",
) -> Finding | None:
    keys = tuple(compared.filter(polars.col("status") == status)["key"].to_list())
    return (
        Finding(kind, severity, with_count(title, len(keys)), keys, detail, mend) if keys else None
    )


def _not_imported(warehouse: Warehouse) -> list[Finding]:
    """Rows that an import could not read, and what its log cannot say."""
    rows = warehouse.quarantine
    places = tuple(f"{row[0]}:{row[1]}" for row in rows.iter_rows())
    reasons = rows["reason"].unique(maintain_order=True).to_list()
    title = f"{counted(rows.height, 'row')} of the imported log cannot be read"
    bad = [Finding("quarantined", "problem", title, places, some(reasons))] if places else []
    return bad + [Finding("noted", "info", sentence(told)) for told in warehouse.warnings]


def _or_clean(found: list[Finding | None], clean: str, span: Span = WHOLE) -> list[Finding]:
    return or_clean(found, clean + (" in this window" if span.narrow else ""))
