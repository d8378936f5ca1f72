"""Detectors: each looks for one kind of trouble and gives one row a job that has it.

Columns of all: job_id, idempotency_key, times, first_at, last_at, detail, evidence (numbers of the
events that prove it, with the writer's part left to ``trace``). Only what happened in the span
counts.
"""

import polars

from tallybook.ops.leases import TAKEN, stuck_leases
from tallybook.ops.warehouse import Warehouse
from tallybook.ops.windows import WHOLE, Instant, Span


def answer_lost(warehouse: Warehouse, span: Span = WHOLE) -> polars.DataFrame:
    """Jobs with a run whose connection ended after the request and before an answer."""
    return warehouse.frame("answer_lost", span.bounds())


def retried(warehouse: Warehouse, span: Span = WHOLE) -> polars.DataFrame:
    """Jobs with at least one run that failed and was scheduled again."""
    return warehouse.frame("retried", span.bounds())


def dead(warehouse: Warehouse, span: Span = WHOLE) -> polars.DataFrame:
    """Jobs that lie in the dead letters now, and came there in the window."""
    return warehouse.frame("dead", span.bounds())


def delivered_twice(warehouse: Warehouse, span: Span = WHOLE) -> polars.DataFrame:
    """Jobs whose server said that it had the request already and only replayed its answer."""
    return warehouse.frame("delivered_twice", span.bounds())


def late_settles(warehouse: Warehouse, span: Span = WHOLE) -> polars.DataFrame:
    """Jobs with a result that came after the lease was over, and was refused."""
    return warehouse.frame("late_settles", span.bounds())


def open_jobs(warehouse: Warehouse, span: Span = WHOLE) -> polars.DataFrame:
    """Jobs that arrived in the window and have not ended."""
    return warehouse.frame("open_jobs", span.bounds())


def expired_leases(
    warehouse: Warehouse, span: Span = WHOLE, *, at: Instant = None
) -> polars.DataFrame:
    """The stuck leases that were taken from their holder, or should be."""
    found = stuck_leases(warehouse, span, at=at)
    return found.filter(polars.col("how").is_in(TAKEN))
