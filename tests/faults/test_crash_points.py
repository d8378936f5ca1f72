"""kill -9 at every named place on the road of a change: nothing acknowledged is lost.

Crash points, and every write, sync and rename by its name. F6, F9, F22, F38: work is found again
by whoever comes next, whole, and the log says so.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tallybook import Book
from tallybook.testing import POINTS, Fault, audit, crash_at, environment

LIVE = """
import sys
from pathlib import Path
from tallybook import Book, handler
from tallybook.book.pruning import prune
from tallybook.log.compress import compress_closed
from tallybook.testing import run_inline

def work(job, ctx):
    ctx.cache.put(f"key-{job.job_id}", job.payload)

root = Path(sys.argv[1])
for life in range(3):
    with Book.open(root) as book:
        for number in range(6):
            receipt = book.enqueue("a", {"n": number, "words": "x" * 200})
            print("enqueued", receipt.job_id, flush=True)
            if number % 2:
                print(*run_inline(book, {"a": work}), flush=True)
        compress_closed(book.layout)
        if life:
            prune(book)
    if life == 1:
        for path in root.glob("state.db*"):
            path.unlink()
print("over", flush=True)
"""
STEPS = [
    *(crash_at(point, nth) for point in POINTS for nth in (1, 2, 4)),
    *(
        Fault("sync", name, 1, "kill")
        for name in ("anchor", "archive", "checkpoint mark", "left folder", "log folder")
    ),
    *(Fault("sync", name, 1, "kill") for name in ("manifest folder", "old wal")),
    *(Fault("rename", name, 1, "kill") for name in ("archive", "manifest", "checkpoint", "anchor")),
    *(Fault("write", name, 1, "kill") for name in ("manifest", "anchor", "writer file")),
    *(Fault("write", "segment", nth, "kill") for nth in (1, 3, 12)),
]


def live(root: Path, *faults: Fault) -> tuple[int, list[str]]:
    """Run the life above; how it ended and what it acknowledged."""
    env = {**os.environ, **environment(*faults)}
    command = [sys.executable, "-c", LIVE, str(root)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode, done.stdout.split()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "book"
    root.mkdir()
    (root / "book.toml").write_text("[log]\nsegment_bytes = 4096\n")
    return root


@pytest.mark.parametrize("fault", STEPS, ids=lambda f: f"{f.kind}-{f.name}-{f.nth}")
def test_a_kill_at_this_step_loses_nothing_and_the_next_life_goes_on(
    root: Path, fault: Fault
) -> None:
    code, told = live(root, fault)
    if fault.nth == 1 or fault.name in ("after_sync", "after_commit", "before_append"):
        assert code == -signal.SIGKILL, "the step was never reached"
    acknowledged = {told[place + 1] for place, word in enumerate(told) if word == "enqueued"}
    done = told.count("job.done")
    with Book.open(root) as book:
        jobs = book.jobs(limit=1000)
        assert acknowledged <= {job.job_id for job in jobs}
        ended = [job for job in jobs if job.status == "done"]
        assert len(ended) >= done
        assert all(book.entry(f"key-{job.job_id}") for job in ended)
    assert audit(root) == []
    assert live(root)[0] == 0
    assert audit(root) == []
