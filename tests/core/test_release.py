"""Taking a lease from its holder by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from core_steps import claim, events, job_of, names, outcome

from tallybook import Book
from tallybook.cli.main import main
from tallybook.errors import LeaseLost
from tallybook.worker.sign import Sign


@pytest.fixture
def held(tmp_path: Path) -> tuple[Path, str]:
    """A book with a job that worker w1 holds."""
    root = tmp_path / "b"
    with Book.open(root) as book:
        job_id = book.enqueue("a", 1).job_id
        claim(book, "w1")
    return root, job_id


def test_a_lease_is_taken_by_hand_and_its_holder_can_change_nothing_more(
    held: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    root, job_id = held
    with Book.open(root) as book:
        late = job_of(book, job_id)
        words = ["jobs", "release", job_id, "--book", str(root), "--reason", "pager", "--json"]
        assert main(words) == 0
        assert json.loads(capsys.readouterr().out)["released"] is True
        with pytest.raises(LeaseLost, match="the job is pending"):
            book.settle(outcome(book, late))
        assert claim(book, "w2").lease_token == 2
    (released,) = [event for event in events(root) if event["event"] == "job.released"]
    assert (released["worker"], released["reason"], released["lease_token"]) == ("w1", "pager", 1)


def test_a_lease_of_a_worker_that_lives_is_taken_only_with_force(
    held: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    root, job_id = held
    with Book.open(root) as book:
        sign = Sign(book, "w1", {"worker": "w1", "pid": 1})
        try:
            assert main(["jobs", "release", job_id, "--book", str(root)]) == 2
            assert "held by worker w1, which lives" in capsys.readouterr().err
            assert job_of(book, job_id).status == "leased"
            assert main(["jobs", "release", job_id, "--book", str(root), "--force"]) == 0
            assert job_of(book, job_id).status == "pending"
        finally:
            sign.remove()


def test_a_job_with_no_lease_is_named_and_left_alone(
    held: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    root, job_id = held
    assert main(["jobs", "release", job_id, "--book", str(root)]) == 0
    assert main(["jobs", "release", job_id, "--book", str(root)]) == 2
    assert "is pending: it has no lease" in capsys.readouterr().err
    assert main(["jobs", "release", "nobody", "--book", str(root)]) == 2


def locked(root: Path) -> str:
    """A book in which a worker that is gone has a resource."""
    with Book.open(root) as book:
        job_id = book.enqueue("a", 1, resource="printer").job_id
        claim(book, "w1")
        book.enqueue("b", 2, resource="printer")
    return job_id


def test_locks_are_listed_by_topic_and_worker_and_no_match_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "locked"
    job_id = locked(root)
    words = ["locks", "list", "--book", str(root)]
    assert main([*words, "--json", "--topic", "a", "--worker", "w1"]) == 0
    (lock,) = json.loads(capsys.readouterr().out)["locks"]
    assert (lock["resource"], lock["job_id"], lock["worker"]) == ("printer", job_id, "w1")
    assert lock["held_s"] >= 0 and lock["locked_until"] > lock["acquired_at"]
    assert main(words) == 0
    assert "printer" in capsys.readouterr().out
    assert main([*words, "--topic", "b"]) == 0
    assert capsys.readouterr().out == "no locks match\n"
    assert main([*words, "--limit", "0"]) == 2


def test_a_lock_is_released_with_its_lease_and_not_from_a_worker_that_lives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "locked"
    job_id = locked(root)
    words = ["locks", "release", "printer", "--book", str(root), "--reason", "pager"]
    with Book.open(root) as book:
        sign = Sign(book, "w1", {"worker": "w1", "pid": 1})
        try:
            assert main(words) == 2
            assert "resource 'printer' is held by worker w1" in capsys.readouterr().err
        finally:
            sign.remove()
    assert main([*words, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown == {"resource": "printer", "job_id": job_id, "released": True, "worker": "w1"}
    told = [event for event in events(root) if event["event"].endswith(".released")]
    assert [(event["event"], event["reason"]) for event in told] == [
        ("job.released", "pager"), ("lock.released", "pager"),
    ]  # fmt: skip
    assert main(words) == 2
    assert "nobody has resource 'printer'" in capsys.readouterr().err


def test_jobs_show_names_the_job_that_another_waits_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "locked"
    holder = locked(root)
    words = ["--book", str(root), "--json"]
    assert main(["jobs", "list", "--status", "pending", *words]) == 0
    (waiting,) = json.loads(capsys.readouterr().out)["jobs"]
    assert main(["jobs", "show", waiting["job_id"], *words]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["waits_for"] == "resource"
    assert (shown["behind"]["job_id"], shown["behind"]["worker"]) == (holder, "w1")
    assert main(["jobs", "list", "--book", str(root)]) == 0
    assert "waits for" in capsys.readouterr().out


def test_a_lease_that_another_process_ended_is_not_taken_for_what_this_one_remembers(
    tmp_path: Path,
) -> None:
    with Book.open(tmp_path / "b") as one, Book.open(tmp_path / "b") as other:
        one.enqueue("a", 1)
        job = claim(one)
        assert other.release_by_hand(job, "by hand")
        with pytest.raises(LeaseLost, match="the job is pending"):
            one.settle(outcome(one, job))
    assert names(tmp_path / "b")[-2:] == ["job.released", "job.settle_refused"]
