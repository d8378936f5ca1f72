"""The rules of the schedule, as pure functions on the page of an entry.

- Nothing is missed before an entry is first seen, or seen with another expression or zone.
- A time is on time for ``LATE_S``; later it was missed: nothing ran the schedule, the machine
  slept, the clock was set forward, or the run before took too long.
- Missed times by the entry's ``missed``: ``skip`` leaves them out, ``once`` makes one run of them
  all, the newest, ``all`` runs each, oldest first, the newest ``MOST`` at most.
- A run that did not end, because the schedule was stopped or killed, was missed: with ``skip`` it
  is left out, else it is run again, ``TRIES`` times in all at most.
- The wall clock set back runs nothing twice. Set back by more than ``TRUSTED_S`` it was wrong
  before: times count from now on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from tallybook.runbook.schedule.diary import Page, Running
from tallybook.runbook.schedule.times import Times

LATE_S = 60
MOST = 100
TRIES = 3
TRUSTED_S = 86_400
_WINDOWS_S = (3_600, 86_400, 32 * 86_400, 366 * 86_400)


@dataclass(frozen=True, slots=True)
class Missed:
    """Times of an entry that were missed: those without a run of their own, those that run late,
    and one that was given up after ``TRIES`` runs that did not end."""

    left_out: tuple[datetime, ...] = ()
    late: tuple[datetime, ...] = ()
    given_up: tuple[datetime, ...] = ()

    @property
    def times(self) -> tuple[datetime, ...]:
        """All of them, in order."""
        return tuple(sorted((*self.left_out, *self.late, *self.given_up)))

    def told(self, rule: str) -> str:
        """What was missed and what becomes of it, in words; ``rule`` is ``missed`` of the entry."""
        times = self.times
        many = f"missed {len(times)} times" if len(times) > 1 else "missed once"
        if self.given_up:
            return f"{many}, given up after {TRIES} runs that did not end"
        if rule == "all" and not self.left_out:
            return f"{many}, each is run now" if len(times) > 1 else f"{many}, run now"
        if rule == "skip":
            return f"{many}, left out"
        return f"{many}, one run makes up for it" if rule == "once" else f"{many}, some left out"


def begun(page: Page | None, when: str, now: datetime) -> Page:
    """The page that an entry starts with: a new one where it is new or its times are others."""
    if page is None:
        return Page(when, now)
    if page.when != when:
        return replace(page, when=when, seen_until=now, waiting=(), tries=0)
    return page


def looked_at(page: Page, times: Times, missed: str, now: datetime) -> tuple[Page, Missed]:
    """The page after the times up to ``now`` were looked at, and what of them was missed."""
    if now < page.seen_until:
        back_s = (page.seen_until - now).total_seconds()
        return (replace(page, seen_until=now) if back_s > TRUSTED_S else page), Missed()
    new = newest(times, page.seen_until, now)
    if not new:
        return replace(page, seen_until=now), Missed()
    kept = _kept([*page.waiting, *new], missed, now, is_busy=page.running is not None)
    left_out = tuple(one for one in (*page.waiting, *new) if one not in kept)
    late = tuple(one for one in new if one in kept and _is_late(one, now))
    tries = page.tries if kept and kept[0] in page.waiting else 0
    return replace(page, seen_until=now, waiting=kept, tries=tries), Missed(left_out, late)


def started(page: Page, now: datetime) -> Page:
    """The page with the first waiting time as the run that begins now."""
    due, *rest = page.waiting
    running = Running(due, now, page.tries + 1)
    return replace(page, waiting=tuple(rest), tries=0, running=running)


def unfinished(page: Page, missed: str) -> tuple[Page, Missed]:
    """The page after a run that was begun and never ended."""
    running = page.running
    if running is None:
        return page, Missed()
    idle = replace(page, running=None)
    if running.tries >= TRIES:
        return idle, Missed(given_up=(running.due_at,))
    if missed == "skip":
        return idle, Missed(left_out=(running.due_at,))
    if missed == "once" and page.waiting:
        return idle, Missed(left_out=(running.due_at,))
    waiting = (running.due_at, *page.waiting)
    again = replace(idle, waiting=waiting, tries=running.tries)
    return again, Missed(late=(running.due_at,))


def newest(times: Times, after: datetime, until: datetime, most: int = MOST) -> list[datetime]:
    """The newest ``most`` due instants in the window; looks back no further than it must."""
    found: list[datetime] = []
    for window_s in _WINDOWS_S:
        begin = max(after, until - timedelta(seconds=window_s))
        found = times.between(begin, until)
        if begin == after or len(found) >= most:
            break
    return found[-most:]


def _kept(
    due: list[datetime], missed: str, now: datetime, *, is_busy: bool
) -> tuple[datetime, ...]:
    """Which of the waiting and new times are to run."""
    if missed == "all":
        return tuple(due[-MOST:])
    if missed == "skip":
        due = [] if is_busy else [one for one in due if not _is_late(one, now)]
    return tuple(due[-1:])


def _is_late(due: datetime, now: datetime) -> bool:
    return (now - due).total_seconds() > LATE_S
