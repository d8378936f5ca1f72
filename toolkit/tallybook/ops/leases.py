"""Leases that did not end as they should: which, how, what proves it, what mends it."""

import polars

from tallybook.ops import windows
from tallybook.ops.warehouse import Warehouse
from tallybook.ops.windows import MICROSECOND, WHOLE, Instant, Span
from tallybook.ops.wording import command

TAKEN = ("expired", "worker died", "reboot", "refused", "overdue")
_OVER = polars.coalesce("refused_at", "ended_at", "locked_until")


def stuck_leases(
    warehouse: Warehouse, span: Span = WHOLE, *, at: Instant = None
) -> polars.DataFrame:
    """One row a lease that was not ended by its holder in time, as of ``at`` (the log's end).

    ``how`` is expired, worker died or reboot (taken from its holder), refused (and its holder came
    back too late), overdue (still held after ``locked_until``) or late (settled after it, and
    accepted). ``evidence`` are the numbers (seq) of its events; ``command`` shows its history.
    Only leases that reach into the span, as of its end.
    """
    start, end = span.start_at, span.end_at
    moment = windows.instant(at, windows.named_zone(span.zone)) or (end and end - MICROSECOND)
    found = warehouse.frame("stuck_leases", {"at": moment})
    if start:
        found = found.filter(start <= _OVER)
    commands = [command(warehouse.book, "trace", job) for job in found["job_id"]]
    return found.with_columns(command=polars.Series(commands, dtype=polars.String))
