"""Detectors: each looks for one kind of trouble and gives one row a job that has it.

Columns of all: job_id, idempotency_key, times, first_at, last_at, detail, evidence (numbers of the
events that prove it, with the writer's part left to ``trace``).
"""

import polars

from tallybook.ops.leases import stuck_leases
from tallybook.ops.warehouse import Warehouse


def answer_lost(warehouse: Warehouse) -> polars.DataFrame:
    """Jobs with a run whose connection ended after the request and before an answer."""
    return warehouse.frame("answer_lost")


def retried(warehouse: Warehouse) -> polars.DataFrame:
    """Jobs with at least one run that failed and was scheduled again."""
    return warehouse.frame("retried")


def dead(warehouse: Warehouse) -> polars.DataFrame:
    """Jobs that lie in the dead letters now."""
    return warehouse.frame("dead")


def delivered_twice(warehouse: Warehouse) -> polars.DataFrame:
    """Jobs whose server said that it had the request already and only replayed its answer."""
    return warehouse.frame("delivered_twice")


def late_settles(warehouse: Warehouse) -> polars.DataFrame:
    """Jobs with a result that came after the lease was over, and was refused."""
    return warehouse.frame("late_settles")


def open_jobs(warehouse: Warehouse) -> polars.DataFrame:
    """Jobs that have not ended."""
    return warehouse.frame("open_jobs")


def expired_leases(warehouse: Warehouse) -> polars.DataFrame:
    """The stuck leases that were taken from their holder, or should be."""
    taken = ("expired", "reboot", "refused", "overdue")
    return stuck_leases(warehouse).filter(polars.col("how").is_in(taken))
