"""The killer: what happens to the two victims, and its ledger."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tallybook.book import Book
from tallybook.demo.children import Children, wait_for

PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Victim:
    """A worker that holds one job and waits: what it reported, and its process."""

    record: str
    job_id: str
    lease_token: int
    report: Path
    process: subprocess.Popen[str]


def victim(report: Path, process: subprocess.Popen[str], children: Children) -> Victim:
    """Wait until a victim has reported the job that it holds."""

    def reported() -> bool:
        children.check()
        return report.exists()

    wait_for(reported, f"the report of a victim ({report.name})", PATIENCE_S)
    held = json.loads(report.read_text("utf-8"))
    return Victim(held["record"], held["job_id"], held["lease_token"], report, process)


def kill(book: Book, held: Victim) -> None:
    """SIGKILL, at an instant when the victim is in the middle of no change."""
    with book.hold():
        os.kill(held.process.pid, signal.SIGKILL)
        held.process.wait()


def stop(book: Book, held: Victim) -> None:
    """SIGSTOP while nobody changes the book: a process that is stopped with the lock keeps it."""
    with book.hold():
        os.kill(held.process.pid, signal.SIGSTOP)
        wait_for(lambda: _is_stopped(held.process.pid), "stopping a victim", PATIENCE_S)


def is_settled_by_another(book: Book, held: Victim) -> bool:
    """Whether the victim's job was rescued and is done."""
    job = book.job(held.job_id)
    return job is not None and job.lease_token > held.lease_token and job.status == "done"


def wake(held: Victim) -> None:
    """SIGCONT; the handler goes on and delivers, later than its lease."""
    Path(f"{held.report}.go").touch()
    os.kill(held.process.pid, signal.SIGCONT)


def ledger(killed: Victim, stopped: Victim) -> dict[str, list[str]]:
    """What the runbooks must find of the killer's work."""
    return {
        "stuck_lease": sorted({killed.record, stopped.record}),
        "late_settle_refused": [stopped.record],
    }


def _is_stopped(pid: int) -> bool:
    found = os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT | os.WNOHANG)
    return found is not None
