"""Workers as real processes: handlers, drain, signals, kills, heartbeats, metrics."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from core_steps import events, names

from tallybook import Book
from tallybook.log.verify import verify
from tallybook.worker.metrics import COLUMNS, percentile

HANDLERS = """
import asyncio, ctypes, os, time
from pathlib import Path
from tallybook import NotReached, Permanent, Retry, Snooze, handler

@handler("ok")
def ok(job):
    return {"n": job.payload}

@handler("async.ok")
async def async_ok(job, ctx):
    await asyncio.sleep(0.001)
    ctx.cache.put(f"k{job.payload}", {"n": job.payload}, origin="cloud")
    ctx.note(http_status=201, endpoint="POST /things", replayed=True)

@handler("retry.once")
def retry_once(job):
    if job.attempt_count == 0:
        raise Retry("not yet", http_status=503, endpoint="POST /things")

@handler("bug")
def bug(job):
    return {"a": 1}["b"]

@handler("dead")
def dead(job):
    raise Permanent("too large", http_status=413)

@handler("unreached.once")
def unreached(job):
    marker = Path(f"unreached-{job.job_id}")
    if not marker.exists():
        marker.touch()
        raise NotReached("no route")

@handler("bad.result")
def bad_result(job):
    return {"words": "\\ud800"}

@handler("slow")
def slow(job):
    Path("running").touch()
    time.sleep(job.payload)

@handler("holds.gil")
def holds_gil(job):
    marker = Path(f"held-{job.job_id}")
    if not marker.exists():
        marker.touch()
        ctypes.PyDLL(None).usleep(int(job.payload * 1_000_000))  # PyDLL keeps the GIL

@handler("reads.cache")
def reads_cache(job, ctx):
    return [ctx.cache.get(key).entry is None for key in ("there", "nowhere")]
"""
TOML = """
[worker]
metrics_interval_s = 0.2
[topics."retry.once"]
backoff_first_s = 0.01
[topics."unreached.once"]
backoff_first_s = 0.01
[topics.bug]
backoff_first_s = 0.01
max_attempts = 2
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "handlers.py").write_text(HANDLERS)
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "book.toml").write_text(TOML)
    return tmp_path


Starter = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def worker(place: Path) -> Iterator[Starter]:
    started: list[subprocess.Popen[str]] = []

    def start(*options: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tallybook", "worker", "handlers", *options]
        process = subprocess.Popen(command, cwd=place, stderr=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def drain(worker: Starter, *options: str) -> str:
    """Run a worker until nothing is open; returns what it said."""
    process = worker("--drain", *options)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    return said


def until(condition: Callable[[], object], seconds: float = 20) -> None:
    """Wait for a condition; the test fails where it does not come."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)


def put(place: Path, topic: str, *payloads: object) -> list[str]:
    """Enqueue jobs; returns their ids."""
    with Book.open(place / "book") as book:
        return [book.enqueue(topic, payload).job_id for payload in payloads]


def final(place: Path, name: str) -> list[dict[str, object]]:
    """The events of one name in the log."""
    return [event for event in events(place / "book") if event["event"] == name]


def test_functions_and_coroutines_run_and_their_facts_reach_the_log(
    place: Path, worker: Starter
) -> None:
    put(place, "ok", 1)
    put(place, "async.ok", 2)
    drain(worker)
    done = {event["topic"]: event for event in final(place, "job.done")}
    assert done["ok"]["result"] == {"n": 1}
    facts = ("http_status", "endpoint", "replayed")
    assert [done["async.ok"][fact] for fact in facts] == [201, "POST /things", True]
    with Book.read(place / "book") as book:
        entry = book.entry("k2")
        assert entry is not None and entry.origin == "cloud"


def test_each_way_to_fail_ends_as_it_says(place: Path, worker: Starter) -> None:
    for topic in ("retry.once", "bug", "dead", "unreached.once", "bad.result"):
        put(place, topic, 1)
    drain(worker)
    with Book.read(place / "book") as book:
        ends = {job.topic: (job.status, job.attempt_count) for job in book.jobs()}
    assert ends == {
        "retry.once": ("done", 2),
        "bug": ("dead", 2),
        "dead": ("dead", 1),
        "unreached.once": ("done", 1),
        "bad.result": ("dead", 1),
    }


def test_a_traceback_names_files_from_their_package_on(place: Path, worker: Starter) -> None:
    put(place, "bug", 1)
    drain(worker)
    text = final(place, "job.dead")[0]["traceback"]
    assert isinstance(text, str)
    assert 'File "handlers.py"' in text
    assert str(place) not in text
    assert "KeyError: 'b'" in text


def test_a_handler_that_outlasts_its_lease_keeps_it_by_heartbeat(
    place: Path, worker: Starter
) -> None:
    put(place, "slow", 2.5)
    drain(worker, "--lease", "0.9")
    assert names(place / "book").count("job.leased") == 1
    extended = final(place, "job.extended")
    assert len(extended) >= 2
    assert all(event["started_at"] for event in extended)


def test_a_killed_workers_job_comes_back_and_its_heartbeat_is_taken_away(
    place: Path, worker: Starter
) -> None:
    (job_id,) = put(place, "slow", 0.5)
    victim = worker("--lease", "2", "--threads", "1", "--name", "victim")
    until(lambda: (place / "running").exists())
    victim.kill()
    victim.wait()
    drain(worker, "--lease", "2")
    kinds = [e["event"] for e in events(place / "book") if e.get("job_id") == job_id]
    kinds = [kind for kind in kinds if kind != "job.extended"]
    assert kinds == ["job.enqueued", "job.leased", "job.lease_expired", "job.leased", "job.done"]
    assert not list((place / "book" / "heartbeats").iterdir())
    died = [e["worker"] for e in final(place, "worker.stopped") if e["reason"] == "died"]
    assert died == ["victim"]


def test_a_lease_is_not_kept_beyond_the_longest_run_of_its_topic(
    place: Path, worker: Starter
) -> None:
    (place / "book" / "book.toml").write_text("[topics.slow]\nmax_run_s = 1\nmax_rescues = 0\n")
    (job_id,) = put(place, "slow", 4)
    drain(worker, "--lease", "0.9", "--threads", "1")
    told = [e for e in events(place / "book") if e.get("job_id") == job_id]
    assert any(e["event"] == "job.extended" for e in told)
    assert told[-1]["event"] in ("job.dead", "job.settle_refused")
    (expired,) = [e for e in told if e["event"] == "job.lease_expired"]
    (dead,) = [e for e in told if e["event"] == "job.dead"]
    assert (expired["reason"], dead["reason"]) == ("expired", "killed_workers")


def test_sigterm_claims_nothing_more_and_settles_what_runs(place: Path, worker: Starter) -> None:
    put(place, "slow", 1.0, 1.0)
    process = worker("--threads", "1", "--lease", "0.6")
    until(lambda: (place / "running").exists())
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=20) == 0
    with Book.read(place / "book") as book:
        assert book.counts() == {"slow": {"done": 1, "pending": 1}}


def test_a_second_signal_hands_the_running_job_back_uncounted(place: Path, worker: Starter) -> None:
    put(place, "slow", 60)
    process = worker("--threads", "1")
    until(lambda: (place / "running").exists())
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)  # at once: the second may come while the first is handled
    assert process.wait(timeout=20) == 130
    assert process.stderr
    said = process.stderr.read()
    assert "stopping: waits for 1 running job; again to hand it back at once" in said
    with Book.read(place / "book") as book:
        (job,) = book.jobs()
    assert (job.status, job.attempt_count, job.rescue_count) == ("pending", 0, 0)


def test_a_handler_that_holds_the_gil_for_twice_its_lease_is_refused_and_rescued(
    place: Path, worker: Starter
) -> None:
    (job_id,) = put(place, "holds.gil", 2.4)
    said = drain(worker, "--lease", "1.2", "--threads", "1")
    told = [e for e in events(place / "book") if e.get("job_id") == job_id]
    kept = [e["event"] for e in told if e["event"] != "job.settle_refused"]
    assert kept == ["job.enqueued", "job.leased", "job.lease_expired", "job.leased", "job.done"]
    assert "this result is dropped" in said
    late = [e for e in told if e["event"] == "job.settle_refused" and e["settle"] == "done"]
    assert [e["lease_token"] for e in late] == [1]


def test_a_stopped_worker_that_wakes_cannot_change_its_job(place: Path, worker: Starter) -> None:
    (job_id,) = put(place, "slow", 0.5)
    victim = worker("--lease", "2", "--threads", "1", "--name", "sleeper")
    until(lambda: (place / "running").exists())
    with Book.open(place / "book") as book, book.hold():
        os.kill(victim.pid, signal.SIGSTOP)
    drain(worker, "--lease", "2")
    os.kill(victim.pid, signal.SIGCONT)
    until(lambda: final(place, "job.settle_refused"))
    refused = final(place, "job.settle_refused")
    assert {event["worker"] for event in refused} == {"sleeper"}
    with Book.read(place / "book") as book:
        job = book.job(job_id)
        assert job is not None and (job.status, job.lease_token) == ("done", 2)
    victim.terminate()
    until(lambda: "done" in {event.get("settle") for event in final(place, "job.settle_refused")})


def test_metrics_agree_with_the_log_and_say_how_far_it_was(place: Path, worker: Starter) -> None:
    with Book.open(place / "book") as book:
        put(place, "ok", *range(40))
        put(place, "dead", 1)
        put(place, "reads.cache", 1)
        assert book.counts()["ok"] == {"pending": 40}
    drain(worker, "--name", "w")
    (path,) = (place / "book" / "metrics").glob("*.csv")
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert sum(int(row["done_count"]) for row in rows) == 41
    assert sum(int(row["dead_count"]) for row in rows) == 1
    assert sum(int(row["cache_misses"]) for row in rows) == 2
    assert (rows[-1]["pending"], rows[-1]["done"], rows[-1]["dead"]) == ("0", "41", "1")
    latest = json.loads((place / "book" / "metrics" / "latest.json").read_bytes())
    with Book.read(place / "book") as book:
        at = book.position()
    assert (latest["writer"], at.seq - latest["seq"]) == (at.writer, 1)
    assert set(latest["last"]) == {"w"}
    assert verify(book.layout).complete


def test_enqueued_in_the_metrics_is_what_came_in_the_interval(place: Path, worker: Starter) -> None:
    process = worker("--name", "w")
    until(lambda: list((place / "book" / "metrics").glob("*.csv")))
    put(place, "ok", *range(7))
    until(lambda: len(final(place, "job.done")) == 7)
    process.terminate()
    process.wait()
    (path,) = (place / "book" / "metrics").glob("*.csv")
    with path.open(newline="") as file:
        assert sum(int(row["enqueued"]) for row in csv.DictReader(file)) == 7


def test_percentiles_are_interpolated() -> None:
    assert percentile([1.0, 2.0, 3.0, 4.0], 0.5) == 2.5
    assert percentile([1.0, 2.0], 0.95) == pytest.approx(1.95)
    assert percentile([7.0], 0.99) == 7.0
