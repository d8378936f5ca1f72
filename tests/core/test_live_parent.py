"""A parent keeps its workers running, passes signals on, and gives up where nothing helps."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_steps import Place, until

from tallybook import Book
from tallybook.errors import BadInput
from tallybook.worker.notify import notify
from tallybook.worker.parent import Backoff, Parent


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.end()


def pids(place: Place) -> dict[str, int]:
    """The pid of each worker that has started, by name; the last one counts."""
    return {event["worker"]: event["pid"] for event in place.named("worker.started")}


def test_each_process_is_a_worker_and_a_killed_one_is_started_again(place: Place) -> None:
    parent = place.worker("--processes", "2", "--name", "w")
    until(lambda: set(pids(place)) == {"w-1", "w-2"})
    before = pids(place)
    os.kill(before["w-2"], signal.SIGKILL)
    until(lambda: pids(place)["w-2"] != before["w-2"])
    assert pids(place)["w-1"] == before["w-1"]
    parent.terminate()
    assert parent.wait(timeout=30) == 0
    reasons = sorted(event["reason"] for event in place.named("worker.stopped"))
    assert reasons == ["died", "stopped", "stopped"]


def test_a_signal_to_the_parent_lets_the_running_jobs_end_and_claims_no_more(place: Place) -> None:
    for _ in range(4):
        place.put("slow", 1.5)
    parent = place.worker("--processes", "2", "--lease", "1")
    until(lambda: len(place.named("job.leased")) == 2 and (place.root / "running-1").exists())
    parent.terminate()
    assert parent.wait(timeout=30) == 0
    done, begun = len(place.named("job.done")), 2 - len(place.named("job.released"))
    assert done == begun > 0
    assert len(place.named("job.leased")) == 2
    with Book.read(place.book) as book:
        assert book.counts() == {"slow": {"done": done, "pending": 4 - done}}


def test_a_second_signal_hands_the_jobs_back_at_once(place: Place) -> None:
    place.put("slow", 60)
    parent = place.worker("--processes", "1")
    until(lambda: (place.root / "running-1").exists())
    parent.send_signal(signal.SIGINT)
    time.sleep(0.5)
    parent.send_signal(signal.SIGINT)
    assert parent.wait(timeout=30) == 130
    with Book.read(place.book) as book:
        (job,) = book.jobs()
    assert (job.status, job.rescue_count) == ("pending", 0)


def test_a_drain_ends_when_every_child_has_nothing_left(place: Place) -> None:
    for _ in range(20):
        place.put("ok")
    parent = place.worker("--processes", "2", "--drain")
    assert parent.wait(timeout=60) == 0
    assert len(place.named("job.done")) == 20


def test_children_stop_by_themselves_when_their_parent_is_killed(place: Place) -> None:
    parent = place.worker("--processes", "2")
    until(lambda: len(pids(place)) == 2)
    parent.kill()
    until(lambda: len(place.named("worker.stopped")) == 2)
    assert {event["reason"] for event in place.named("worker.stopped")} == {"stopped"}


def test_a_module_that_is_not_there_ends_all_with_code_2(place: Place) -> None:
    command = [sys.executable, "-m", "tallybook", "worker", "nothing", "--processes", "2"]
    done = subprocess.run(
        [*command, "--book", place.book], cwd=place.root, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert "no module 'nothing'" in done.stderr


def test_five_quick_deaths_in_a_drain_end_it_with_code_3() -> None:
    code = """
import sys
from tallybook.worker.parent import Parent
command = [sys.executable, "-c", "raise SystemExit(7)"]
Parent(command, "w", 2, drain=True, first_pause_s=0.01).run()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "TallybookError: worker w-" in done.stderr
    assert "died 5 times in a row" in done.stderr
    assert "ended with exit code 7; again in 0.08 s" in done.stderr


def test_pauses_double_up_to_30_s_and_begin_anew_after_a_minute_of_life() -> None:
    backoff = Backoff()
    assert [backoff.after(1) for _ in range(7)] == [1, 2, 4, 8, 16, 30, 30]
    assert [backoff.after(60), backoff.after(59)] == [1, 2]


@pytest.mark.parametrize("processes", [0, 129])
def test_a_number_of_processes_that_is_none_is_refused(processes: int) -> None:
    with pytest.raises(BadInput, match=f"--processes {processes}: use 1 to 128"):
        Parent([], "w", processes, drain=False)


@pytest.mark.parametrize("options", [(), ("--processes", "1")])
def test_a_service_manager_is_told_that_the_worker_is_ready_and_that_it_lives(
    place: Place, options: tuple[str, ...]
) -> None:
    address = str(place.root / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.settimeout(30)
        place.worker(*options, NOTIFY_SOCKET=address)
        words = [manager.recv(100).decode() for _ in range(3)]
    assert words == ["READY=1", "WATCHDOG=1", "WATCHDOG=1"]


def test_an_abstract_socket_is_one_too(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0tallybook-{os.getpid()}")
        manager.settimeout(30)
        monkeypatch.setenv("NOTIFY_SOCKET", f"@tallybook-{os.getpid()}")
        notify("READY=1")
        assert manager.recv(100) == b"READY=1"
