"""Findings: what a runbook says at its end, each with the ids that it is about.

A function a runbook; each calls the detectors, so that what is shown and what is said agree.
Severity is ``info`` (as it should be, or absorbed), ``warning`` (look at it) or ``problem``
(somebody must act). A run with nothing above ``info`` is clean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import polars

from tallybook.ops import cached, detectors
from tallybook.ops import leases as leases_
from tallybook.ops.reconciling import Reconciliation
from tallybook.ops.warehouse import Warehouse

Severity = Literal["info", "warning", "problem"]

_NAMED = 3
_APART = {
    "duplicate": "Rows whose key is repeated",
    "null_key": "Rows with no key",
    "unreadable": "Rows that cannot be read, or whose partner cannot",
    "in_flight": "Rows that are still being delivered",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One kind of thing that was found. ``ids`` are idempotency keys or cache keys, in order."""

    kind: str
    severity: Severity
    title: str
    ids: tuple[str, ...] = ()
    detail: str = ""
    command: str = ""


def throughput_latency(warehouse: Warehouse) -> list[Finding]:
    """Lost answers, retries, dead letters, double deliveries, open jobs, metrics that disagree."""
    found = [
        _jobs("answer_lost", "warning", "Jobs whose answer was lost on its way",
              detectors.answer_lost(warehouse)),
        _jobs("retried", "info", "Jobs that were tried again", detectors.retried(warehouse)),
        _jobs("dead", "problem", "Jobs in the dead letters", detectors.dead(warehouse),
              "tallybook jobs list --status dead"),
        _jobs("delivered_twice", "info", "Jobs delivered twice and absorbed by their key",
              detectors.delivered_twice(warehouse)),
        _jobs("open_jobs", "warning", "Jobs that have not ended", detectors.open_jobs(warehouse),
              "tallybook jobs list --status pending"),
        _metrics(warehouse.metrics_gap()),
    ]  # fmt: skip
    return _or_clean([finding for finding in found if finding], "Every job ended at its first try")


def stuck_leases(warehouse: Warehouse) -> list[Finding]:
    """Leases that were taken from their holder, late results, and leases that ended just so."""
    late = leases_.stuck_leases(warehouse).filter(polars.col("how") == "late")
    found = [
        _stuck(detectors.expired_leases(warehouse)),
        _jobs("late_settle_refused", "warning", "Results refused because their lease was over",
              detectors.late_settles(warehouse)),
        _jobs("settled_late", "info", "Jobs settled after the end of their lease, before anybody "
              "else took them", late.with_columns(detail=polars.lit("accepted"))),
    ]  # fmt: skip
    return _or_clean([finding for finding in found if finding], "Every lease was ended in time")


def cache_rebuild(warehouse: Warehouse) -> list[Finding]:
    """Whether the cache in state.db is what the log says, key by key."""
    compared = cached.compare_cache(warehouse)
    parity = cached.cache_parity(warehouse).row(0, named=True)
    digests = f"parity {parity['parity_log']} by the log, {parity['parity_state']} by state.db"
    mend = "tallybook rebuild"
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
    return _or_clean([finding for finding in found if finding], "The log holds no cache entry")


def reconcile(reconciliation: Reconciliation) -> list[Finding]:
    """What differs between the two sides of a reconciliation."""
    found = [
        _status(reconciliation, "differs", "changed", "Rows that differ"),
        _status(reconciliation, "only_local", "missing", "Rows that are missing in the export"),
        _status(reconciliation, "only_cloud", "extra", "Rows that are only in the export"),
    ]
    for kind in _APART:
        for side in ("local", "cloud"):
            words = f"{_APART[kind]} on the {side} side"
            found.append(_status(reconciliation, f"{kind}_{side}", f"{kind}_{side}", words))
    matched = f"{reconciliation.statuses['match']} rows match"
    return _or_clean([finding for finding in found if finding], matched)


def incomplete(warehouse: Warehouse) -> list[Finding]:
    """What could not be read or is not there; empty for a whole log."""
    found = []
    lines = warehouse.quarantine.filter(polars.col("file").str.ends_with(".ndjson"))
    if lines.height:
        places = tuple(f"{row[0]}:{row[1]}" for row in lines.iter_rows())
        found.append(Finding("quarantined", "problem", f"{lines.height} lines cannot be read",
                             places, _some(lines["reason"].unique(maintain_order=True).to_list()),
                             "tallybook log verify"))  # fmt: skip
    holes = tuple(f"{w[:8]}:{first}-{last}" for w, first, last in warehouse.gaps.iter_rows())
    if holes:
        found.append(Finding("gap", "problem", f"Holes in the log: {len(holes)}", holes,
                             "what happened there is not in any answer",
                             "tallybook log verify"))  # fmt: skip
    found += [Finding("noted", "info", warning) for warning in warehouse.warnings]
    return found


def _jobs(
    kind: str, severity: Severity, title: str, rows: polars.DataFrame, command: str = ""
) -> Finding | None:
    if rows.is_empty():
        return None
    names = rows.select(polars.coalesce("idempotency_key", "job_id")).to_series()
    details = rows["detail"].drop_nulls().unique(maintain_order=True).to_list()
    ids = tuple(names.unique(maintain_order=True).to_list())
    shown = command or f"tallybook trace {rows['job_id'][0]}"
    return Finding(kind, severity, _counted(title, len(ids)), ids, _some(details), shown)


def _stuck(rows: polars.DataFrame) -> Finding | None:
    severity: Severity = "problem" if "leased" in rows["job_status"].to_list() else "warning"
    words = [
        f"{row['worker']} held lease {row['lease_token']} until {row['locked_until']:%H:%M:%S}Z, "
        f"{row['how']}"
        for row in rows.to_dicts()
    ]
    told = rows.with_columns(detail=polars.Series(words, dtype=polars.String))
    return _jobs("stuck_lease", severity, "Jobs with a lease that its holder did not end", told)


def _metrics(rows: polars.DataFrame) -> Finding | None:
    if rows.is_empty():
        return None
    words = [f"{row['worker']}: {row['in_log']} {row['counted']} in the log, {row['in_metrics']} "
             "in the metrics" for row in rows.iter_rows(named=True)]  # fmt: skip
    workers = tuple(rows["worker"].unique(maintain_order=True).to_list())
    title = "Workers for which metrics and log disagree; the log is right"
    return Finding("metrics_disagree", "info", _counted(title, len(workers)), workers, _some(words))


def _keys(
    kind: str,
    severity: Severity,
    title: str,
    compared: polars.DataFrame,
    status: str,
    detail: str,
    command: str = "",
) -> Finding | None:
    keys = tuple(compared.filter(polars.col("status") == status)["key"].to_list())
    return (
        Finding(kind, severity, _counted(title, len(keys)), keys, detail, command) if keys else None
    )


def _status(reconciliation: Reconciliation, status: str, kind: str, title: str) -> Finding | None:
    count = reconciliation.statuses[status]
    if not count:
        return None
    keys = tuple(reconciliation.keys(status))
    detail = ""
    if status == "differs":
        columns = reconciliation.changed_cells_by_column
        detail = _some([f"{column}: {cells} cells" for column, cells in columns.items()])
    return Finding(kind, "problem", _counted(title, count), keys, detail)


def _counted(title: str, count: int) -> str:
    return f"{title}: {count:,}"


def _some(words: list[str]) -> str:
    left = len(words) - _NAMED
    return "; ".join(words[:_NAMED]) + (f"; and {left} more" if left > 0 else "")


def _or_clean(found: list[Finding], clean: str) -> list[Finding]:
    return found or [Finding("clean", "info", clean)]
