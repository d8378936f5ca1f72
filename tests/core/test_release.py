"""Taking a lease from its holder by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from core_steps import claim, events, job_of, outcome

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
