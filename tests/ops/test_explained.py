"""Why a row differs: one small log a cause, and what is in flight."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ops_logs import Log, text

from tallybook import ops
from tallybook.errors import BadInput
from tallybook.ops.exports import choosing
from tallybook.ops.reconciling import causes

NOW = 600.0


def explained(
    book: Path, rows: dict[str, Any], local: dict[str, Any] | None = None, **flight: Any
) -> ops.Explained:
    """The cache of a book, or the rows of ``local``, against an export of ``rows`` by id."""
    export = lines(book / "export.csv", rows)
    given = None if local is None else lines(book / "local.csv", local)
    with ops.open(book) as warehouse:
        asked = ops.Flight(at=text(NOW), **flight)
        return ops.explain(warehouse, export, key="id", local=given, flight=asked)


def lines(path: Path, rows: dict[str, Any]) -> Path:
    path.write_text("id,x\n" + "".join(f"{key},{x}\n" for key, x in rows.items()))
    return path


def why(found: ops.Explained) -> dict[str, str]:
    return dict(found.rows.select("key", "cause").iter_rows())


def told(found: ops.Explained) -> str:
    (sentence,) = found.rows["told"].to_list()
    return str(sentence)


def delivered(log: Log, key: str, x: int, at: float = 1.0, **fields: Any) -> None:
    """A job whose handler wrote what it delivered into the cache."""
    job = f"{key}-{at:g}"
    log.enqueued(job, at, payload={"id": key, "x": x})
    log.leased(job, at)
    log.put(key, {"id": key, "x": x}, at + 1, job_id=job, version=fields.pop("version", 1))
    log.ended("job.done", job, at, at + 1, http_status=200, **fields)


def open_job(log: Log, key: str, x: int, at: float, **fields: Any) -> str:
    log.enqueued(f"{key}-{at:g}", at, payload={"id": key, "x": x}, **fields)
    return f"{key}-{at:g}"


def test_a_job_in_the_dead_letters_is_told_with_attempts_and_answer(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.put("1", {"id": "1", "x": 2}, 1, pending=True)
    job = open_job(log, "1", 2, 2)
    log.leased(job, 3, attempt_count=4)
    log.ended("job.dead", job, 3, 4, attempt_count=5, error_type="HTTP 413", http_status=413,
              error="too large", reason="permanent")  # fmt: skip
    found = explained(tmp_path, {})
    assert why(found) == {"1": "dead"}
    assert told(found) == "dead since 2026-11-29 10:00:04Z after 5 attempts: HTTP 413 too large"
    assert found.reconciliation.statuses["in_flight_local"] == 0, "a dead job is never in flight"
    assert found.rows["place"].to_list() == [f"{log.writer}:{log.seq}"]


def test_what_the_queue_still_holds_is_in_flight_until_it_is_too_old(tmp_path: Path) -> None:
    log = Log(tmp_path)
    delivered(log, "1", 1)
    job = open_job(log, "1", 2, NOW - 300)
    log.leased(job, NOW - 290)
    log.ended("job.retry_scheduled", job, NOW - 290, NOW - 289, attempt_count=1, delay_ms=1,
              next_attempt_at=text(NOW + 180), error_type="HTTP 503", error="busy")  # fmt: skip
    found = explained(tmp_path, {"1": 0})
    assert (why(found), told(found)) == (
        {"1": "in_flight"},
        "retry due in 3 min after 1 attempt: HTTP 503 busy",
    )
    statuses = found.reconciliation.statuses
    assert (statuses["differs"], statuses["in_flight_local"], statuses["in_flight_cloud"]) == (
        0, 1, 1,
    )  # fmt: skip
    assert found.reconciliation.changed_cells == 0
    assert found.reconciliation.differences.is_empty()
    assert found.reconciliation.rows["status"].to_list() == ["in_flight_cloud", "in_flight_local"]
    old = explained(tmp_path, {"1": 0}, most_s=299)
    assert why(old) == {"1": "overdue"} and old.reconciliation.statuses["differs"] == 1
    assert told(old).endswith("waiting since 2026-11-29 10:05:00Z")


def test_a_match_is_never_in_flight(tmp_path: Path) -> None:
    log = Log(tmp_path)
    delivered(log, "1", 1)
    open_job(log, "1", 1, NOW - 5)
    found = explained(tmp_path, {"1": 1})
    assert found.rows.is_empty() and found.reconciliation.clean


def test_a_change_after_what_the_export_covers_is_in_flight(tmp_path: Path) -> None:
    log = Log(tmp_path)
    delivered(log, "1", 1, version=1)
    place = f"{log.writer[:8]}:{log.seq}"
    delivered(log, "1", 2, at=500, version=2)
    stale = {"1": 1}
    for covers in ("1", place, text(400)):
        assert why(explained(tmp_path, stale, covers=covers)) == {"1": "in_flight"}, covers
    for covers in ("2", f"{log.writer}:{log.seq}", text(560), None):
        assert why(explained(tmp_path, stale, covers=covers)) == {"1": "changed_in_cloud"}, covers
    late = explained(tmp_path, stale, covers="1", most_s=10)
    assert why(late) == {"1": "after_export"}
    assert late.reconciliation.statuses["differs"] == 1


def test_a_time_that_an_export_covers_is_moved_back_by_the_measured_skew_and_lag(
    tmp_path: Path,
) -> None:
    log = Log(tmp_path)
    for number in range(3):
        job = f"j{number}"
        log.enqueued(job, number, payload={"id": str(number)})
        log.leased(job, number)
        log.put(str(number), {"id": str(number), "x": 1}, number + 4, job_id=job,
                last_modified=text(number + 34))  # fmt: skip
        log.ended("job.done", job, number, number + 4)
    found = explained(tmp_path, {}, covers=text(100))
    assert found.cover is not None
    assert found.cover.told == (
        f"the export covers the time up to {text(100)[:-4]}Z: what changed here after "
        f"{text(100 - 30 - 4)[:-4]}Z may not be in it",
        "the clock of the cloud is +30.000 s from this one (median of 3 stamps)",
        "deliveries take up to 4.000 s (p99 of 3 jobs)",
    )
    assert why(found) == dict.fromkeys("012", "removed_in_cloud")
    assert why(explained(tmp_path, {}, covers=text(39))) == {
        "0": "removed_in_cloud", "1": "removed_in_cloud", "2": "in_flight",
    }  # fmt: skip


def test_a_profile_may_say_what_an_export_covers(tmp_path: Path) -> None:
    log = Log(tmp_path)
    delivered(log, "1", 1, version=1)
    delivered(log, "1", 2, at=500, version=2)
    export = lines(tmp_path / "export.csv", {"1": 1})
    (tmp_path / "p.toml").write_text('covers = "1"\n')
    profile = choosing.load(tmp_path / "p.toml")
    with ops.open(tmp_path) as warehouse:
        for given, cause in ((None, "in_flight"), ("2", "changed_in_cloud")):
            flight = ops.Flight(given, at=text(NOW))
            found = ops.explain(warehouse, export, key="id", flight=flight, profile=profile)
            assert why(found) == {"1": cause}, "what is given beside the profile counts more"


def test_a_skew_that_was_not_measured_is_said(tmp_path: Path) -> None:
    delivered(Log(tmp_path), "1", 1)
    cover = explained(tmp_path, {}, covers=text(100)).cover
    assert cover is not None and "was not measured" in cover.told[1]


@pytest.mark.parametrize(
    ("given", "words"),
    [("yesterday", "no version"), ("0190aaaa:99999", "no event 99999"), ("", None),
     ("2099-01-01T00:00:00Z", "still to come")],
)  # fmt: skip
def test_what_no_export_can_cover_is_refused(tmp_path: Path, given: str, words: str | None) -> None:
    delivered(Log(tmp_path), "1", 1)
    if words is None:
        assert explained(tmp_path, {}, covers=given).cover is None
        return
    with pytest.raises(BadInput, match=words):
        explained(tmp_path, {}, covers=given)


def test_a_bound_of_flight_that_is_none_is_refused() -> None:
    with pytest.raises(BadInput, match="more than 0"):
        ops.Flight(most_s=0)


def test_each_difference_has_its_cause(tmp_path: Path) -> None:
    log = Log(tmp_path)
    for key in ("cloud", "gone", "back", "late"):
        delivered(log, key, 1)
    log.put("late", {"id": "late", "x": 2}, 3)
    log.event("cache.invalidated", 3, key="back", reason="by hand")
    log.put("never", {"id": "never", "x": 1}, 3)
    log.put("seen", {"id": "seen", "x": 1}, 3, origin="cloud")
    log.enqueued("uncached", 3, payload={"id": "uncached"})
    log.leased("uncached", 3)
    log.ended("job.done", "uncached", 3, 4)
    log.event("job.cancelled", 5, job_id=open_job(log, "stop", 1, 4), topic="airports.sync")
    log.put("stop", {"id": "stop", "x": 1}, 3)
    found = explained(
        tmp_path, {"cloud": 2, "back": 1, "late": 1, "seen": 9, "uncached": 1, "extra": 1}
    )
    assert why(found) == {
        "cloud": "changed_in_cloud",
        "gone": "removed_in_cloud",
        "back": "removed_here",
        "late": "never_enqueued",
        "never": "never_enqueued",
        "seen": "changed_in_cloud",
        "uncached": "not_cached",
        "stop": "cancelled",
        "extra": "added_in_cloud",
    }
    assert set(found.rows["cause"]) <= set(causes.CAUSES)
    assert found.rows["told"].null_count() == 0
    assert found.causes["rows"].sum() == 9
    assert found.keys("never_enqueued") == ["late", "never"]


def test_a_lost_answer_that_was_not_replayed_was_applied_twice(tmp_path: Path) -> None:
    log = Log(tmp_path)
    for key, replayed in (("twice", None), ("once", True)):
        job = open_job(log, key, 1, 1)
        log.leased(job, 1)
        log.ended("job.retry_scheduled", job, 1, 2, error_type="AnswerLost", error="cut",
                  delay_ms=1, next_attempt_at=text(2))  # fmt: skip
        log.leased(job, 3, token=2)
        log.put(key, {"id": key, "x": 1}, 4, job_id=job)
        log.ended("job.done", job, 3, 4, token=2, **({"replayed": replayed} if replayed else {}))
    found = explained(tmp_path, {"twice": 2, "once": 2})
    assert why(found) == {"twice": "applied_twice", "once": "changed_in_cloud"}


def test_in_a_log_with_holes_nothing_is_said_to_be_missing(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.put("1", {"id": "1", "x": 1}, 1)
    delivered(log, "2", 1)
    log.seq += 1
    log.put("3", {"id": "3", "x": 1}, 9, origin="cloud")
    found = explained(tmp_path, {"2": 2, "9": 1})
    assert why(found) == {
        "1": "unexplained", "2": "changed_in_cloud", "3": "removed_in_cloud", "9": "unexplained",
    }  # fmt: skip
    assert found.causes["cause"][0] == "unexplained"


def test_a_file_is_explained_by_the_log_as_well(tmp_path: Path) -> None:
    log = Log(tmp_path)
    job = open_job(log, "1", 2, 2, idempotency_key="k1")
    log.leased(job, 3)
    log.ended("job.dead", job, 3, 4, error_type="HTTP 422", error="no", reason="permanent")
    found = explained(tmp_path, {}, local={"1": 1, "2": 1})
    assert why(found) == {"1": "dead", "2": "never_enqueued"}


def test_a_job_is_about_a_key_by_its_payload_its_names_or_the_entry_it_wrote(
    tmp_path: Path,
) -> None:
    log = Log(tmp_path)
    named = {"idempotency_key": "a"}, {"ordering_key": "b"}, {"resource": "c"}, {}
    for key, fields in zip("abcd", named, strict=True):
        payload = {"id": key} if key == "d" else {"other": 1}
        log.enqueued(f"job-{key}", 1, payload=payload, **fields)
    log.enqueued("job-e", 1, payload={"other": 1})
    for key in "abcde":
        log.put(key, {"id": key, "x": 1}, 2, job_id="job-e" if key == "e" else None)
    assert dict(explained(tmp_path, {}).rows.select("key", "job_id").iter_rows()) == {
        key: f"job-{key}" for key in "abcde"
    }


def test_a_key_of_two_columns_finds_its_job(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.enqueued("j", 1, payload={"id": "1", "day": 7, "x": 1})
    log.put("1/7", {"id": "1", "day": 7, "x": 1}, 2)
    export = tmp_path / "export.ndjson"
    export.write_text('{"id":"1","day":7,"x":2}\n{"id":"1","day":8,"x":2}\n')
    with ops.open(tmp_path) as warehouse:
        found = ops.explain(
            warehouse, export, key=["id", "day"], flight=ops.Flight(at=text(NOW), most_s=10)
        )
    assert why(found) == {'["1","7"]': "overdue", '["1","8"]': "added_in_cloud"}


def test_the_time_travelled_log_explains_as_of_then(tmp_path: Path) -> None:
    log = Log(tmp_path)
    job = open_job(log, "1", 1, 1)
    place = f"{log.writer}:{log.put('1', {'id': '1', 'x': 1}, 2)}"
    log.leased(job, 3)
    log.ended("job.dead", job, 3, 4, error_type="HTTP 422", error="no", reason="permanent")
    export = lines(tmp_path / "export.csv", {"2": 1})
    with ops.open(tmp_path) as warehouse, warehouse.as_of(place) as past:
        found = ops.explain(past, export, key="id", flight=ops.Flight(at=text(5)))
    assert why(found) == {"1": "in_flight", "2": "added_in_cloud"}
