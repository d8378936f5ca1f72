"""What a reconciliation says at the end of a runbook: what differs, and why."""

from __future__ import annotations

from dataclasses import replace

import polars

from tallybook.ops.finding import Finding, Severity, or_clean
from tallybook.ops.reconciling.explaining import Explained
from tallybook.ops.reconciling.result import Reconciliation
from tallybook.ops.reconciling.untold import Untold
from tallybook.ops.wording import counted, sentence, some, with_count

_APART = {
    "duplicate": "Rows whose key is repeated",
    "null_key": "Rows with no key",
    "unreadable": "Rows that cannot be read, or whose partner cannot",
    "in_flight": "Rows that are still being delivered",
}


def findings(
    reconciliation: Reconciliation | Untold, explained: Explained | Untold | None = None
) -> list[Finding]:
    """What differs between the two sides of a reconciliation; with ``explained`` also why.

    Where nothing was comparable, that is the one finding: no row is called missing.
    """
    if isinstance(reconciliation, Untold):
        told = "two files can be compared"
        compared = "tallybook reconcile EXPORT --local FILE"
        return [Finding("clean", "info", reconciliation.words, evidence=told, action=compared)]
    if reconciliation.apart:
        return [Finding("not_comparable", "problem", sentence(reconciliation.apart))]
    found = [
        _status(reconciliation, "differs", "changed", "Rows that differ"),
        _status(reconciliation, "only_local", "missing", "Rows that are missing in the export"),
        _status(reconciliation, "only_cloud", "extra", "Rows that are only in the export"),
    ]
    for kind in _APART:
        for side in ("local", "cloud"):
            words = f"{_APART[kind]} on the {side} side"
            found.append(_status(reconciliation, f"{kind}_{side}", f"{kind}_{side}", words))
    if isinstance(explained, Explained):
        found = [_because(one, explained) for one in found if one]
        found.append(_unexplained(explained))
    matched = f"{counted(reconciliation.statuses['match'], 'matching row')}, nothing differs"
    return or_clean(found, matched)


def _because(finding: Finding, explained: Explained) -> Finding:
    """A finding of rows that differ with their causes, counted."""
    named = {"changed": "differs", "missing": "only_local", "extra": "only_cloud"}
    rows = explained.rows.filter(polars.col("difference") == named.get(finding.kind, ""))
    if rows.is_empty():
        return finding
    counts = rows["cause"].value_counts(sort=True).iter_rows()
    causes = some([f"{cause}: {counted(count, 'row')}" for cause, count in counts])
    return replace(finding, evidence="; ".join(filter(None, (finding.evidence, causes))))


def _unexplained(explained: Explained) -> Finding | None:
    keys = tuple(explained.keys("unexplained"))
    title = with_count("Differences that the log does not explain", len(keys))
    return Finding("unexplained", "problem", title, keys) if keys else None


def _status(reconciliation: Reconciliation, status: str, kind: str, title: str) -> Finding | None:
    count = reconciliation.statuses[status]
    if not count:
        return None
    keys = tuple(reconciliation.keys(status))
    detail = ""
    if status == "differs":
        columns = reconciliation.changed_cells_by_column
        detail = some([f"{column}: {counted(cells, 'cell')}" for column, cells in columns.items()])
    severity: Severity = "info" if kind.startswith("in_flight") else "problem"
    return Finding(kind, severity, with_count(title, count), keys, detail)
