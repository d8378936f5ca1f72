"""The schedule in the foreground: until SIGTERM or Ctrl-C, which the runs under way are told."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tallybook import clock
from tallybook.clock import Clock, SystemClock
from tallybook.runbook import folder
from tallybook.runbook.schedule import diary
from tallybook.runbook.schedule.holding import held, holder
from tallybook.runbook.schedule.plan import Planned
from tallybook.runbook.schedule.scheduler import Listener, Scheduler

INTERRUPTED = 130
_STOPS = (signal.SIGTERM, signal.SIGINT)


def keep(
    plan: Sequence[Planned],
    book: Path,
    place: Path,
    command: Callable[[Planned], Sequence[str]],
    listener: Listener,
    *,
    parallel: int = 2,
    time: Clock | None = None,
) -> int:
    """Keep the schedule of ``book`` until a signal; returns 0 after SIGTERM, 130 after Ctrl-C.

    The first signal tells the runs under way to stop and waits for them; a second kills them.
    Raises NotNow where another schedule of the book is at work.
    """
    time = time or SystemClock()
    known = diary.read(place / diary.FILE).holder
    with held(book, known), _signals() as wait:
        scheduler = Scheduler(plan, place, command, listener, time, parallel)
        scheduler.holder = holder(clock.to_text(time.moment().now))
        scheduler.open()
        return _kept(scheduler, wait, is_over=lambda: False)


def run_once(
    one: Planned, place: Path, command: Callable[[Planned], Sequence[str]], listener: Listener
) -> int:
    """Run one entry at once, under its deadline; returns the exit code of the run.

    What timers of the system call. ``place`` is that of this entry alone, so that it shares no
    diary with a schedule. Raises NotNow where such a run of the entry is at work.
    """
    time = SystemClock()
    alone = replace(one, entry=replace(one.entry, missed="skip"))
    folder.private_folder(place)
    with held(place, diary.read(place / diary.FILE).holder), _signals() as wait:
        scheduler = Scheduler([alone], place, command, listener, time, timed=False)
        scheduler.holder = holder(clock.to_text(time.moment().now))
        scheduler.open()
        scheduler.order(alone)
        code = _kept(scheduler, wait, is_over=lambda: not scheduler.is_busy())
        last = scheduler.diary.pages[one.entry.name].last
        return code or (last.exit_code if last else code)


def _kept(
    scheduler: Scheduler, wait: Callable[[float], list[int]], is_over: Callable[[], bool]
) -> int:
    code = 0
    while True:
        idle_s = scheduler.look()
        if is_over() or (scheduler.stopping and not scheduler.is_busy()):
            return code
        for number in wait(idle_s):
            if number in _STOPS:
                code = code or (INTERRUPTED if number == signal.SIGINT else 0)
                scheduler.stop(kill=scheduler.stopping)


@contextmanager
def _signals() -> Iterator[Callable[[float], list[int]]]:
    """Take signals in this block; what is yielded waits for some, or for so many seconds."""
    ear, mouth = os.pipe()
    os.set_blocking(ear, False)
    os.set_blocking(mouth, False)
    before = signal.set_wakeup_fd(mouth, warn_on_full_buffer=False)
    numbers = (*_STOPS, signal.SIGCHLD)
    handlers = {number: signal.signal(number, lambda *_: None) for number in numbers}

    def wait(seconds: float) -> list[int]:
        ready, _, _ = select.select([ear], [], [], seconds)
        return list(os.read(ear, 512)) if ready else []

    try:
        yield wait
    finally:
        signal.set_wakeup_fd(before)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        os.close(ear)
        os.close(mouth)
