"""For tests of programs that use tallybook: time that obeys, jobs run here, faults on demand.

    clock = FakeClock()
    book = Book.open(tmp_path / "book", clock=clock)
    book.enqueue("orders.sync", {"id": 7}, delay_s=60)
    clock.advance(61)
    assert run_inline(book, {"orders.sync": sync}) == ["job.done"]

    with faults(crash_at("after_sync")), pytest.raises(Crashed):
        book.enqueue("orders.sync", {"id": 8})       # the process dies when the job is on disk
    assert audit(tmp_path / "book") == []

- ``FakeClock`` stands still until ``advance``, ``jump`` or ``reboot``.
- ``run_inline`` claims and runs jobs in this thread until none is due.
- ``faults`` arms ``Fault`` s in this process; ``environment`` says them to a child process, which
  is then killed or fails for real. ``crash_at`` is the fault of a crash point, ``dice_faults`` are
  faults by a seed.
- ``audit`` says what is wrong with a book: its log, its state, its leases.
- ``check_cache`` puts a cache store of your own through the promises of the contract.
"""

from tallybook.log.faults import POINTS, Crashed, Fault, Plan
from tallybook.testing.audit import audit
from tallybook.testing.caches import check_cache
from tallybook.testing.clock import FakeClock
from tallybook.testing.inline import run_inline
from tallybook.testing.plans import crash_at, dice_faults, environment, faults

__all__ = [
    "POINTS",
    "Crashed",
    "FakeClock",
    "Fault",
    "Plan",
    "audit",
    "check_cache",
    "crash_at",
    "dice_faults",
    "environment",
    "faults",
    "run_inline",
]
