"""Why a row differs: a closed list of causes, and how many rows each has."""

from typing import Any

import polars

UNEXPLAINED = "unexplained"
IN_FLIGHT = "in_flight"
CAUSES = {
    UNEXPLAINED: "the log has no cause for it",
    "dead": "its job is in the dead letters",
    "applied_twice": "an answer was lost, and the cloud took the second delivery as a new one",
    "never_enqueued": "changed here, and no job was enqueued for it",
    "overdue": "its job is open for longer than a row may be in flight",
    "cancelled": "its job was cancelled or discarded",
    "after_export": "changed here after what the export covers, longer ago than a row may be in "
    "flight: take a newer export",
    "changed_in_cloud": "delivered, then changed in the cloud only",
    "removed_in_cloud": "delivered, then removed in the cloud",
    "added_in_cloud": "added in the cloud, never known here",
    "removed_here": "forgotten here, still in the cloud",
    "not_cached": "delivered, and not cached here",
    IN_FLIGHT: "still on its way, or changed after what the export covers",
}
"""Every cause there is, in the order in which they are told where their counts are equal."""


def counted(rows: polars.DataFrame) -> polars.DataFrame:
    """One row a cause that has rows, the unexplained first and those in flight last, else the
    most frequent first: cause, rows, meaning."""
    order = list(CAUSES)
    counts = dict(rows["cause"].value_counts().iter_rows())
    told: list[dict[str, Any]] = [
        {"cause": cause, "rows": count, "meaning": CAUSES[cause]} for cause, count in counts.items()
    ]
    told.sort(key=lambda one: (_rank(one["cause"]), -one["rows"], order.index(one["cause"])))
    schema = {"cause": polars.String, "rows": polars.Int64, "meaning": polars.String}
    return polars.DataFrame(told, schema=schema)


def _rank(cause: str) -> int:
    return {UNEXPLAINED: 0, IN_FLIGHT: 2}.get(cause, 1)
