"""An incident: what a slice holds is what the models say of it, what differs in it is what was
planted, and an instant is what the log says as of then."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import polars
import pytest
from ops_histories import random_history
from ops_logs import START, Log, Simulation

from tallybook import ops
from tallybook.errors import BadInput
from tallybook.ops import Span, Warehouse
from tallybook.ops.charts import incident as charts
from tallybook.ops.incident import Incident, Slice

ROUNDING = 0.006


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warehouse]:
    """A book of a simulated queue: retries, dead letters, expired leases, late settles."""
    book = tmp_path_factory.mktemp("book")
    Simulation(book, seed=5, jobs=600).run()
    with ops.open(book) as opened:
        yield opened


@pytest.fixture(scope="module")
def incident(warehouse: Warehouse) -> Iterator[Incident]:
    with Incident(warehouse) as made:
        yield made


def middle(incident: Incident) -> Slice:
    """The middle third of the span."""
    third = incident.grains.count // 3
    start = incident.grains.start
    return incident.slice(start(third), start(2 * third))


def rows(warehouse: Warehouse, query: str, part: Slice) -> list[tuple[object, ...]]:
    found = warehouse.sql(query, {"since": part.since, "until": part.until}).fetchall()
    return [tuple(row) for row in found]


# what happened in a slice


def test_the_table_has_the_leases_that_ended_in_the_slice_and_no_other(
    warehouse: Warehouse, incident: Incident
) -> None:
    ended = "from leases select job_id, lease_token where ended_at >= $since and ended_at < $until"
    start = incident.grains.start
    for grain in range(100, 120):
        part = incident.slice(start(grain), start(grain + 30))
        found = incident.worst(part, limit=10_000).select("job_id", "lease_token")
        assert sorted(found.iter_rows()) == sorted(rows(warehouse, ended, part))


def test_the_table_begins_with_failed_leases_and_then_with_the_longest(incident: Incident) -> None:
    found = incident.worst(incident.whole, limit=10_000)
    failed = [error != "(none)" for error in found["error"]]
    assert failed == sorted(failed, reverse=True) and True in failed and False in failed
    took = found.filter(polars.col("error") == "(none)")["took_s"].to_list()
    assert took == sorted(took, reverse=True)
    assert incident.worst(incident.whole, limit=3).height == 3


def test_the_table_can_be_kept_to_one_value(incident: Incident) -> None:
    part = middle(incident)
    names = incident.names(part).filter(polars.col("dimension") == "worker")
    id, name, n = names.select("id", "name", "n").row(0)
    found = incident.worst(part, id, limit=10_000)
    assert set(found["worker"]) == {name} and found.height == n


def test_throughput_is_counted_by_step_as_the_question_counts_it(
    warehouse: Warehouse, incident: Incident
) -> None:
    flow = incident.flow()
    whole = ops.throughput(warehouse, Span(every="1d")).sum()
    for name in ("arrivals", "starts", "completions"):
        assert flow[name].sum() == whole[name].item() > 0
    assert flow.height == incident.grains.count <= 600


def test_the_summary_splits_the_leases_between_slice_and_rest(
    warehouse: Warehouse, incident: Incident
) -> None:
    inside, rest = incident.summary(middle(incident)).iter_rows(named=True)
    assert (inside["inside"], rest["inside"]) == (True, False)
    assert inside["n"] + rest["n"] == warehouse.sql("from leases").pl().height
    failed = "from leases where how in ('retry', 'dead', 'expired', 'worker died', 'reboot')"
    assert inside["failed"] + rest["failed"] == warehouse.sql(failed).pl().height


def test_percentiles_are_right_to_the_width_of_a_band(
    warehouse: Warehouse, incident: Incident
) -> None:
    part = middle(incident)
    exact = (
        "select quantile_disc(duration_ms / 1000.0, [0.5, 0.95, 0.99]) from leases "
        "where ended_at >= $since and ended_at < $until and duration_ms is not null"
    )
    first, last = part.first, part.last
    whole = incident._ask("latency", part, width=last - first)
    found = whole.filter(polars.col("measure") == "run_us").select("p50", "p95", "p99").row(0)
    for ours, right in zip(found, rows(warehouse, exact, part)[0][0], strict=True):
        assert ours == pytest.approx(float(right), rel=ROUNDING)


def test_each_window_of_a_panel_lies_in_the_slice_and_holds_its_share(incident: Incident) -> None:
    part = middle(incident)
    n = incident.summary(part)["n"][0]
    timed = incident.latency(part).filter(polars.col("measure") == "run_us")
    assert timed["n"].sum() == incident.heat(part)["n"].sum() <= n
    failed = incident.worst(part, limit=10_000).filter(polars.col("error") != "(none)").height
    assert incident.errors(part)["n"].sum() == failed
    for frame in (timed, incident.heat(part), incident.lanes(part), incident.errors(part)):
        assert frame["since"].min() >= part.since and frame["until"].max() <= part.until


def test_lanes_hold_what_each_worker_held_within_the_slice(
    warehouse: Warehouse, incident: Incident
) -> None:
    part = middle(incident)
    held = (
        "select worker, sum(epoch_us(least(coalesce(ended_at, $until), $until)) "
        "- epoch_us(greatest(leased_at, $since))) / 1e6 from leases "
        "where leased_at < $until and (ended_at is null or ended_at > $since) group by worker"
    )
    right = {str(worker): float(str(s)) for worker, s in rows(warehouse, held, part)}
    ours = incident.lanes(part).group_by("worker").agg(polars.col("held_s").sum())
    assert dict(ours.iter_rows()) == pytest.approx(right)
    assert incident.taken(part).height == len(
        rows(warehouse, "from leases where how = 'expired' and leased_at < $until "
             "and ended_at >= $since", part)
    )  # fmt: skip


def test_a_span_counts_only_what_lies_in_it(warehouse: Warehouse, incident: Incident) -> None:
    part = middle(incident)
    with Incident(warehouse, Span(part.since, part.until)) as narrow:
        assert narrow.whole.since <= part.since and narrow.whole.until >= part.until
        again = narrow.slice(part.since, part.until)
        assert narrow.summary(again).row(0)[2:4] == incident.summary(part).row(0)[2:4]
        assert narrow.queue(again.last - 1).rows() == incident.queue(part.last - 1).rows()


def test_a_slice_touches_whole_steps_and_one_outside_the_span_is_bad_input(
    incident: Incident,
) -> None:
    grains = incident.grains
    part = incident.slice(grains.start(7) + timedelta(microseconds=1), grains.start(9))
    assert (part.first, part.last) == (7, 9)
    assert incident.slice() == incident.whole
    with pytest.raises(BadInput, match="nothing of"):
        incident.slice(grains.until, grains.until + timedelta(hours=1))
    with pytest.raises(BadInput, match="not before"):
        incident.slice(grains.start(9), grains.start(7))


def test_a_log_without_a_job_is_answered_with_nothing(tmp_path: Path) -> None:
    Log(tmp_path)
    with ops.open(tmp_path) as opened, Incident(opened) as made:
        whole = made.whole
        assert made.worst(whole).is_empty() and made.differences(whole).is_empty()
        assert made.flow()["arrivals"].sum() == 0 and made.queue(0).is_empty()
        assert charts.slice_panels(made, whole).to_dict()


# what differs


def planted(
    book: Path, *, slow: str = "", failing: str = "", large: bool = False, seconds: int = 200
) -> None:
    """Eight topics on eight workers, a job every 100 ms; in the middle fifth one is different."""
    log = Log(book)
    for number in range(seconds * 10):
        at = number / 10
        inside = 0.4 * seconds <= at < 0.6 * seconds
        topic, worker = f"topic-{number % 8}", f"w{number * 7 % 64 // 8}"
        payload = {"text": "x" * (9000 if inside and large else 10)}
        job = f"j{number}"
        log.enqueued(job, at, topic, payload=payload)
        log.leased(job, at, worker, topic=topic)
        ran = (0.9 if inside and topic == slow else 0.03) + number % 13 / 1000
        bad = inside and worker == failing and number % 3 == 0
        fields = {"error_type": "HTTP 503"} if bad else {}
        name = "job.dead" if bad else "job.done"
        endpoint = f"POST /{topic}"
        log.ended(name, job, at, at + ran, worker, topic=topic, endpoint=endpoint, **fields)


def differing(book: Path) -> polars.DataFrame:
    with ops.open(book) as opened, Incident(opened) as made:
        part = made.slice(START + timedelta(seconds=81), START + timedelta(seconds=119))
        return made.differences(part)


def test_a_topic_that_is_slow_in_the_slice_comes_first_with_its_endpoint(tmp_path: Path) -> None:
    planted(tmp_path, slow="topic-3")
    found = differing(tmp_path)
    first = found.head(2).select("dimension", "name", "way").rows()
    assert sorted(first) == [
        ("endpoint", "POST /topic-3", "takes longer"),
        ("topic", "topic-3", "takes longer"),
    ]
    assert found["excess"][0] > 0.7
    assert set(found["way"]) == {"takes longer"}


def test_a_worker_that_fails_in_the_slice_is_found_with_its_error(tmp_path: Path) -> None:
    planted(tmp_path, failing="w5")
    found = differing(tmp_path).select("dimension", "name", "way").rows()
    assert set(found[:2]) == {("worker", "w5", "fails"), ("error", "HTTP 503", "occurs")}


def test_payloads_that_are_larger_in_the_slice_are_found(tmp_path: Path) -> None:
    planted(tmp_path, large=True)
    found = differing(tmp_path)
    named = found.select("dimension", "name").rows()
    assert named == [("payload size", "4 to 16 KiB"), ("payload size", "under 256 B")]
    assert found["excess"].to_list() == pytest.approx([1, -1], abs=0.02)


def test_where_nothing_was_planted_nothing_differs(tmp_path: Path) -> None:
    planted(tmp_path)
    assert differing(tmp_path).is_empty()


def test_what_weighs_most_comes_first_whatever_its_name(tmp_path: Path) -> None:
    log = Log(tmp_path)
    for number in range(300):
        at, topic = float(number), "amz"[number % 3]
        ran = {"a": 2, "m": 1, "z": 6}[topic] if number >= 240 else 1
        log.enqueued(f"j{number}", at, topic)
        log.leased(f"j{number}", at, topic=topic)
        log.ended("job.done", f"j{number}", at, at + ran + number % 7 / 1000, topic=topic)
    with ops.open(tmp_path) as opened, Incident(opened) as made:
        found = made.differences(made.slice(START + timedelta(seconds=241), None))
    slower = found.filter((polars.col("dimension") == "topic") & (polars.col("excess") > 0))
    assert slower["name"].to_list() == ["z", "a"]
    weights = found["excess"].abs().to_list()
    assert weights == sorted(weights, reverse=True)


def test_the_measure_is_what_is_beyond_the_rest_as_a_part_of_the_slice(tmp_path: Path) -> None:
    """Here 20 of 40 leases are of topic b and take 3 s, elsewhere 40 of 160 and 1 s."""
    log = Log(tmp_path)
    for number in range(200):
        inside, at = number >= 160, float(number)
        topic = "b" if number % (2 if inside else 4) == 0 else "a"
        ran = (3 if inside and topic == "b" else 1) + number % 3 / 1000
        log.enqueued(f"j{number}", at, topic)
        log.leased(f"j{number}", at, topic=topic)
        log.ended("job.done", f"j{number}", at, at + ran, topic=topic)
    with ops.open(tmp_path) as opened, Incident(opened) as made:
        part = made.slice(START + timedelta(seconds=161), None)
        named = made.differences(part).filter(polars.col("name") == "b")
        found = {row["way"]: row for row in named.iter_rows(named=True)}
    slow = found["takes longer"]
    assert slow["n"] == 20 and slow["rest_n"] == 40
    assert (slow["here"], slow["elsewhere"]) == pytest.approx((3, 1), rel=0.01)
    assert slow["excess"] == pytest.approx(20 * 2 / (20 * 3 + 20 * 1), rel=0.01)


# an instant


@pytest.mark.parametrize("seed", [3, 8])
def test_queue_leases_and_cache_of_an_instant_are_those_that_as_of_says(
    tmp_path: Path, seed: int
) -> None:
    random_history(tmp_path, seed)
    statuses = ("topic", "pending", "leased", "done", "dead", "cancelled")
    with ops.open(tmp_path) as opened, Incident(opened) as made:
        depth, since, step = made.depth(), made.grains.since, made.grains.step
        moments = opened.sql("select occurred_at from events where event like 'job.%'").fetchall()
        before = {(at - since) // step - 1 for (at,) in moments[40::60]}  # the next one has news
        for grain in {*before, made.grains.count - 1} - {-1}:
            with opened.as_of(made.end_of(grain)) as past:
                topics = past.sql("from topics where jobs > 0").select(*statuses)
                queue = made.queue(grain)
                kept = queue.filter(polars.sum_horizontal(statuses[1:]) > 0)
                assert kept.rows() == sorted(topics.fetchall())
                assert depth["pending"][grain] == queue["pending"].sum()
                held = "select worker, count(*) from leases where how = 'open' group by worker"
                leases = made.leases(grain).select("worker", "leases").sort("worker")
                assert leases.rows() == sorted(past.sql(held).fetchall())
                keys, newest = made.cache(grain, limit=10_000)
                right = ops.cache_as_of(past)
                assert keys == right.height
                assert sorted(newest["key"]) == right["key"].to_list()


# a brush


def test_a_brush_is_read_on_the_clock_of_its_zone_and_covers_an_hour_that_is_shown_twice() -> None:
    local = datetime(2026, 10, 25, 2, 30)
    shown = (local - datetime(1970, 1, 1)).total_seconds() * 1000
    found = charts.brushed({"since": [shown, shown + 60_000]}, "Europe/Berlin")
    assert found
    since, until = (moment.astimezone(ZoneInfo("UTC")) for moment in found)
    assert (since.hour, until.hour) == (0, 1)
    assert charts.brushed({}, "UTC") is None and charts.brushed(None, "UTC") is None
    assert charts.brushed({"since": [5, 5]}, "UTC") is None


def test_the_panels_of_any_slice_are_a_valid_chart(incident: Incident) -> None:
    for part in (incident.whole, middle(incident), incident.slice(None, incident.grains.start(1))):
        assert charts.slice_panels(incident, part).to_dict()["vconcat"]
    drawn = charts.brushed_throughput(incident, middle(incident)).to_dict()
    assert [one["name"] for one in drawn["params"]] == [charts.BRUSH]
