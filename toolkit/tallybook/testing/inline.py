"""Running jobs in the thread of a test, with no worker."""

from __future__ import annotations

from collections.abc import Mapping

from tallybook.book import Book, Settled, Want
from tallybook.errors import TallybookError
from tallybook.worker.handlers import Function, Registered, registered
from tallybook.worker.metrics import Counters
from tallybook.worker.run import run

_WORKER = "inline"


def run_inline(
    book: Book, handlers: Mapping[str, Function | Registered], *, limit: int = 10_000
) -> list[str]:
    """Claim and run the due jobs of these topics one by one until none is due.

    Returns how each run ended, as names of events in their order: ``job.done``,
    ``job.retry_scheduled``, ``job.dead``, ``job.snoozed``. What is due later stays: move the
    clock and run again. Raises TallybookError after ``limit`` runs.
    """
    want = Want(_WORKER, tuple(handlers))
    counters = Counters()
    ends: list[str] = []
    jobs = book.claim_many(want)
    while jobs:
        if len(ends) == limit:
            raise TallybookError(f"{limit} runs and jobs are still due; do they make each other?")
        given = handlers[jobs[0].topic]
        handler = given if isinstance(given, Registered) else registered(given)
        outcome, puts = run(handler, jobs[0], book, counters)
        turn = book.turn([Settled(outcome, puts)], want)
        ends.append(turn.ends[jobs[0].job_id])
        jobs = turn.jobs
    return ends
