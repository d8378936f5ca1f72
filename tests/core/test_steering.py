"""What a person does to jobs and topics by command: requeue, discard, cancel, pause, drain."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from core_steps import claim, events, job_of, outcome

from tallybook import Book
from tallybook.book import New, Selection, Want
from tallybook.cli.main import main
from tallybook.testing import FakeClock

Command = Callable[..., Any]


@pytest.fixture
def command(book: Book, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command on the book; returns its JSON, or its line of error with the code before."""

    def run(*words: str, code: int = 0) -> Any:
        assert main([*words, "--json", "--book", str(book.layout.root)]) == code
        told = capsys.readouterr()
        return json.loads(told.out) if told.out else told.err

    return run


def dead(book: Book, topic: str = "a", error: str = "too large", **fields: Any) -> str:
    """The id of a new dead letter."""
    job_id = book.enqueue(topic, 1, priority=9).job_id
    job = claim(book)
    book.settle(outcome(book, job, "dead", error=error, error_type="Permanent", **fields))
    return job_id


def test_a_requeued_dead_letter_begins_anew_and_the_log_says_why(
    book: Book, command: Command
) -> None:
    job_id = dead(book)
    told = command("jobs", "requeue", job_id, "--reason", "server is back")
    assert (told["matched"], told["requeued"], told["job_ids"]) == (1, 1, [job_id])
    job = job_of(book, job_id)
    assert (job.status, job.attempt_count, job.rescue_count) == ("pending", 0, 0)
    (requeued,) = [event for event in events(book) if event["event"] == "job.requeued"]
    assert requeued["reason"] == "server is back"
    assert claim(book).job_id == job_id


@pytest.mark.parametrize("end", [None, "done"])
def test_a_dead_letter_whose_key_another_job_has_meanwhile_is_passed_over_and_counted(
    book: Book, command: Command, clock: FakeClock, end: str | None
) -> None:
    old = book.enqueue("a", 1, idempotency_key="k").job_id
    book.settle(outcome(book, claim(book), "dead"))
    free = dead(book)
    clock.advance(10 * 86400)
    assert book.enqueue("a", 1, idempotency_key="k").is_new
    if end:
        book.settle(outcome(book, claim(book), end))
    told = command("jobs", "requeue", "--topic", "a")
    assert (told["matched"], told["requeued"], told["passed_over"]) == (2, 1, 1)
    assert (job_of(book, old).status, job_of(book, free).status) == ("dead", "pending")


def test_a_discarded_dead_letter_is_cancelled_and_can_be_requeued_when_asked_for(
    book: Book, command: Command
) -> None:
    job_id = dead(book)
    assert command("jobs", "discard", "--topic", "a")["discarded"] == 1
    assert job_of(book, job_id).status == "cancelled"
    assert command("jobs", "requeue", "--topic", "a")["matched"] == 0
    assert command("jobs", "requeue", "--status", "cancelled")["requeued"] == 1


def test_filters_by_topic_error_and_age_choose_among_dead_letters(
    book: Book, clock: FakeClock, command: Command
) -> None:
    old = dead(book, "a", "Too Large")
    clock.advance(7200)
    other, young = dead(book, "b", "too large"), dead(book, "a", "no such customer")

    def listed(*filters: str) -> list[str]:
        return [j["job_id"] for j in command("jobs", "list", "--status", "dead", *filters)["jobs"]]

    assert listed("--error", "too large") == [old, other]
    assert listed("--error", "permanent: no") == [young]
    assert listed("--topic", "a", "--error", "large") == [old]
    cut = book.moment().wall(-3_600_000)
    assert [j.job_id for j in book.selected(Selection("dead", older_than=cut))] == [old]
    assert [j.job_id for j in book.selected(Selection("dead", newer_than=cut))] == [other, young]
    assert listed("--newer-than", "36500d") == [old, other, young]
    assert listed("--older-than", "36500d") == []


def test_a_dry_run_counts_and_changes_nothing(book: Book, command: Command) -> None:
    job_id = dead(book)
    before = len(events(book))
    told = command("jobs", "discard", "--topic", "a", "--dry-run")
    assert (told["matched"], told["discarded"], told["dry_run"]) == (1, 0, True)
    assert (job_of(book, job_id).status, len(events(book))) == ("dead", before)


def test_a_filter_that_matches_nothing_says_so_and_is_no_error(
    book: Book, command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    dead(book)
    assert command("jobs", "requeue", "--error", "nobody said this")["matched"] == 0
    root = str(book.layout.root)
    assert main(["jobs", "requeue", "--topic", "orders.snyc", "--book", root]) == 0
    assert "no job has topic 'orders.snyc'; topics with jobs: a" in capsys.readouterr().out


def test_many_jobs_are_steered_only_with_a_bound_and_in_bounded_changes(
    book: Book, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    book.enqueue_many([New("a", n) for n in range(1201)])
    assert "say how many to cancel with --limit N, or --all" in command("jobs", "cancel", code=2)
    assert book.counts() == {"a": {"pending": 1201}}
    assert command("jobs", "cancel", "--limit", "150")["cancelled"] == 150
    sizes = []
    steer = Book.steer
    monkeypatch.setattr(
        Book,
        "steer",
        lambda self, rule, ids, why: sizes.append(len(ids)) or steer(self, rule, ids, why),
    )
    assert command("jobs", "cancel", "--all")["cancelled"] == 1051
    assert sizes == [500, 500, 51]
    assert book.counts() == {"a": {"cancelled": 1201}}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["requeue", "--limit", "0"], "--limit 0"),
        (["requeue", "--limit", "-3"], "--limit -3"),
        (["requeue", "--limit", "5", "--all"], "not both"),
        (["requeue", "nobody"], "no job nobody"),
        (["requeue", "nobody", "--all"], "give ids, or filters"),
        (["discard", "--older-than", "2 hours"], "as in 2h"),
        (["discard", "--newer-than", "-2h"], "expected one argument"),
        (["cancel", "--newer-than", "999999999w"], "as in 2h"),
        (["requeue", "--status", "done"], "invalid choice: 'done'"),
        (["requeue", "--topik", "a"], "no such option"),
    ],
)
def test_bad_input_is_one_line_and_changes_nothing(
    book: Book, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    dead(book)
    before = len(events(book))
    try:
        code = main(["jobs", *words, "--book", str(book.layout.root)])
    except SystemExit as ended:
        code = int(str(ended.code))
    told = capsys.readouterr().err
    assert (code, told.count("\n")) == (2, 1)
    assert said in told
    assert len(events(book)) == before


def test_a_job_in_no_state_for_it_is_named(book: Book, command: Command) -> None:
    job_id = book.enqueue("a", 1).job_id
    assert "is pending; discard takes jobs that are dead" in command(
        "jobs", "discard", job_id, code=2
    )


def test_a_pending_job_is_cancelled_at_once_and_never_claimed(book: Book, command: Command) -> None:
    job_id = book.enqueue("a", 1).job_id
    assert command("jobs", "cancel", job_id)["cancelled"] == 1
    assert job_of(book, job_id).status == "cancelled"
    assert book.claim("w1") is None


@pytest.mark.parametrize(
    ("settle", "status"),
    [("done", "done"), ("dead", "dead"), ("retry", "cancelled"), ("snooze", "cancelled")],
)
def test_a_leased_job_that_is_to_be_cancelled_keeps_its_lease_and_never_runs_again(
    book: Book, settle: str, status: str
) -> None:
    book.enqueue("a", 1)
    job = claim(book)
    assert [event.name for event in book.steer("cancel", [job.job_id], "")] == [
        "job.cancel_requested"
    ]
    assert job_of(book, job.job_id).status == "leased"
    assert book.to_cancel("w1") == [job.job_id]
    assert book.steer("cancel", [job.job_id], "") == []
    book.settle(outcome(book, job, settle, error="e", error_type="E", after_s=0))
    assert job_of(book, job.job_id).status == status
    assert book.to_cancel("w1") == []


def test_the_job_of_a_lost_lease_is_cancelled_and_not_rescued_where_that_was_asked(
    book: Book, clock: FakeClock
) -> None:
    book.enqueue("a", 1)
    job = claim(book)
    book.steer("cancel", [job.job_id], "")
    clock.advance(61)
    book.rescue()
    assert job_of(book, job.job_id).status == "cancelled"
    assert events(book)[-1]["event"] == "job.cancelled"


def test_nobody_claims_of_a_paused_topic_until_it_is_resumed(book: Book, command: Command) -> None:
    book.enqueue("a", 1)
    assert command("topic", "pause", "a")["changed"] is True
    assert command("topic", "pause", "a")["changed"] is False
    assert book.claim("w1") is None
    (topic,) = command("topic", "list")["topics"]
    assert (topic["topic"], topic["status"], topic["pending"]) == ("a", "paused", 1)
    assert "cannot drain" in command("topic", "drain", "a", code=2)
    assert command("topic", "resume", "a")["changed"] is True
    assert command("topic", "resume", "a")["changed"] is False
    assert claim(book).payload == 1
    named = [event["event"] for event in events(book)]
    assert (named.count("topic.paused"), named.count("topic.resumed")) == (1, 1)


def test_a_topic_that_no_job_has_is_paused_only_with_force(book: Book, command: Command) -> None:
    assert "no job has topic 'typo'" in command("topic", "pause", "typo", code=2)
    assert "no job has topic 'typo'" in command("topic", "resume", "typo", code=2)
    assert command("topic", "pause", "typo", "--force")["changed"] is True


def test_a_drain_says_what_is_left_when_its_time_is_over(book: Book, command: Command) -> None:
    job_id = book.enqueue("a", 1).job_id
    told = command("topic", "drain", "a", "--timeout", "0", code=1)
    assert told == {"topic": "a", "drained": False, "left": 1}
    book.settle(outcome(book, claim(book)))
    assert job_of(book, job_id).status == "done"
    assert command("topic", "drain", "a") == {"topic": "a", "drained": True, "left": 0}


def test_a_dead_letter_is_shown_with_its_traceback_and_its_history(
    book: Book, command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    job_id = dead(book, traceback="Traceback\n  orders.py, line 7\n")
    shown = command("jobs", "show", job_id)
    assert shown["traceback"] == "Traceback\n  orders.py, line 7\n"
    named = [event["event"] for event in shown["history"]]
    assert named == ["job.enqueued", "job.leased", "job.dead"]
    assert main(["jobs", "show", job_id, "--book", str(book.layout.root)]) == 0
    assert "\n  orders.py, line 7\n" in capsys.readouterr().out
    pending = book.enqueue("a", 1).job_id
    assert "history" not in command("jobs", "show", pending)
    assert len(command("jobs", "show", pending, "--history")["history"]) == 1


def test_an_export_is_whole_and_no_cell_of_it_is_a_formula(
    book: Book, command: Command, tmp_path: Path
) -> None:
    bad = ["=1+1", "+1", "-1", "@a", "\tx", "\rx"]
    job_ids = [dead(book, error=error) for error in bad]
    book.enqueue("a", 1)
    told = command("jobs", "export", "--status", "dead", str(tmp_path / "dead.csv"))
    assert told["jobs"] == 6
    with (tmp_path / "dead.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["job_id"] for row in rows] == job_ids
    assert [row["last_error"] for row in rows] == [f"'{error}" for error in bad]
    command("jobs", "export", "--format", "json", str(tmp_path / "all.json"))
    jobs = json.loads((tmp_path / "all.json").read_text())["jobs"]
    assert (len(jobs), jobs[0]["last_error"], jobs[0]["payload"]) == (7, "=1+1", 1)
    assert "is there already" in command("jobs", "export", str(tmp_path / "all.json"), code=2)
    assert "is no folder" in command("jobs", "export", str(tmp_path / "no" / "x"), code=2)
    assert command("jobs", "export", "--topic", "z", str(tmp_path / "none.csv"))["jobs"] == 0


def test_an_export_has_the_last_traceback_of_each_job_where_it_is_asked_for(
    book: Book, command: Command, tmp_path: Path
) -> None:
    dead(book, traceback="=first")
    dead(book)
    file = tmp_path / "dead.csv"
    command("jobs", "export", "--traceback", str(file))
    with file.open(newline="", encoding="utf-8") as opened:
        assert [row["traceback"] for row in csv.DictReader(opened)] == ["'=first", ""]
    command("jobs", "export", "--traceback", "--format", "json", str(tmp_path / "dead.json"))
    jobs = json.loads((tmp_path / "dead.json").read_text())["jobs"]
    assert [job["traceback"] for job in jobs] == ["=first", None]


def test_a_list_that_is_cut_says_so(
    book: Book, command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(3):
        book.enqueue("a", number, resource=f"r{number}")
        book.put_entry(f"k{number}", number)
    book.claim_many(Want("w", limit=3))
    for words, name in ((["jobs"], "jobs"), (["cache"], "entries"), (["locks"], "locks")):
        cut = command(*words, "list", "--limit", "2")
        assert (len(cut[name]), cut["more"]) == (2, True)
        assert command(*words, "list", "--limit", "3")["more"] is False
        assert main([*words, "list", "--limit", "2", "--book", str(book.layout.root)]) == 0
        assert capsys.readouterr().out.endswith("\nand more: see --limit\n")


def test_a_watched_status_is_told_again_and_again_until_it_is_interrupted(
    book: Book, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def pause(_: float) -> None:
        if len(book.jobs()) == 2:
            raise KeyboardInterrupt
        book.enqueue("a", 1)

    monkeypatch.setattr("time.sleep", pause)
    words = ["status", "--watch", "--book", str(book.layout.root)]
    assert main(words) == 130
    told = capsys.readouterr().out
    assert told.count("topic") == 2  # the first time there was no job
    assert main([*words, "--check"]) == 2


def test_a_book_that_is_none_is_bad_input(tmp_path: Path) -> None:
    for words in (["jobs", "requeue", "--all"], ["topic", "pause", "a"]):
        assert main([*words, "--book", str(tmp_path / "none")]) == 2
    assert not (tmp_path / "none").exists()
