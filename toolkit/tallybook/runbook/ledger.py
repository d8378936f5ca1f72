"""The ledger: ``runs.ndjson``, one line when a run begins and one when it ends.

The line of the begin has the status ``running``. Where no line of an end follows and nobody has
the turn of that run, its process was killed or the machine stopped: it is told as
``interrupted``, at once by whoever reads, and in the ledger by the next run.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tallybook import whole
from tallybook.layout import FILE_MODE
from tallybook.runbook.turns import Turn

FILE = "runs.ndjson"
RUNNING, INTERRUPTED = "running", "interrupted"
INTERRUPTED_CODE = 130
WITHOUT_A_WORD = "its process ended without a word: killed, or the machine stopped"


@dataclass(frozen=True, slots=True)
class Ledger:
    """The runs under one folder."""

    out: Path

    @property
    def path(self) -> Path:
        """The file."""
        return self.out / FILE

    def append(self, line: Mapping[str, Any]) -> None:
        """Put one line on disk, whole or not at all; raises OSError where it does not fit."""
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n"
        fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            whole.append(fd, text.encode("utf-8", "surrogateescape"))
        finally:
            os.close(fd)

    def runs(self) -> list[dict[str, Any]]:
        """Every run, oldest first, as its last line has it and as it stands now."""
        return [self._now(run) for run in self._told().values()]

    def unreadable(self) -> int:
        """How many lines are no run: torn by a stop of the machine, or edited."""
        return sum(run is None for run in self._lines())

    def tell_dead(self, turn: Turn) -> None:
        """Write the end of the runs of ``turn`` that ended without a word.

        To be called by who has the turn: then no other such run is alive.
        """
        for run in self._told().values():
            if run["status"] == RUNNING and turn_of(self.out, run) == turn:
                self.append(_ended(run))

    def _told(self) -> dict[str, dict[str, Any]]:
        """{run: what its lines say, the later over the earlier}."""
        told: dict[str, dict[str, Any]] = {}
        for line in self._lines():
            if line is not None:
                told[line["run"]] = {**told.get(line["run"], {}), **line}
        return told

    def _now(self, run: dict[str, Any]) -> dict[str, Any]:
        dead = run["status"] == RUNNING and not turn_of(self.out, run).has(run["run"])
        return _ended(run) if dead else run

    def _lines(self) -> Iterator[dict[str, Any] | None]:
        try:
            lines = self.path.read_bytes().splitlines()
        except FileNotFoundError:
            return
        for line in lines:
            if line.strip():
                yield _run(line)


def turn_of(out: Path, run: Mapping[str, Any]) -> Turn:
    """The turn that the run of a line of the ledger has, or had."""
    return Turn(out, str(run.get("runbook")), str(run.get("book") or run.get("notebook")))


def severities(findings: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many findings of each severity."""
    counts = {"problem": 0, "warning": 0, "info": 0}
    for found in findings:
        name = str(found.get("severity"))
        counts[name] = counts.get(name, 0) + 1
    return counts


def _ended(run: Mapping[str, Any]) -> dict[str, Any]:
    end = {"status": INTERRUPTED, "exit_code": INTERRUPTED_CODE, "message": WITHOUT_A_WORD}
    return {**run, **end}


def _run(line: bytes) -> dict[str, Any] | None:
    try:
        run = json.loads(line)
    except ValueError:
        return None
    known = isinstance(run, dict) and isinstance(run.get("run"), str) and "status" in run
    return run if known else None
