"""Settings review: measured runs against lease, timeout, backoff and limits, with the harm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ops_logs import Log, text

from tallybook import ops
from tallybook.errors import BadInput
from tallybook.ops import Span


def reviewed(book: Path, span: Span | None = None) -> dict[str, dict[str, Any]]:
    with ops.open(book) as warehouse:
        rows = ops.settings_review(warehouse, span or Span()).to_dicts()
    assert {row["topic"] for row in rows} <= {"airports.sync"}
    return {row["setting"]: row for row in rows}


def runs(log: Log, *lengths: float, lease_ms: int = 60_000) -> None:
    """A job each that is run once for so many seconds."""
    for number, length in enumerate(lengths):
        log.enqueued(f"r{number}", number)
        log.leased(f"r{number}", number, lease_ms=lease_ms)
        log.ended("job.done", f"r{number}", number, number + length)


def test_runs_longer_than_their_lease_are_counted_with_the_harm(tmp_path: Path) -> None:
    log = Log(tmp_path)
    runs(log, *[1.0] * 47, 70.0, 80.0, 90.0)
    log.expired("r49", 200)
    found = reviewed(tmp_path)["lease"]
    assert (found["verdict"], found["n"], found["over"], found["value"]) == ("unsafe", 50, 3, 60)
    assert found["proposed"] == 270
    assert found["detail"] == (
        "of 50 runs 3 took longer than the lease of 60.000 s and hung on their heartbeat alone, "
        "the longest took 90.000 s; 1 lease ran out, 0 results came too late"
    )


def test_settings_that_fit_what_was_measured_are_safe(tmp_path: Path) -> None:
    runs(Log(tmp_path), *[1.0] * 30)
    found = reviewed(tmp_path)
    assert {name: row["verdict"] for name, row in found.items()} == {
        "lease": "safe", "heartbeat": "not measured", "timeout_s": "safe", "max_run_s": "safe",
        "backoff_first_s": "not measured", "max_attempts": "safe", "max_rescues": "safe",
    }  # fmt: skip
    assert {row["proposed"] for row in found.values()} == {None}


def test_extensions_that_come_after_half_the_lease_are_unsafe(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.leased("j", 0)
    for at in (20, 40, 85):
        log.extended("j", at, started_at=text(1))
    found = reviewed(tmp_path)["heartbeat"]
    assert (found["verdict"], found["n"], found["over"], found["proposed"]) == ("unsafe", 3, 1, 135)
    assert "the longest after 45.000 s" in found["detail"]


def test_timeouts_and_the_longest_run_are_those_of_the_book(tmp_path: Path) -> None:
    runs(Log(tmp_path), 1, 1, 9, 12, lease_ms=600_000)
    (tmp_path / "book.toml").write_text(
        '[topics."airports.sync"]\ntimeout_s = 10\nmax_run_s = 11\n'
    )
    found = reviewed(tmp_path)
    assert (found["timeout_s"]["verdict"], found["timeout_s"]["over"]) == ("unsafe", 2)
    assert (found["max_run_s"]["over"], found["max_run_s"]["proposed"]) == (1, 36)
    assert "their jobs ran twice" in found["max_run_s"]["detail"]


def test_a_topic_without_a_timeout_says_how_long_a_hung_handler_holds_its_lease(
    tmp_path: Path,
) -> None:
    runs(Log(tmp_path), *[1.0] * 20, 70.0)
    found = reviewed(tmp_path)["timeout_s"]
    assert found["verdict"] == "unsafe" and "holds its lease for 3,600 s" in found["detail"]


def test_attempts_that_fail_again_and_jobs_that_run_out_of_them_are_unsafe(tmp_path: Path) -> None:
    log = Log(tmp_path)
    for number in range(10):
        for token in (1, 2, 3):
            log.leased(f"j{number}", token, token=token)
            name = "job.dead" if token == 3 else "job.retry_scheduled"
            why = {"reason": "out_of_attempts"} if token == 3 else {"delay_ms": 500}
            log.ended(name, f"j{number}", token, token + 0.5, token=token, **why)
    log.leased("k", 9)
    log.ended("job.dead", "k", 9, 9.5, reason="killed_workers")
    found = reviewed(tmp_path)
    assert (found["backoff_first_s"]["n"], found["backoff_first_s"]["over"]) == (20, 20)
    assert found["backoff_first_s"]["proposed"] == 8
    assert (found["max_attempts"]["over"], found["max_attempts"]["proposed"]) == (10, 20)
    assert "10 attempts bear an outage of 810 s" in found["max_attempts"]["detail"]
    assert (found["max_rescues"]["verdict"], found["max_rescues"]["over"]) == ("unsafe", 1)


def test_a_job_that_died_with_its_workers_is_no_run_that_was_measured(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.leased("k", 1)
    log.event("job.dead", 2, job_id="k", topic="airports.sync", reason="killed_workers")
    found = reviewed(tmp_path)
    assert (found["lease"]["n"], found["lease"]["verdict"]) == (0, "not measured")
    assert (found["max_rescues"]["n"], found["max_rescues"]["over"]) == (1, 1)


def test_only_runs_of_the_span_are_measured(tmp_path: Path) -> None:
    runs(Log(tmp_path), 1, 1, 90)
    assert reviewed(tmp_path, Span(until=text(50)))["lease"]["verdict"] == "safe"


def test_a_log_without_runs_has_nothing_to_review(tmp_path: Path) -> None:
    Log(tmp_path).enqueued("j", 1)
    assert reviewed(tmp_path) == {}


def test_a_book_whose_settings_cannot_be_read_says_where(tmp_path: Path) -> None:
    runs(Log(tmp_path), 1)
    (tmp_path / "book.toml").write_text("[topics")
    with pytest.raises(BadInput, match=r"book\.toml: not valid TOML"):
        reviewed(tmp_path)
