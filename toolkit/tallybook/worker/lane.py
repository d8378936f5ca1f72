"""The lane of one thread: the jobs that it has claimed, and the runs that it has yet to settle.

A claim and a settle cost a sync each. So a thread claims as many jobs as it expects to run within
50 ms, at most 128, and settles them with the next claim. A job is settled at the latest 50 ms after
it ended, or when the one that runs after it has ended.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from tallybook.book import Settled
from tallybook.job import Job

LONGEST_BATCH_S = 0.05
_MOST_JOBS = 128


@dataclass
class Lane:
    """Jobs that wait in ``jobs``, runs that ended in ``ended``, how many to claim next,
    and which job runs ``now``."""

    limit: int = 1
    now: str = ""
    jobs: deque[Job] = field(default_factory=deque)
    ended: list[tuple[Job, Settled]] = field(default_factory=list)
    _waiting_since_s: float = 0.0

    @property
    def is_busy(self) -> bool:
        """Whether there is something to run or to settle."""
        return bool(self.jobs or self.ended)

    def end(self, job: Job, settled: Settled, now_s: float) -> None:
        """A run of ``job`` ended at ``now_s``."""
        if not self.ended:
            self._waiting_since_s = now_s
        self.ended.append((job, settled))
        run_s = settled.outcome.duration_ms / 1000
        fits = int(LONGEST_BATCH_S / run_s) if run_s > 0 else _MOST_JOBS
        grown = self.limit if self.jobs else self.limit * 2
        self.limit = max(1, min(fits, grown, _MOST_JOBS))

    def must_settle(self, now_s: float) -> bool:
        """Whether the runs that ended have waited long enough."""
        late = now_s - self._waiting_since_s >= LONGEST_BATCH_S
        return bool(self.ended) and (late or not self.jobs)
