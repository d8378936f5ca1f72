"""The parent of several worker processes: starts them, restarts the dead, passes signals on.

Children are started as new programs, not forked, so nothing is shared with them but the book.
A child that fails is started again after 1 s, twice as long each time up to 30 s; one that lived
for 60 s begins anew with 1 s.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from tallybook.errors import BadInput, TallybookError
from tallybook.worker import notify
from tallybook.worker.stopping import RESTART

log = logging.getLogger("tallybook.worker")
PARENT_VARIABLE = "TALLYBOOK_PARENT"
MOST_PROCESSES = 128
_LONGEST_PAUSE_S = 30.0
_GOOD_LIFE_S = 60.0
_QUICK_DEATHS = 5
_LONGEST_LOOK_S = 1.0
_BAD_INPUT = 2
_INTERRUPTED = 130
_CALM = (0, _INTERRUPTED, -signal.SIGTERM, -signal.SIGINT)


@dataclass
class Backoff:
    """How long to wait before a child is started again."""

    first_s: float = 1.0
    deaths: int = 0

    def after(self, lived_s: float) -> float:
        """Seconds to wait after a child that lived for ``lived_s`` has failed."""
        self.deaths = 1 if lived_s >= _GOOD_LIFE_S else self.deaths + 1
        return float(min(_LONGEST_PAUSE_S, self.first_s * 2 ** min(self.deaths - 1, 16)))


@dataclass
class Child:
    """One place among the processes, and who holds it now."""

    name: str
    backoff: Backoff
    process: subprocess.Popen[bytes] | None = None
    started_s: float = 0.0
    start_at_s: float = 0.0
    is_over: bool = False


class Parent:
    """Keeps ``processes`` workers running, each ``command`` with a name of its own."""

    def __init__(
        self,
        command: Sequence[str],
        name: str,
        processes: int,
        *,
        drain: bool,
        first_pause_s: float = 1.0,
    ) -> None:
        """Raises BadInput for a number of processes that is none."""
        if not 1 <= processes <= MOST_PROCESSES:
            raise BadInput(f"--processes {processes}: use 1 to {MOST_PROCESSES}")
        self._command = list(command)
        self._children = [
            Child(f"{name}-{number + 1}", Backoff(first_pause_s)) for number in range(processes)
        ]
        self._drain = drain
        self._is_ending = False
        self._news: SimpleQueue[int] = SimpleQueue()  # may be put to by a signal at any moment
        self._failure: TallybookError | None = None
        self.interrupted = False

    def run(self) -> int:
        """Work until all children have ended; returns 0, or 130 after Ctrl-C.

        Raises TallybookError where a child cannot run at all, or, with ``drain``, dies five times
        in a row within a minute of its start.
        """
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, self._signalled)
        notify.notify(notify.READY)
        while not all(child.is_over for child in self._children):
            for child in self._children:
                self._look_after(child)
            notify.notify(notify.WATCHDOG)
            self._pass_on(self._next_look_s())
        if self._failure:
            raise self._failure
        return _INTERRUPTED if self.interrupted else 0

    def _signalled(self, number: int, _: object) -> None:
        self._news.put(number)

    def _pass_on(self, longest_s: float) -> None:
        """Wait for signals at most ``longest_s``; they go to all children: the first lets them
        end, the second makes them hand back."""
        with suppress(Empty):
            number = self._news.get(timeout=longest_s)
            while True:
                if number != signal.SIGCHLD:
                    self.interrupted = self.interrupted or number == signal.SIGINT
                    self._end(number)
                number = self._news.get_nowait()

    def _next_look_s(self) -> float:
        """Until the next start that is due; a signal or a child that ends comes in between."""
        now_s = time.monotonic()
        waits = [c.start_at_s - now_s for c in self._children if not c.process and not c.is_over]
        return max(0.0, min([_LONGEST_LOOK_S, *waits]))

    def _end(self, number: int) -> None:
        """The first time with SIGTERM: a child that still loads shows a traceback for Ctrl-C."""
        number = number if self._is_ending else signal.SIGTERM
        self._is_ending = True
        for child in self._children:
            if child.process and child.process.poll() is None:
                child.process.send_signal(number)

    def _look_after(self, child: Child) -> None:
        if child.process is None:
            self._start_when_due(child)
        elif child.process.poll() is not None:
            self._ended(child, child.process.returncode)

    def _start_when_due(self, child: Child) -> None:
        if self._is_ending:
            child.is_over = True
        elif not child.is_over and time.monotonic() >= child.start_at_s:
            child.started_s = time.monotonic()
            child.process = self._spawn(child)

    def _spawn(self, child: Child) -> subprocess.Popen[bytes]:
        """A child in a process group of its own: Ctrl-C reaches it through its parent alone."""
        environment = {**os.environ, PARENT_VARIABLE: str(os.getpid())}
        environment.pop(notify.VARIABLE, None)
        command = [*self._command, "--name", child.name]
        return subprocess.Popen(command, env=environment, process_group=0)

    def _ended(self, child: Child, code: int) -> None:
        child.process = None
        if self._is_ending:
            child.is_over = True
            if code not in _CALM and self._failure is None:
                self._failure = TallybookError(f"worker {child.name} ended with {_told(code)}")
        elif code == 0 and self._drain:
            child.is_over = True
        elif code == _BAD_INPUT:
            self._fail(BadInput(f"worker {child.name} cannot run; see its line above"))
        else:
            self._again(child, code)

    def _again(self, child: Child, code: int) -> None:
        now_s = time.monotonic()
        if code == RESTART:
            child.start_at_s = now_s
            return
        pause_s = child.backoff.after(now_s - child.started_s)
        if self._drain and child.backoff.deaths >= _QUICK_DEATHS:
            self._fail(TallybookError(f"worker {child.name} died {_QUICK_DEATHS} times in a row"))
            return
        told = _told(code)
        log.warning("worker %s ended with %s; again in %g s", child.name, told, pause_s)
        child.start_at_s = now_s + pause_s

    def _fail(self, failure: TallybookError) -> None:
        self._failure = self._failure or failure
        self._end(signal.SIGTERM)


def _told(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
