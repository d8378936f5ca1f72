"""Long fault tests (``make torture``): workers killed at random moments, again and again.

``TORTURE_SEED`` and ``TORTURE_KILLS`` choose the run; the defaults are 1 and 100.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

from tallybook import Book
from tallybook.layout import Layout
from tallybook.log.verify import verify

SEED = int(os.environ.get("TORTURE_SEED", "1"))
KILLS = int(os.environ.get("TORTURE_KILLS", "100"))
HANDLERS = """
import random, time
from tallybook import Retry, handler

@handler("a")
def a(job, ctx):
    time.sleep(random.random() / 50)
    if job.payload % 7 == 0 and job.attempt_count == 0:
        raise Retry("once more")
    ctx.cache.put(f"k{job.payload % 50}", job.payload)
"""
TOML = "[topics.a]\nbackoff_first_s = 0.05\nmax_rescues = 1000\n"


def test_no_job_is_lost_and_no_two_leases_overlap_under_random_kills(tmp_path: Path) -> None:
    dice = random.Random(SEED)  # noqa: S311
    (tmp_path / "torture_handlers.py").write_text(HANDLERS)
    book = tmp_path / "book"
    book.mkdir()
    (book / "book.toml").write_text(TOML)
    enqueued = fill(book, KILLS * 10)
    workers = [start(tmp_path) for _ in range(3)]
    for _ in range(KILLS):
        time.sleep(dice.uniform(0.01, 0.3))
        place = dice.randrange(len(workers))
        workers[place].kill()
        workers[place].wait()
        workers[place] = start(tmp_path)
    for worker in workers:
        worker.terminate()
        worker.wait()
    drained = start(tmp_path, "--drain")
    assert drained.wait(timeout=600) == 0
    with Book.read(book) as opened:
        ends = {job.job_id: job.status for job in opened.jobs(limit=10**6)}
    assert ends == dict.fromkeys(enqueued, "done")
    assert verify(Layout(book)).complete
    check_leases(book)


def fill(book: Path, jobs: int) -> list[str]:
    """Enqueue jobs; returns their ids."""
    with Book.open(book) as opened:
        return [opened.enqueue("a", number).job_id for number in range(jobs)]


def start(cwd: Path, *options: str) -> subprocess.Popen[bytes]:
    """A worker process with short leases."""
    words = ("worker", "torture_handlers", "--lease", "0.6", "--threads", "2", *options)
    return subprocess.Popen([sys.executable, "-m", "tallybook", *words], cwd=cwd)


def check_leases(book: Path) -> None:
    """In the log each lease ends before the next of its job begins, and tokens count up."""
    open_tokens: dict[str, int] = {}
    last: dict[str, int] = {}
    ends = {"job.done", "job.retry_scheduled", "job.dead", "job.lease_expired", "job.released"}
    for path in sorted((book / "log").glob("*.ndjson")):
        for line in path.read_bytes().splitlines():
            event = json.loads(line)
            job = event.get("job_id")
            if event["event"] == "job.leased":
                assert job not in open_tokens, event
                assert event["lease_token"] == last.get(job, 0) + 1, event
                open_tokens[job] = last[job] = event["lease_token"]
            elif event["event"] in ends:
                assert open_tokens.pop(job) == event["lease_token"], event
    assert open_tokens == {}
