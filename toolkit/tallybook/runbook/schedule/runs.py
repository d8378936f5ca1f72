"""A run as a process of its own: begun, watched, told to stop; and one that outlived its schedule.

The run writes its answer into a file that is locked (flock) before it begins. The lock is that of
the open file, which the process and its children inherit: it is free when all of them are gone,
so a schedule that starts anew can tell a run that is still at work from one that ended, and reads
its answer either way. No process id is trusted for that.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tallybook.layout import FILE_MODE
from tallybook.runbook import folder

FAILED, BAD_INPUT, INTERRUPTED = "failed", "bad_input", "interrupted"
_BAD_INPUT_CODE, _FAILED_CODE, _INTERRUPTED_CODE = 2, 3, 130
_LONGEST = 500


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended, and what it said: ``findings`` as in findings.json."""

    status: str
    exit_code: int
    report: str = ""
    message: str = ""
    findings: tuple[Mapping[str, Any], ...] = ()


@dataclass
class Runs:
    """The runs of one schedule; what they say lies in ``place``, two files an entry."""

    place: Path
    _children: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _told: set[str] = field(default_factory=set)

    def begin(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> int:
        """Start ``command`` for the entry ``name``; returns its process id.

        It is a session of its own: Ctrl-C at the terminal reaches the schedule alone.
        """
        folder.private_folder(self.place)
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        answer = os.open(self._file(name, ".json"), flags, FILE_MODE)
        said = os.open(self._file(name, ".log"), flags, FILE_MODE)
        try:
            fcntl.flock(answer, fcntl.LOCK_EX)
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=answer,
                stderr=said,
                env={**os.environ, **environment},
                start_new_session=True,
            )
        finally:
            os.close(answer)
            os.close(said)
        self._children[name] = child
        return child.pid

    def forget(self, name: str) -> None:
        """Have no answer of the entry ``name`` lie there from an earlier run."""
        for suffix in (".json", ".log"):
            self._file(name, suffix).unlink(missing_ok=True)

    def is_ours(self, name: str) -> bool:
        """Whether this process started the run of ``name`` and has not seen it end."""
        return name in self._children

    def ended(self, name: str) -> Outcome | None:
        """How the run of ``name`` ended; None while it is at work."""
        child = self._children.get(name)
        if child is None:
            return None if self._is_locked(name) else self._answered(name, None)
        if child.poll() is None:
            return None
        del self._children[name]
        told = name in self._told and child.returncode < 0
        self._told.discard(name)
        return self._answered(name, None if told else child.returncode)

    def stop(self, name: str, pid: int, *, kill: bool = False) -> None:
        """Tell the run of ``name`` to stop, as Ctrl-C does; or kill it with all it started."""
        child = self._children.get(name)
        if child is None and not (pid and self._is_locked(name)):
            return
        pid = child.pid if child else pid
        self._told.add(name)
        try:
            if kill:
                os.killpg(pid, signal.SIGKILL)
            else:
                os.kill(pid, signal.SIGINT)
        except ProcessLookupError:
            return

    def _is_locked(self, name: str) -> bool:
        try:
            fd = os.open(self._file(name, ".json"), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(fd)
        return False

    def _answered(self, name: str, code: int | None) -> Outcome:
        """What the run said; without an answer, what its exit code (None: not known) means."""
        answer = _object(self._file(name, ".json"))
        if answer is not None:
            found = [one for one in answer.get("findings") or () if isinstance(one, dict)]
            return Outcome(
                str(answer["status"]),
                int(answer["exit_code"]),
                str(answer.get("report") or ""),
                str(answer.get("message") or ""),
                tuple(found),
            )
        if code is None or code == _INTERRUPTED_CODE:
            return Outcome(INTERRUPTED, _INTERRUPTED_CODE)
        said = _last_line(self._file(name, ".log"))
        if code == _BAD_INPUT_CODE:
            return Outcome(BAD_INPUT, code, message=said)
        how = f"ended with code {code}" if code >= 0 else f"was killed by signal {-code}"
        return Outcome(FAILED, _FAILED_CODE, message=said or f"the run {how}")

    def _file(self, name: str, suffix: str) -> Path:
        return self.place / f"{folder.safe_name(name) or 'entry'}{suffix}"


def _object(path: Path) -> dict[str, Any] | None:
    """The JSON object of a run in ``path``; None where it is not whole."""
    try:
        answer = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    known = isinstance(answer, dict) and "status" in answer and "exit_code" in answer
    return answer if known else None


def _last_line(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 65_536))
            lines = file.read().decode("utf-8", "replace").split("\n")
    except OSError:
        return ""
    said = [line.strip() for line in lines if line.strip()]
    return said[-1].removeprefix("tallybook: ")[:_LONGEST] if said else ""
