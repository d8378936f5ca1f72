"""Faults on demand: what a test can make go wrong on the road of a change.

``durable`` asks the armed plan before each sync and rename, in the middle of each write and at
each crash point. None is armed unless a test does it (``tallybook.testing``) or the environment:

    TALLYBOOK_CRASH_AT=after_sync:3                 killed at the third after_sync
    TALLYBOOK_FAULTS=write:segment:2:ENOSPC,sync:log folder:0:skip
"""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from tallybook.errors import BadInput

KINDS = ("point", "write", "sync", "rename")
POINTS = (
    "writer_created",
    "before_append",
    "segment_created",
    "after_append",
    "after_sync",
    "before_commit",
    "after_commit",
    "swap_written",
    "swap_unlinked",
    "swap_renamed",
)
_GRAMMAR = "write kind:name:n:effect, as in write:segment:2:ENOSPC"


class Crashed(BaseException):
    """The process is to be thought dead from here on: drop the book, open it anew."""


@dataclass(frozen=True, slots=True)
class Fault:
    """At the ``nth`` step (0: at each) of this ``kind`` and ``name`` (empty: any), ``effect``.

    Effects: the name of an errno such as ``ENOSPC``; ``kill`` (SIGKILL of this process);
    ``raise`` (``Crashed``); ``skip`` (the sync is left out). A write that fails, or that a kill
    hits, has put half of its bytes into the file.
    """

    kind: str
    name: str
    nth: int
    effect: str

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise BadInput(f"fault {self}: no kind {self.kind!r}; known: {', '.join(KINDS)}")
        if self.kind == "point" and self.name not in ("", *POINTS):
            raise BadInput(f"fault {self}: no crash point {self.name!r}; known: {POINTS}")
        if self.effect not in ("kill", "raise", "skip") and not hasattr(errno, self.effect):
            raise BadInput(f"fault {self}: use an errno name, kill, raise or skip")
        if self.effect == "skip" and self.kind != "sync":
            raise BadInput(f"fault {self}: only a sync can be left out")


Hook = Callable[[str, str], Fault | None]
"""Asked at each step, by its kind and name, what goes wrong there."""


class Plan:
    """Faults that wait for their step. ``struck`` lists those that came, in order."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.struck: list[Fault] = []
        self._counts = dict.fromkeys(faults, 0)
        self._mutex = threading.Lock()

    def __call__(self, kind: str, name: str) -> Fault | None:
        """Count this step; the fault that is due at it."""
        with self._mutex:
            here = [f for f in self._counts if f.kind == kind and f.name in ("", name)]
            for fault in here:
                self._counts[fault] += 1
            due = [fault for fault in here if fault.nth in (0, self._counts[fault])]
            self.struck += due[:1]
        return due[0] if due else None


def from_environment(environment: Mapping[str, str]) -> Plan | None:
    """The plan that the environment asks for; None for none. Raises BadInput."""
    faults = [_parsed(text) for text in environment.get("TALLYBOOK_FAULTS", "").split(",") if text]
    if crash := environment.get("TALLYBOOK_CRASH_AT"):
        name, _, nth = crash.partition(":")
        faults.append(Fault("point", name, _number(crash, nth or "1"), "kill"))
    return Plan(faults) if faults else None


def _parsed(text: str) -> Fault:
    parts = text.split(":")
    if len(parts) != 4:
        raise BadInput(f"TALLYBOOK_FAULTS {text!r}: {_GRAMMAR}")
    kind, name, nth, effect = parts
    return Fault(kind.strip(), name, _number(text, nth), effect)


def _number(text: str, digits: str) -> int:
    if not digits.isdecimal():
        raise BadInput(f"fault {text!r}: {digits!r} is no number; {_GRAMMAR}")
    return int(digits)


def strike(fault: Fault) -> None:
    """Let ``fault`` come."""
    if fault.effect == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault.effect == "raise":
        raise Crashed(f"{fault.kind} {fault.name}")
    number = getattr(errno, fault.effect)
    raise OSError(number, os.strerror(number))
