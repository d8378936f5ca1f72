"""The schedule at work: looks at the times, begins runs, ends those that take too long, tells.

``look`` is one look at clock, diary and processes; what it decides is in ``rules``. Whatever is
decided stands in the diary before it is done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from tallybook.clock import Clock
from tallybook.runbook.schedule import diary, rules
from tallybook.runbook.schedule.diary import Ended, Page
from tallybook.runbook.schedule.plan import Planned
from tallybook.runbook.schedule.rules import Missed
from tallybook.runbook.schedule.runs import INTERRUPTED, Outcome, Runs

GRACE_S = 15.0
LONGEST_S = 30.0
DEADLINE = "deadline"
MARGIN_S = 15.0
"""The run knows its deadline and ends by it, with a report; after this the schedule ends it."""
_FAILURE = 3
_ORPHAN_S = 1.0
_SOONEST_S = 0.05


class Listener(Protocol):
    """Who is told what happens to the entries."""

    def opened(self, plan: Sequence[Planned]) -> None:
        """The schedule is at work from now on."""

    def begun(self, planned: Planned, due: datetime, pid: int) -> None:
        """A run has begun."""

    def ended(self, planned: Planned, ended: Ended, outcome: Outcome) -> None:
        """A run has ended, or has been stopped."""

    def missed(self, planned: Planned, missed: Missed) -> None:
        """Times were missed."""


@dataclass
class Scheduler:
    """One schedule of one book. ``place`` has the diary and what the runs say.

    Without ``timed`` no time makes a run due: only what ``order`` asks for is run.
    """

    plan: Sequence[Planned]
    place: Path
    command: Callable[[Planned], Sequence[str]]
    listener: Listener
    clock: Clock
    parallel: int = 2
    holder: dict[str, object] = field(default_factory=dict)
    timed: bool = True
    stopping: bool = False
    _stops: dict[str, int] = field(default_factory=dict)
    _begun_us: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.runs = Runs(self.place)
        self.diary = diary.read(self.place / diary.FILE)

    def open(self) -> None:
        """Begin where the last schedule ended: entries that are gone are forgotten."""
        now = self.clock.moment().now
        names = {one.entry.name for one in self.plan}
        kept = {name: page for name, page in self.diary.pages.items() if name in names}
        self.diary = replace(self.diary, pages=kept, holder=self.holder)
        for one in self.plan:
            name = one.entry.name
            self._turn(one, rules.begun(kept.get(name), one.when, now))
        self._save()
        if self.timed:
            self.listener.opened(self.plan)

    def look(self) -> float:
        """One look at everything; returns for how many seconds nothing is to be done."""
        for one in self.plan:
            self._follow(one)
        if not self.stopping:
            if self.timed:
                self._look_at_times()
            self._begin_waiting()
        return self._idle_s()

    def order(self, one: Planned) -> None:
        """Have the entry run at once, as if it were due now."""
        page = replace(self._page(one), waiting=(self.clock.moment().now,))
        self._turn(one, page)
        self._save()

    def is_busy(self) -> bool:
        """Whether a run is under way."""
        return any(page.running for page in self.diary.pages.values())

    def stop(self, *, kill: bool = False) -> None:
        """Begin nothing more, and tell the runs under way to stop; ``kill`` ends them."""
        self.stopping = True
        for one in self.plan:
            if (running := self._page(one).running) is not None:
                self._tell_stop(one.entry.name, running.pid, kill=kill)

    def _look_at_times(self) -> None:
        now = self.clock.moment().now
        for one in self.plan:
            before = self._page(one)
            page, missed = rules.looked_at(before, one.times, one.entry.missed, now)
            self._turn(one, page)
            if page.waiting != before.waiting or missed != Missed():
                self._save()
            if missed != Missed():
                self.listener.missed(one, missed)

    def _begin_waiting(self) -> None:
        waiting = [one for one in self.plan if self._can_begin(self._page(one))]
        for one in sorted(waiting, key=lambda one: self._page(one).waiting[0]):
            if sum(page.running is not None for page in self.diary.pages.values()) < self.parallel:
                self._begin(one)

    def _can_begin(self, page: Page) -> bool:
        return bool(page.waiting) and page.running is None

    def _begin(self, one: Planned) -> None:
        moment, name = self.clock.moment(), one.entry.name
        self.runs.forget(name)
        page = rules.started(self._page(one), moment.now)
        self._turn(one, page)
        self._save()
        pid = self.runs.begin(name, self.command(one), one.environment())
        self._begun_us[name] = moment.boot_us
        assert page.running is not None  # noqa: S101 - rules.started has just set it
        self._turn(one, replace(page, running=replace(page.running, pid=pid)))
        self._save()
        self.listener.begun(one, page.running.due_at, pid)

    def _follow(self, one: Planned) -> None:
        """See whether the run of an entry has ended, or has to."""
        running = self._page(one).running
        if running is None:
            return
        name = one.entry.name
        outcome = self.runs.ended(name)
        if outcome is not None:
            self._end(one, outcome)
        elif self._waited_s(name) > GRACE_S:
            self._tell_stop(name, running.pid, kill=True)
        elif self._over_s(one) > 0 and name not in self._stops:
            self._tell_stop(name, running.pid, kill=False)

    def _end(self, one: Planned, outcome: Outcome) -> None:
        page, name = self._page(one), one.entry.name
        if page.running is None:
            return
        too_long = self._over_s(one) > 0 and outcome.status == INTERRUPTED
        if too_long:
            said = f"stopped: it took longer than its deadline_s = {one.entry.deadline_s:g}"
            outcome = replace(outcome, status=DEADLINE, exit_code=_FAILURE, message=said)
        ended = Ended(
            page.running.due_at,
            self.clock.moment().now,
            outcome.status,
            outcome.exit_code,
            outcome.report,
            outcome.message,
        )
        missed = Missed()
        if outcome.status == INTERRUPTED:
            page, missed = rules.unfinished(page, one.entry.missed)
        self._turn(one, replace(page, running=None, last=ended))
        self._stops.pop(name, None)
        self._begun_us.pop(name, None)
        self._save()
        self.listener.ended(one, ended, outcome)
        if missed != Missed() and not self.stopping:
            self.listener.missed(one, missed)

    def _tell_stop(self, name: str, pid: int, *, kill: bool) -> None:
        self._stops.setdefault(name, self.clock.moment().boot_us)
        self.runs.stop(name, pid, kill=kill)

    def _over_s(self, one: Planned) -> float:
        """For how long the run of an entry is over its deadline and the margin; below 0 before.

        By boot time, which no setting of the clock moves; of a run that an earlier schedule began,
        by the wall clock of its begin.
        """
        running, name = self._page(one).running, one.entry.name
        if running is None:
            return -1.0
        moment = self.clock.moment()
        if name not in self._begun_us:
            age_s = max(0.0, (moment.now - running.begun_at).total_seconds())
            self._begun_us[name] = moment.boot_us - round(age_s * 1_000_000)
        age_s = (moment.boot_us - self._begun_us[name]) / 1_000_000
        return age_s - one.entry.deadline_s - MARGIN_S

    def _waited_s(self, name: str) -> float:
        told_us = self._stops.get(name)
        return 0.0 if told_us is None else (self.clock.moment().boot_us - told_us) / 1_000_000

    def _idle_s(self) -> float:
        """Until the next time, the next deadline or the end of a grace; ``LONGEST_S`` at most,
        so that a clock that is set is noticed."""
        now = self.clock.moment().now
        waits = [LONGEST_S]
        for one in self.plan:
            page, name = self._page(one), one.entry.name
            if page.running is not None:
                waits.append(-self._over_s(one))
                if name in self._stops:
                    waits[-1] = GRACE_S - self._waited_s(name)
                if not self.runs.is_ours(name):
                    waits.append(_ORPHAN_S)
            due = one.times.after(page.seen_until)
            if due is not None and not self.stopping:
                waits.append((due - now) / timedelta(seconds=1))
        return max(_SOONEST_S, min(waits))

    def _page(self, one: Planned) -> Page:
        return self.diary.pages[one.entry.name]

    def _turn(self, one: Planned, page: Page) -> None:
        self.diary = self.diary.with_page(one.entry.name, page)

    def _save(self) -> None:
        diary.write(self.place / diary.FILE, self.diary)
