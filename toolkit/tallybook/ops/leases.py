"""Leases that did not end as they should: which, how, what proves it, what mends it."""

from datetime import UTC

import polars

from tallybook.ops import windows
from tallybook.ops.warehouse import Warehouse
from tallybook.ops.windows import Instant


def stuck_leases(warehouse: Warehouse, *, at: Instant = None) -> polars.DataFrame:
    """One row a lease that was not ended by its holder in time, as of ``at`` (the log's end).

    ``how`` is expired or reboot (taken from its holder), refused (and its holder came back too
    late), overdue (still held after ``locked_until``) or late (settled after it, and accepted).
    ``evidence`` are the numbers (seq) of its events; ``command`` shows its history.
    """
    moment = windows.instant(at, windows.named_zone("UTC"))
    return warehouse.frame("stuck_leases", {"at": moment and moment.astimezone(UTC)})
