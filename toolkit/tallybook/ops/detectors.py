"""Detectors: each looks for one kind of trouble and gives one row a job that has it.

Columns of all: job_id, idempotency_key, times, first_at, last_at, detail, evidence (numbers of the
events that prove it, with the writer's part left to ``trace``). With ``since`` and ``until`` only
what happened in that window counts; ``zone`` is that of times without an offset.
"""

import polars

from tallybook.ops import windows
from tallybook.ops.leases import TAKEN, stuck_leases
from tallybook.ops.warehouse import Warehouse
from tallybook.ops.windows import Instant


def answer_lost(
    warehouse: Warehouse, *, since: Instant = None, until: Instant = None, zone: str = "UTC"
) -> polars.DataFrame:
    """Jobs with a run whose connection ended after the request and before an answer."""
    return inside(warehouse, "answer_lost", since, until, zone)


def retried(
    warehouse: Warehouse, *, since: Instant = None, until: Instant = None, zone: str = "UTC"
) -> polars.DataFrame:
    """Jobs with at least one run that failed and was scheduled again."""
    return inside(warehouse, "retried", since, until, zone)


def dead(
    warehouse: Warehouse, *, since: Instant = None, until: Instant = None, zone: str = "UTC"
) -> polars.DataFrame:
    """Jobs that lie in the dead letters now, and came there in the window."""
    return inside(warehouse, "dead", since, until, zone)


def delivered_twice(
    warehouse: Warehouse, *, since: Instant = None, until: Instant = None, zone: str = "UTC"
) -> polars.DataFrame:
    """Jobs whose server said that it had the request already and only replayed its answer."""
    return inside(warehouse, "delivered_twice", since, until, zone)


def late_settles(
    warehouse: Warehouse, *, since: Instant = None, until: Instant = None, zone: str = "UTC"
) -> polars.DataFrame:
    """Jobs with a result that came after the lease was over, and was refused."""
    return inside(warehouse, "late_settles", since, until, zone)


def open_jobs(
    warehouse: Warehouse, *, since: Instant = None, until: Instant = None, zone: str = "UTC"
) -> polars.DataFrame:
    """Jobs that arrived in the window and have not ended."""
    return inside(warehouse, "open_jobs", since, until, zone)


def expired_leases(
    warehouse: Warehouse,
    *,
    at: Instant = None,
    since: Instant = None,
    until: Instant = None,
    zone: str = "UTC",
) -> polars.DataFrame:
    """The stuck leases that were taken from their holder, or should be."""
    found = stuck_leases(warehouse, at=at, since=since, until=until, zone=zone)
    return found.filter(polars.col("how").is_in(TAKEN))


def inside(
    warehouse: Warehouse, name: str, since: Instant, until: Instant, zone: str
) -> polars.DataFrame:
    """The frame of a statement that takes ``$since`` and ``$until``."""
    named = windows.named_zone(zone)
    bounds = {"since": windows.instant(since, named), "until": windows.instant(until, named)}
    if bounds["since"] and bounds["until"]:
        windows.require_order(bounds["since"], bounds["until"])
    return warehouse.frame(name, bounds)
