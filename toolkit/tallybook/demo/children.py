"""The processes that the demo starts. None of them outlives it, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from tallybook.errors import TallybookError

POLL_S = 0.02
GRACE_S = 5.0


class Children:
    """Starts processes, each in a session of its own, with their output in ``folder``.

    On exit every one that still runs is killed, stopped ones too; a ``gentle`` one is interrupted
    first and has ``grace_s`` to put away what it started itself.
    """

    def __init__(self, folder: Path, grace_s: float = GRACE_S) -> None:
        self._folder = folder
        self._grace_s = grace_s
        self._started: dict[str, subprocess.Popen[str]] = {}
        self._gentle: set[str] = set()

    def start(
        self,
        name: str,
        arguments: list[str],
        env: Mapping[str, str] | None = None,
        stdin: int = subprocess.DEVNULL,
        stdout: int | None = None,
        gentle: bool = False,
    ) -> subprocess.Popen[str]:
        """Start ``python ARGUMENTS``; it prints into NAME.out and complains into NAME.log."""
        self._gentle |= {name} if gentle else set()
        with (
            self._file(name, "out").open("w") as out,
            self._file(name, "log").open("w") as log,
            _undisturbed(),
        ):
            self._started[name] = subprocess.Popen(
                [sys.executable, *arguments],
                env=_environment(env or {}),
                cwd=self._folder,
                stdin=stdin,
                stdout=out if stdout is None else stdout,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        return self._started[name]

    def check(self, *expected: str) -> None:
        """Raise TallybookError when a child ended badly, save those ``expected`` to."""
        for name, child in self._started.items():
            if child.poll() and name not in expected:
                raise TallybookError(f"demo: {name} ended with {child.poll()}: {self.said(name)}")

    def ended(self, *names: str) -> bool:
        """Whether all of these have ended."""
        return all(self._started[name].poll() is not None for name in names)

    def printed(self, name: str) -> str:
        """What a child printed on its standard output."""
        return self._file(name, "out").read_text("utf-8", "replace")

    def said(self, name: str) -> str:
        """The last line of a child's complaints and where the rest is."""
        path = self._file(name, "log")
        lines = path.read_text("utf-8", "replace").strip().splitlines()
        return f"{lines[-1] if lines else 'no output'} (see {path})"

    def __enter__(self) -> Children:
        return self

    def __exit__(self, *_: object) -> None:
        with _undisturbed():
            self._end_all()

    def _end_all(self) -> None:
        running = {name: child for name, child in self._started.items() if child.poll() is None}
        gentle = [child for name, child in running.items() if name in self._gentle]
        for child in gentle:
            _signal(child, signal.SIGINT)
        deadline = time.monotonic() + self._grace_s
        while time.monotonic() < deadline and not all(map(_has_ended, gentle)):
            time.sleep(POLL_S)
        for child in running.values():
            _signal(child, signal.SIGKILL)
        for child in self._started.values():
            child.wait()
            _close(child.stdin, child.stdout)

    def _file(self, name: str, suffix: str) -> Path:
        return self._folder / f"{name}.{suffix}"


def wait_for(condition: Callable[[], bool], what: str, seconds: float) -> None:
    """Wait until ``condition`` holds; TallybookError that says ``what`` did not come in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TallybookError(f"demo: {what} did not happen within {seconds:g} s")
        time.sleep(POLL_S)


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    """Ours, without what would name another book."""
    kept = {name: value for name, value in os.environ.items() if name != "TALLYBOOK_BOOK"}
    return {**kept, **more}


@contextmanager
def _undisturbed() -> Iterator[None]:
    """SIGINT and SIGTERM take effect afterwards: no child is forgotten between start and list."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, lambda late, _: came.append(late))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
        for late in came[:1]:
            signal.raise_signal(late)


def _has_ended(child: subprocess.Popen[str]) -> bool:
    """Whether a child has ended; it is not waited for, so its group's number stays its own."""
    return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _signal(child: subprocess.Popen[str], number: int) -> None:
    """Signal the whole group of a child that was not waited for."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, number)


def _close(*pipes: IO[str] | None) -> None:
    for pipe in pipes:
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()
