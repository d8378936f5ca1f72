"""Dead letters: which, of what, whether it may pass; and what waits longest in a backlog."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from ops_logs import Log, text

from tallybook import ops
from tallybook.cli.main import _parser
from tallybook.ops import Span

NASTY = "a'\"<script>alert(1)</script> $(reboot) \u202e\x1b[31m=1+1"


def dies(log: Log, job: str, at: float, error_type: str, **fields: object) -> None:
    """A job that arrives and is dead within a second."""
    log.enqueued(job, at)
    log.leased(job, at)
    told = {"error": f"{error_type} it said", **fields}
    log.ended("job.dead", job, at, at + 1, error_type=error_type, **told)


@pytest.mark.parametrize(
    ("error_type", "status", "outlook"),
    [
        ("HTTP 503", 503, "may pass"),
        ("HTTP 429", 429, "may pass"),
        ("HTTP 408", 408, "may pass"),
        ("AnswerLost", None, "may pass"),
        ("TimedOut", None, "may pass"),
        ("HTTP 422", 422, "stays"),
        ("PayloadDoesNotFit", None, "stays"),
        ("KeyError", None, "unknown"),
    ],
)
def test_the_outlook_says_whether_the_other_side_may_answer_another_time(
    tmp_path: Path, error_type: str, status: int | None, outlook: str
) -> None:
    dies(Log(tmp_path), "j", 1, error_type, **({"http_status": status} if status else {}))
    with ops.open(tmp_path) as warehouse:
        assert ops.dead_letters(warehouse)["outlook"].to_list() == [outlook]


def test_letters_are_chosen_by_topic_error_and_time_oldest_first(tmp_path: Path) -> None:
    log = Log(tmp_path)
    for number, error in enumerate(("HTTP 503", "HTTP 422", "HTTP 503")):
        dies(log, f"j{number}", number * 10, error)
    with ops.open(tmp_path) as warehouse:
        found = {
            "all": ops.dead_letters(warehouse),
            "error": ops.dead_letters(warehouse, error="503"),
            "words": ops.dead_letters(warehouse, error="422 IT SAID"),
            "topic": ops.dead_letters(warehouse, topic="runways.sync"),
            "time": ops.dead_letters(warehouse, Span(text(5), text(15))),
        }
    ids = {name: ops.letters.chosen(rows, 9) for name, rows in found.items()}
    assert ids == {"all": ["j0", "j1", "j2"], "error": ["j0", "j2"], "words": ["j1"], "topic": [],
                   "time": ["j1"]}  # fmt: skip
    assert ops.letters.chosen(found["all"], 2) == ["j0", "j1"]
    causes = ops.letters.by_cause(found["all"]).select("error_type", "jobs").rows()
    assert causes == [("HTTP 503", 2), ("HTTP 422", 1)]


def test_a_job_that_was_requeued_or_discarded_is_no_letter_any_more(tmp_path: Path) -> None:
    log = Log(tmp_path)
    for name in ("requeued", "discarded"):
        dies(log, name, 1, "X")
        log.event(f"job.{name}", 3, job_id=name, topic="airports.sync", reason="by hand")
    with ops.open(tmp_path) as warehouse:
        assert ops.dead_letters(warehouse).is_empty()


def test_the_action_of_a_finding_is_a_command_whatever_an_error_says(tmp_path: Path) -> None:
    dies(Log(tmp_path), "j", 1, NASTY)
    with ops.open(tmp_path) as warehouse:
        (found,) = ops.findings.dead_letters(warehouse)
    given = shlex.split(found.action)[1:]
    parsed = _parser(given[0])[0].parse_args(given)
    assert (parsed.action, parsed.error, parsed.dry_run) == ("requeue", NASTY, True)


def test_the_oldest_due_job_of_a_topic_is_told_and_one_that_is_due_later_is_not(
    tmp_path: Path,
) -> None:
    log = Log(tmp_path)
    log.enqueued("old", 10)
    log.enqueued("young", 70)
    log.enqueued("later", 5, next_attempt_at=text(900), delay_ms=895_000)
    log.enqueued("runs", 1)
    log.leased("runs", 2)
    log.event("worker.started", 110, worker="w1", threads=1, pid=7)
    with ops.open(tmp_path) as warehouse:
        (row,) = ops.oldest_due(warehouse, Span(until=text(110))).to_dicts()
        later = ops.oldest_due(warehouse, Span(until=text(1000)))["jobs"].item()
    assert row == {"topic": "airports.sync", "jobs": 2, "oldest_s": 100.0, "oldest_job_id": "old"}
    assert later == 3
