"""A worker's sign of life is a lock: who dies is known at once, who lives is not taken for dead."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_steps import Place, until

from tallybook import Book
from tallybook.errors import BadInput
from tallybook.worker.sign import Sign, bury_the_dead, is_dead, path_of, signs


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.end()


def sign_of(book: Book, **fields: object) -> dict[str, object]:
    """What a worker of this host says in its heartbeat file."""
    moment = book.moment()
    mine = {"host": book.node.host, "boot_id": moment.boot_id, "boot_us": moment.boot_us}
    return {"worker": "w", "pid": os.getpid(), "jobs": [], **mine, **fields}


def killed_and_restarted_ms(place: Place, number: int) -> float:
    """How long after the kill of a worker its job starts where another waits."""
    victim = place.beating("--topics", "slow", "--name", f"victim-{number}")
    job_id = place.put("slow", 30)
    until(lambda: (place.root / "running-1").exists())
    place.beating("--name", f"waits-{number}")
    with Book.read(place.book) as book:
        killed_us = book.moment().boot_us
    victim.kill()
    until(lambda: [e for e in place.named("job.done") if e["job_id"] == job_id])
    started = [e for e in place.named("job.leased") if e["job_id"] == job_id]
    assert [event["lease_token"] for event in started] == [1, 2]
    (place.root / "running-1").unlink()
    place.started.pop().kill()
    return float(started[1]["boot_us"] - killed_us) / 1000


@pytest.mark.parametrize("attempts", [4])
def test_a_killed_workers_job_starts_again_within_100_ms_where_another_waits(
    place: Place, attempts: int
) -> None:
    took: list[float] = []
    while len(took) < attempts and min(took, default=1e9) > 100:
        took.append(killed_and_restarted_ms(place, len(took)))
    assert min(took) <= 100, took
    expired = place.named("job.lease_expired")
    assert {event["reason"] for event in expired} == {"worker_dead"}


def test_with_no_inotify_a_poll_finds_the_dead_long_before_the_lease_ends(place: Place) -> None:
    victim = place.beating("--topics", "slow")
    place.put("slow", 30)
    until(lambda: (place.root / "running-1").exists())
    place.beating(TALLYBOOK_POLL="1")
    victim.kill()
    until(lambda: place.named("job.done"), seconds=20)
    assert place.named("job.lease_expired")[0]["reason"] == "worker_dead"


def test_a_worker_killed_while_its_forked_child_lives_is_dead(place: Place) -> None:
    victim = place.beating()
    place.put("forks")
    until(lambda: (place.root / "child").exists() and (place.root / "child").read_text())
    child = int((place.root / "child").read_text())
    try:
        place.beating()
        victim.kill()
        until(lambda: place.named("job.done"), seconds=20)
        os.kill(child, 0)
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_dead_worker_is_buried_once_however_many_find_it(place: Place) -> None:
    victim = place.beating("--topics", "slow", "--name", "victim")
    place.put("slow", 30)
    until(lambda: (place.root / "running-1").exists())
    for _ in range(3):
        place.beating()
    victim.kill()
    until(lambda: place.named("job.done"))
    until(lambda: not (place.book / "heartbeats" / "victim.json").exists())
    died = [event["worker"] for event in place.named("worker.stopped")]
    assert (died, len(place.named("job.lease_expired"))) == (["victim"], 1)


def test_a_worker_started_again_under_the_name_of_a_dead_one_does_its_job_again(
    place: Place,
) -> None:
    victim = place.beating("--name", "w")
    place.put("slow", 30)
    until(lambda: (place.root / "running-1").exists())
    victim.kill()
    place.worker("--name", "w")
    until(lambda: place.named("job.done"), seconds=20)
    assert place.named("worker.stopped")[0]["reason"] == "died"


def test_a_job_that_kills_its_workers_ends_in_the_dead_letters(tmp_path: Path) -> None:
    place = Place(tmp_path, "[topics.kills]\nmax_rescues = 1\n")
    try:
        place.put("kills")
        for _ in range(3):
            place.worker("--drain").wait(timeout=60)
            with Book.open(place.book) as book:
                bury_the_dead(book)
        assert len(place.named("job.leased")) == 2
        assert place.named("job.dead")[0]["reason"] == "killed_workers"
    finally:
        place.end()


def test_a_stopped_worker_is_alive_and_keeps_its_lease(place: Place) -> None:
    victim = place.beating()
    place.put("slow", 30)
    until(lambda: (place.root / "running-1").exists())
    os.kill(victim.pid, signal.SIGSTOP)
    with Book.open(place.book) as book:
        assert bury_the_dead(book) == []
        assert [is_dead(book, path, sign) for path, sign in signs(book)] == [False]


def test_the_pid_of_another_program_does_not_keep_a_dead_worker_alive(
    book: Book, tmp_path: Path
) -> None:
    path = path_of(book, "w")
    path.write_text(json.dumps(sign_of(book, pid=os.getpid())))
    assert is_dead(book, path, sign_of(book))
    (stopped,) = bury_the_dead(book)
    assert (stopped["worker"], stopped["reason"], path.exists()) == ("w", "died", False)


def test_a_worker_whose_pid_nobody_sees_is_alive_while_it_holds_its_lock(book: Book) -> None:
    sign = sign_of(book, pid=2**22 + 1)
    held = Sign(book, "w", sign)
    assert not is_dead(book, path_of(book, "w"), sign)
    assert bury_the_dead(book) == []
    held.remove()
    assert not path_of(book, "w").exists()


def test_of_a_worker_on_another_machine_nothing_is_known(book: Book) -> None:
    sign = sign_of(book, host="elsewhere", boot_id="another")
    path_of(book, "w").write_text(json.dumps(sign))
    assert not is_dead(book, path_of(book, "w"), sign)


def test_a_worker_name_that_is_alive_is_refused_with_its_pid(book: Book) -> None:
    held = Sign(book, "w", sign_of(book))
    with pytest.raises(BadInput, match=rf"'w' is that of process {os.getpid()}, which is alive"):
        Sign(book, "w", sign_of(book))
    held.remove()
    Sign(book, "w", sign_of(book)).remove()


def test_a_name_with_slashes_stays_a_file_in_its_folder(book: Book) -> None:
    held = Sign(book, "../a/b", sign_of(book))
    (path,) = book.layout.heartbeats.iterdir()
    assert path.name == "..%2Fa%2Fb.json"
    held.remove()


def test_a_heartbeat_file_that_was_taken_away_is_made_anew(book: Book) -> None:
    held = Sign(book, "w", sign_of(book))
    path_of(book, "w").unlink()
    held.write(sign_of(book))
    assert not is_dead(book, path_of(book, "w"), sign_of(book))
    held.remove()


def test_the_dead_are_buried_also_where_they_hold_nothing_and_only_their_jobs_are_taken(
    book: Book,
) -> None:
    for worker in ("dead", "lives"):
        book.enqueue("a", worker)
        assert book.claim(worker)
    path_of(book, "dead").write_text(json.dumps(sign_of(book, worker="dead")))
    bury_the_dead(book)
    assert {job.locked_by for job in book.jobs()} == {None, "lives"}
    assert {job.rescue_count for job in book.jobs(status="pending")} == {1}
