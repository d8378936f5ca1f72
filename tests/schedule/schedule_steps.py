"""A schedule whose clock is told and whose runs are small shell commands."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tallybook.runbook.schedule import Ended, Missed, Outcome, Planned, Scheduler
from tallybook.runbook.schedule.times import times
from tallybook.runbook.settings import Entry
from tallybook.testing import FakeClock

MIDNIGHT = datetime(2026, 6, 1, tzinfo=UTC)
WAIT_S = 60


@dataclass
class Told:
    """Everything that a schedule said, in order."""

    lines: list[str] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)

    def opened(self, _plan: Sequence[Planned]) -> None:
        self.lines.append("opened")

    def begun(self, planned: Planned, due: datetime, _pid: int) -> None:
        self.lines.append(f"{planned.entry.name} begun {due:%H:%M}")

    def ended(self, planned: Planned, ended: Ended, outcome: Outcome) -> None:
        self.lines.append(f"{planned.entry.name} {ended.status}")
        self.outcomes.append(outcome)

    def missed(self, planned: Planned, missed: Missed) -> None:
        out, late = len(missed.left_out) + len(missed.given_up), len(missed.late)
        self.lines.append(f"{planned.entry.name} missed {out} left out, {late} late")

    def __getitem__(self, what: str) -> list[str]:
        return [line for line in self.lines if what in line]


def entry(name: str = "night", cron: str = "0 2 * * *", **more: Any) -> Planned:
    """One entry of a schedule."""
    made = Entry(name, name, cron, **more)
    return Planned(made, times(cron, made.zone), {})


def answer(status: str = "clean", code: int = 0, **more: Any) -> str:
    """A shell command that ends as a run of a runbook does."""
    shown = {"status": status, "exit_code": code, **more}
    return f"printf %s '{json.dumps(shown)}'; exit {code}"


CLEAN = answer()


def schedule(
    place: Path,
    *plan: Planned,
    does: str = CLEAN,
    clock: FakeClock | None = None,
    told: Told | None = None,
    parallel: int = 2,
) -> Scheduler:
    """A schedule that was opened at midnight, or at what ``clock`` shows."""

    def command(_one: Planned) -> list[str]:
        return ["sh", "-c", does]

    made = Scheduler(
        plan, place, command, told or Told(), clock or FakeClock(MIDNIGHT), parallel=parallel
    )
    made.open()
    return made


def settled(made: Scheduler) -> None:
    """Look until no run is under way and none waits."""
    until(
        made, lambda: not made.is_busy() and not any(p.waiting for p in made.diary.pages.values())
    )


def until(made: Scheduler, is_so: Callable[[], bool]) -> None:
    """Look until ``is_so``; a run under way gets real time to end."""
    end = time.monotonic() + WAIT_S
    made.look()
    while not is_so():
        assert time.monotonic() < end, made.diary
        time.sleep(0.002)
        made.look()
