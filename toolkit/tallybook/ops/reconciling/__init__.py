"""Reconcile: two tables compared row by row, exactly.

    read      every cell as text, rows that cannot be read set apart    reading, tables, parquet
    match     which column stands beside which, and by which rule       columns, rules
    compare   by key: two statements decide, others tell the rest       plan, cells, room
    tell      a Reconciliation whose sums hold, with hints              compare, result, hints
    write     files, and a page that opens offline                      writing, page
    explain   what is in flight, why the rest differs, by the log        explaining, covers, causes
    remember  runs, what is verified through them, what differed        ledger

``rows_local = match + differs + only_local + the four _local``, and likewise for the cloud.
A row whose key is repeated on either side is a duplicate on its own side; likewise a row is
unreadable (or in flight) on its own side when it or the row of its key on the other side is.
"""

from tallybook.ops.reconciling.explaining import Explained, Flight, explain, reconcile
from tallybook.ops.reconciling.ledger import Ledger, recorded
from tallybook.ops.reconciling.result import Reconciliation
from tallybook.ops.reconciling.untold import Untold, explain_cache, reconcile_cache

__all__ = [
    "Explained", "Flight", "Ledger", "Reconciliation", "Untold", "explain", "explain_cache",
    "reconcile", "reconcile_cache", "recorded",
]  # fmt: skip
