"""The health of a log, and two periods of days against each other."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from ops_logs import START, WRITER, Log, text

from tallybook import ops
from tallybook.errors import BadInput
from tallybook.ops import Span

DAY = 86_400


@pytest.mark.parametrize(
    ("lost", "told"), [(0, "The log is sound"), (3, "What could be read of the log is sound")]
)
def test_a_log_with_a_hole_is_not_called_sound(tmp_path: Path, lost: int, told: str) -> None:
    log = Log(tmp_path)
    log.enqueued("a", 1)
    log.seq += lost
    log.enqueued("b", 2)
    with ops.open(tmp_path) as warehouse:
        (found,) = ops.findings.log_health(warehouse)
    assert found.title == f"{told}, in 1 segment"


def test_each_segment_is_told_with_its_size_and_the_numbers_it_lacks(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.enqueued("a", 1)
    log.seq += 3
    log.enqueued("b", 2)
    log.open_segment(3)
    with ops.open(tmp_path) as warehouse:
        first, second = ops.log_parts(warehouse).to_dicts()
    assert (first["first_seq"], first["last_seq"], first["missing"]) == (1, 6, 3)
    assert (second["first_seq"], second["missing"], second["events"]) == (7, 0, 1)
    assert first["mb"] * 1e6 == pytest.approx((tmp_path / "log" / first["file"]).stat().st_size)


def test_a_clock_that_was_set_is_found_and_one_that_drifts_or_reboots_is_not(
    tmp_path: Path,
) -> None:
    log = Log(tmp_path)
    for number in range(1, 60):
        log.enqueued(f"j{number}", number, boot_us=round(number * 1e6 * 0.99))
    log.open_segment(5000, boot_id="boot-2")
    log.event("topic.paused", 5010, topic="t", boot_us=round(5001 * 1e6))
    with ops.open(tmp_path) as warehouse:
        (found,) = ops.clock_moves(warehouse).to_dicts()
        assert ops.clock_moves(warehouse, least_s=10).is_empty()
        assert ops.clock_moves(warehouse, Span(until=text(5000))).is_empty()
    assert (found["moved_s"], found["boot_id"]) == (9.0, "boot-2")


def test_events_after_the_newest_checkpoint_are_those_that_a_fold_reads(tmp_path: Path) -> None:
    log = Log(tmp_path)
    for number in range(8):
        log.enqueued(f"j{number}", number)
    (tmp_path / "checkpoints").mkdir()
    with ops.open(tmp_path) as warehouse:
        assert warehouse.frame("unkept").row(0) == (9, False)
    for seq in (3, 7):
        mark = {"writer": WRITER, "seq": seq}
        (tmp_path / "checkpoints" / f"{seq}.json").write_text(json.dumps(mark))
    with ops.open(tmp_path) as warehouse:
        assert warehouse.frame("unkept").row(0) == (2, True)


def test_two_periods_lie_one_after_the_other_and_end_where_the_log_does(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.enqueued("last", 20 * DAY)
    with ops.open(tmp_path) as warehouse:
        before, now = ops.weeks.periods(warehouse)
        _, two = ops.weeks.periods(warehouse, text(5 * DAY), days=2)
    assert before.until == now.since and before.start_at == START + timedelta(
        days=6, microseconds=1
    )
    assert now.end_at == START + timedelta(days=20, microseconds=1)
    assert (two.start_at, two.end_at) == (START + timedelta(days=3), START + timedelta(days=5))


def test_figures_are_counted_in_each_period_alone(tmp_path: Path) -> None:
    log = Log(tmp_path)
    for number, day in enumerate((1, 1, 8, 9, 10)):
        at = day * DAY + number
        log.enqueued(f"j{number}", at)
        log.leased(f"j{number}", at)
        ending = "job.dead" if number == 4 else "job.done"
        log.ended(
            ending, f"j{number}", at, at + 1 + day, **({"error_type": "X"} if number == 4 else {})
        )
    with ops.open(tmp_path) as warehouse:
        spans = ops.weeks.periods(warehouse, text(14 * DAY))
        told = {row["figure"]: row for row in ops.weeks.figures(warehouse, *spans).to_dicts()}
        new = ops.weeks.new_errors(warehouse, spans[1])
        assert ops.weeks.left_open(warehouse, spans[1]).is_empty()
    arrived = told["arrived"]
    assert (arrived["before"], arrived["now"], arrived["ratio"]) == (2, 3, 1.5)
    assert (told["dead"]["before"], told["dead"]["now"], told["dead"]["ratio"]) == (0, 1, None)
    assert told["failed_share"]["now"] == pytest.approx(1 / 3)
    assert told["run_p95_s"]["before"] == 2 and told["run_p95_s"]["now"] > 10
    assert new.select("error_type", "runs", "jobs").rows() == [("X", 1, 1)]


def test_a_log_that_begins_too_late_is_not_compared_and_says_so(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.enqueued("j", 3 * DAY)
    with ops.open(tmp_path) as warehouse:
        found = ops.findings.weekly_review(warehouse, *ops.weeks.periods(warehouse))
    assert [one.kind for one in found] == ["clean", "not_compared"]
    assert "after the period before began" in found[1].title


# what there was to be found anything in


def test_coverage_counts_what_the_span_has_of_each_subject(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.enqueued("j", 10)
    log.leased("j", 20)
    log.ended("job.done", "j", 21, 30)
    log.put("k", 1, 30)
    log.raw(b"torn\n")
    log.enqueued("k", 40)
    with ops.open(tmp_path) as warehouse:
        subjects = ("events", "jobs", "runs", "leases", "writes")
        seen = {name: ops.coverage(warehouse, of=name).seen for name in subjects}
        early = {name: ops.coverage(warehouse, Span(until=text(15)), of=name) for name in subjects}
        whole = ops.coverage(warehouse)
    assert seen == {"events": 6, "jobs": 2, "runs": 1, "leases": 1, "writes": 1}
    assert {name for name, one in early.items() if one.could_find} == {"events", "jobs"}
    assert (
        early["runs"].words == "Nothing could have been found: no run of a job ended among 2 events"
    )
    assert (whole.lines, whole.unreadable, whole.holes) == (7, 1, 0)
    assert whole.words == (
        "Looked at 2 jobs in 6 events of 2026-11-29 10:00:00Z to 2026-11-29 10:00:40Z; the log has "
        "1 unreadable line and 0 holes"
    )
    assert whole.as_json()["could_find"] and whole.as_json()["first_at"].startswith("2026-11-29T10")


def test_a_log_without_an_event_could_tell_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    with ops.open(tmp_path) as warehouse:
        seen = ops.coverage(warehouse, of="events")
    assert seen.words == "Nothing could have been found: the log has no event"


def test_a_finding_of_ones_own_has_a_known_severity_and_a_kind() -> None:
    from tallybook.runbook import finding

    made = finding("warning", "Late orders", "3 of 9", "tallybook jobs list", ids=[1, 2])
    assert (made.kind, made.ids, made.evidence) == ("late_orders", ("1", "2"), "3 of 9")
    with pytest.raises(ValueError, match="severity 'bad': use info, warning or problem"):
        finding("bad", "x")  # type: ignore[arg-type]
    with pytest.raises(BadInput):
        Span("2026-01-02", "2026-01-01")
    with pytest.raises(ValueError, match=r"evidence of a finding is text, not \['a'\]; ids="):
        finding("info", "t", ["a"])  # type: ignore[arg-type]
