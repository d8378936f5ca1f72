"""Faults for a test: armed in this process, or told to a child process by its environment."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from tallybook.log import durable
from tallybook.log.faults import Fault, Plan


def crash_at(point: str, nth: int = 1) -> Fault:
    """The process is thought dead at the ``nth`` passage of a crash point: ``Crashed`` is raised
    or, in a child process, it is killed."""
    return Fault("point", point, nth, "raise")


@contextmanager
def faults(*wanted: Fault) -> Iterator[Plan]:
    """Arm faults in this process; yields the plan, whose ``struck`` lists those that came.

    A sync that fails ends the process: try that in a child.
    """
    plan = Plan(wanted)
    with durable.hooked(plan):
        yield plan


def environment(*wanted: Fault) -> dict[str, str]:
    """The variables that arm faults in a child process; ``raise`` becomes a SIGKILL there."""
    told = []
    for fault in wanted:
        effect = "kill" if fault.effect == "raise" else fault.effect
        told.append(f"{fault.kind}:{fault.name}:{fault.nth}:{effect}")
    return {"TALLYBOOK_FAULTS": ",".join(told)}


def dice_faults(seed: int, steps: int, share: float = 0.1) -> list[Fault]:
    """Writes and renames that fail, a ``share`` of the first ``steps`` of each, by ``seed``."""
    dice = random.Random(seed)  # noqa: S311 - a test has to be repeatable
    return [
        Fault(kind, "", nth, dice.choice(("ENOSPC", "EDQUOT", "EIO")))
        for nth in range(1, steps + 1)
        for kind in ("write", "rename")
        if dice.random() < share
    ]
