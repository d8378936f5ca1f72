"""The past: every model as of a place in the log is the fold of the log up to there."""

from __future__ import annotations

from pathlib import Path

import pytest
from ops_histories import random_history
from ops_logs import WRITER, Log, text
from test_models import (
    SEEDS,
    folded,
    history,
    require_same_cache_and_topics,
    require_same_jobs,
    require_same_leases,
)

from tallybook import ops
from tallybook.errors import BadInput


@pytest.mark.parametrize("seed", SEEDS)
def test_the_cache_as_of_any_instant_is_the_fold_of_what_was_before(
    tmp_path: Path, seed: int
) -> None:
    random_history(tmp_path, seed)
    events = history(tmp_path)
    with ops.open(tmp_path) as warehouse:
        for instant in {events[at].occurred_at for at in (20, 150, 300)}:
            before = [event for event in events if event.occurred_at <= instant]
            keys = ops.cache_as_of(warehouse, instant)["key"].to_list()
            assert keys == sorted(folded(before).entries)


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_each_model_as_of_any_place_is_the_fold_of_the_log_up_to_there(
    tmp_path: Path, seed: int
) -> None:
    random_history(tmp_path, seed)
    events = history(tmp_path)
    with ops.open(tmp_path) as warehouse:
        for number in (137, 290, len(events)):
            last = events[number - 1]
            until = [event for event in events if event.occurred_at <= last.occurred_at]
            places = (
                (last.occurred_at, until),
                (f"{last.writer[:12]}:{last.seq}", events[:number]),
            )
            for place, prefix in places:
                with warehouse.as_of(place) as past:
                    count = past.sql("select count(*) from events").fetchall()
                    assert count == [(len(prefix),)]
                    require_same_jobs(past, prefix)
                    require_same_leases(past, prefix)
                    require_same_cache_and_topics(past, prefix)
        assert warehouse.sql("select count(*) from events").fetchall() == [(len(events),)]


def test_what_came_after_the_clock_was_first_past_an_instant_is_not_of_its_past(
    tmp_path: Path,
) -> None:
    log = Log(tmp_path, at=100)
    log.put("k", "before", 101)
    log.put("k", "after", 300)
    log.put("k", "with a clock that went back", 102)
    with ops.open(tmp_path, as_of=text(200)) as past:
        assert ops.cache_as_of(past)["value"].to_list() == ['"before"']
    with ops.open(tmp_path, as_of=text(99)) as past:
        assert ops.overview(past)["events"].item() == 0
    with ops.open(tmp_path, as_of=2) as past:
        assert ops.overview(past)["events"].item() == 2


def test_metrics_as_of_an_instant_are_those_of_intervals_that_had_ended(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.enqueued("j", 15)
    (tmp_path / "metrics").mkdir()
    rows = ["interval_started_at,interval_ended_at,worker,done_count",
            *(f"{text(at)},{text(at + 10)},w1,{at}" for at in (0, 10, 20))]  # fmt: skip
    (tmp_path / "metrics" / "2026-11-29.csv").write_text("\n".join(rows) + "\n")
    with ops.open(tmp_path) as warehouse, warehouse.as_of(text(21)) as past:
        counts = past.sql("select done_count from metrics order by 1").fetchall()
        assert counts == [(0,), (10,)]
        with warehouse.as_of(f"{WRITER}:2") as at_line:
            assert at_line.sql("select done_count from metrics").fetchall() == [(0,)]


def test_a_place_that_the_log_does_not_have_is_bad_input(tmp_path: Path) -> None:
    Log(tmp_path)
    with ops.open(tmp_path) as warehouse:
        with pytest.raises(BadInput, match="no event 7 of writer 0190aaaa in this log"):
            warehouse.as_of("0190aaaa:7")
        with pytest.raises(BadInput, match="no time"):
            warehouse.as_of("yesterday")
