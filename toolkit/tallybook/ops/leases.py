"""Leases that did not end as they should: which, how, what proves it, what mends it."""

from datetime import timedelta

import polars

from tallybook.ops import windows
from tallybook.ops.warehouse import Warehouse
from tallybook.ops.windows import Instant
from tallybook.ops.wording import command

TAKEN = ("expired", "worker died", "reboot", "refused", "overdue")
_OVER = polars.coalesce("refused_at", "ended_at", "locked_until")


def stuck_leases(
    warehouse: Warehouse,
    *,
    at: Instant = None,
    since: Instant = None,
    until: Instant = None,
    zone: str = "UTC",
) -> polars.DataFrame:
    """One row a lease that was not ended by its holder in time, as of ``at`` (the log's end).

    ``how`` is expired, worker died or reboot (taken from its holder), refused (and its holder came
    back too late), overdue (still held after ``locked_until``) or late (settled after it, and
    accepted). ``evidence`` are the numbers (seq) of its events; ``command`` shows its history.
    With ``since`` and ``until`` only leases that reach into that window, as of its end.
    """
    named = windows.named_zone(zone)
    start, end = windows.instant(since, named), windows.instant(until, named)
    moment = windows.instant(at, named) or (end and end - timedelta(microseconds=1))
    found = warehouse.frame("stuck_leases", {"at": moment})
    if start:
        found = found.filter(start <= _OVER)
    commands = [command(warehouse.book, "trace", job) for job in found["job_id"]]
    return found.with_columns(command=polars.Series(commands, dtype=polars.String))
