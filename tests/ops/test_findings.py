"""Detectors and findings: each kind of trouble is found, named by its ids, and nothing else."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import polars
import pytest
from ops_logs import Log, text

from tallybook import ops
from tallybook.errors import BadInput, TallybookError
from tallybook.ops import Span


@pytest.fixture
def troubled(tmp_path: Path) -> Path:
    """A book with one of each trouble, and a job without any."""
    log = Log(tmp_path)
    names = ("fine", "lost", "dead", "twice", "killed", "hung", "late", "open")
    for number, name in enumerate(names):
        log.enqueued(name, number)
    for name in ("fine", "lost", "dead", "twice"):
        log.leased(name, 10, worker="w1")
    log.ended("job.done", "fine", 10, 11)
    log.ended("job.retry_scheduled", "lost", 10, 11, error_type="AnswerLost", error="cut",
              delay_ms=0, next_attempt_at=text(11))  # fmt: skip
    log.leased("lost", 12, token=2)
    log.ended("job.done", "lost", 12, 13, token=2, replayed=True)
    log.ended("job.dead", "dead", 10, 11, error_type="HTTP 422", error="no", reason="permanent")
    log.ended("job.done", "twice", 10, 11, replayed=True)
    log.leased("killed", 20, worker="w2")
    log.leased("hung", 20, worker="w3")
    log.expired("killed", 81, worker="w2")
    log.expired("hung", 81, worker="w3")
    log.leased("killed", 82, token=2)
    log.ended("job.done", "killed", 82, 83, token=2)
    log.leased("hung", 82, token=2)
    log.ended("job.done", "hung", 82, 83, token=2)
    log.refused("hung", 20, 90, worker="w3")
    log.refused("hung", 20, 90, worker="w3", settle="extend")
    log.leased("late", 100, worker="w4")
    log.ended("job.done", "late", 100, 161, worker="w4")
    log.put("airport:fine", {"n": 1}, 170, job_id="fine")
    return tmp_path


def ids(found: list[ops.Finding]) -> dict[str, tuple[str, ...]]:
    return {finding.kind: finding.ids for finding in found}


def test_throughput_findings_name_the_jobs_of_each_kind(troubled: Path) -> None:
    with ops.open(troubled) as warehouse:
        found = ids(ops.findings.throughput_latency(warehouse))
    assert found == {
        "answer_lost": ("key-lost",),
        "retried": ("key-lost",),
        "dead": ("key-dead",),
        "delivered_twice": ("key-twice", "key-lost"),
        "open_jobs": ("key-open",),
    }


def test_lease_findings_name_taken_leases_late_results_and_late_settles(troubled: Path) -> None:
    with ops.open(troubled) as warehouse:
        found = ids(ops.findings.stuck_leases(warehouse))
        rows = {row["job_id"]: row for row in ops.stuck_leases(warehouse).to_dicts()}
        trace = ops.trace(warehouse, "hung")["seq"].to_list()
    assert found == {
        "stuck_lease": ("key-hung", "key-killed"),
        "late_settle_refused": ("key-hung",),
        "settled_late": ("key-late",),
    }
    assert {job: row["how"] for job, row in rows.items()} == {
        "killed": "expired", "hung": "refused", "late": "late",
    }  # fmt: skip
    assert rows["hung"]["next_worker"] == "w1" and set(rows["hung"]["evidence"]) <= set(trace)
    assert rows["killed"]["command"] == f"tallybook trace killed --book {troubled.resolve()}"


def test_a_lease_that_nobody_ended_is_overdue_from_its_end_on(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.enqueued("j", 1)
    log.leased("j", 1)
    with ops.open(tmp_path) as warehouse:
        assert ops.stuck_leases(warehouse).is_empty()
        late = ops.stuck_leases(warehouse, at=text(62))
    assert late["how"].to_list() == ["overdue"]


def test_a_job_that_was_requeued_and_done_is_no_dead_letter(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.enqueued("j", 1)
    log.leased("j", 1)
    log.ended("job.dead", "j", 1, 2, error_type="X")
    log.event("job.requeued", 3, job_id="j", topic="t", reason="asked")
    log.leased("j", 4, token=2)
    log.ended("job.done", "j", 4, 5, token=2)
    with ops.open(tmp_path) as warehouse:
        assert ops.dead(warehouse).is_empty()


def test_a_clean_book_says_so_and_nothing_else(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.enqueued("j", 1)
    log.leased("j", 1)
    log.ended("job.done", "j", 1, 2)
    with ops.open(tmp_path) as warehouse:
        for found in (
            ops.findings.throughput_latency(warehouse),
            ops.findings.stuck_leases(warehouse),
            ops.findings.cache_rebuild(warehouse),
        ):
            assert [(finding.kind, finding.severity) for finding in found] == [("clean", "info")]
        assert ops.findings.incomplete(warehouse) == []


def test_incomplete_findings_name_lines_and_holes(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.raw(b"{torn\n")
    log.seq = 4
    log.enqueued("j", 1)
    with ops.open(tmp_path) as warehouse:
        found = ids(ops.findings.incomplete(warehouse))
    assert found["quarantined"] == (f"{log.path.name}:2",)
    assert found["gap"] == (f"{log.writer[:8]}:2-4",)


def state_db(book: Path, entries: dict[str, str], wal: bool = False) -> None:
    """A state.db with a cache, as the runtime would leave it."""
    connection = sqlite3.connect(book / "state.db")
    connection.execute("pragma journal_mode = wal")
    connection.execute(
        "create table cache (key text primary key, value text, version integer, etag text, "
        "origin text, updated_at text)"
    )
    rows = [(key, value, 1, None, "cloud", text(1)) for key, value in entries.items()]
    connection.executemany("insert into cache values (?, ?, ?, ?, ?, ?)", rows)
    connection.commit()
    if not wal:
        connection.close()
        return
    for name in ("state.db", "state.db-wal"):
        (book / f"kept-{name}").write_bytes((book / name).read_bytes())
    connection.close()
    for name in ("state.db", "state.db-wal"):
        (book / f"kept-{name}").replace(book / name)


@pytest.mark.parametrize("wal", [False, True])
def test_log_and_state_db_are_compared_key_by_key_without_a_file_left(
    tmp_path: Path, wal: bool
) -> None:
    log = Log(tmp_path)
    log.put("same", {"a": 1, "b": 2.0}, 1)
    log.put("differs", {"a": 1}, 2)
    log.put("only-log", 1, 3)
    state_db(tmp_path, {"same": '{"b":2,"a":1}', "differs": '{"a":2}', "only-state": "1"}, wal)
    before = sorted(path.name for path in tmp_path.iterdir())
    with ops.open(tmp_path) as warehouse:
        compared = dict(ops.compare_cache(warehouse).select("key", "status").iter_rows())
        found = ids(ops.findings.cache_rebuild(warehouse))
        assert not ops.cache_parity(warehouse)["same"].item()
    assert compared == {"same": "same", "differs": "differs", "only-log": "only_log",
                        "only-state": "only_state"}  # fmt: skip
    assert found == {"rebuilt": ("same",), "cache_differs": ("differs",),
                     "cache_lost": ("only-log",), "cache_unknown": ("only-state",)}  # fmt: skip
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize("state", [b"SQLite format 3\x00" + b"junk" * 500, None])
def test_a_state_db_that_cannot_be_read_is_said_and_is_no_lost_key(
    tmp_path: Path, state: bytes | None
) -> None:
    Log(tmp_path).put("k", 1, 1)
    if state:
        (tmp_path / "state.db").write_bytes(state)
    else:
        (tmp_path / "state.db").mkdir()
    with ops.open(tmp_path) as warehouse:
        assert "cannot read" in warehouse.warnings[0] and warehouse.notes == []
        with pytest.raises(TallybookError, match=r"cannot read .*state\.db: "):
            ops.findings.cache_rebuild(warehouse)


def test_a_state_db_that_is_gone_or_without_a_cache_counts_as_lost(tmp_path: Path) -> None:
    Log(tmp_path).put("k", 1, 1)
    (tmp_path / "state.db").touch()
    with ops.open(tmp_path) as warehouse:
        assert ops.surviving_cache(warehouse) is None
        assert ops.compare_cache(warehouse)["status"].to_list() == ["only_log"]


def test_parity_is_equal_for_equal_caches_in_any_order(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.put("b", {"y": 1.5, "x": [1, None]}, 1)
    log.put("a", "\u00e9", 2)
    state_db(tmp_path, {"a": '"\\u00e9"', "b": '{"x":[1,null],"y":1.5}'})
    with ops.open(tmp_path) as warehouse:
        parity = ops.cache_parity(warehouse)
    assert parity["same"].item() and parity["parity_log"].item() == parity["parity_state"].item()


def test_reconcile_findings_carry_the_keys(tmp_path: Path) -> None:
    log = Log(tmp_path)
    for number in range(4):
        log.put(f"k{number}", {"id": f"{number}", "n": number, "x": 1e-05}, 1)
    export = tmp_path / "export.csv"
    export.write_text("id,n,x\n0,0,1e-05\n1,9,1e-05\n3,3,1e-05\n7,7,1\n7,7,1\n9,9,1\n")
    with ops.open(tmp_path) as warehouse:
        reconciliation = ops.reconcile(warehouse, export, key="id")
    found = ids(ops.findings.reconcile(reconciliation))
    assert found == {"changed": ("1",), "missing": ("2",), "extra": ("9",),
                     "duplicate_cloud": ("7",)}  # fmt: skip
    assert reconciliation.columns_only_local == ("key",)


@pytest.mark.parametrize("right", [["9"], []])
def test_where_nothing_is_comparable_no_row_is_called_missing(right: list[str]) -> None:
    sides = (
        polars.DataFrame({"id": keys}, schema={"id": polars.String}) for keys in (["1"], right)
    )
    (found,) = ops.findings.reconcile(ops.reconcile(*sides, key="id"))
    assert (found.kind, found.severity, found.ids) == ("not_comparable", "problem", ())


def test_entries_still_to_be_delivered_are_in_flight(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.put("k1", {"n": 1}, 1, pending=True)
    log.put("k2", {"n": 1}, 1)
    export = tmp_path / "export.csv"
    export.write_text("key,n\nk1,0\nk2,1\n")
    with ops.open(tmp_path) as warehouse:
        flight = ops.Flight(at=text(60))
        statuses = ops.reconcile(warehouse, export, key="key", flight=flight).statuses
    assert (statuses["in_flight_local"], statuses["in_flight_cloud"], statuses["match"]) == (
        1,
        1,
        1,
    )


def test_the_surviving_cache_of_a_live_book_is_read_through_its_wal(tmp_path: Path) -> None:
    Log(tmp_path).put("k", 1, 1)
    with closing(sqlite3.connect(tmp_path / "state.db")) as live:
        live.execute("pragma journal_mode = wal")
        live.execute("create table cache (key, value, version, etag, origin, updated_at)")
        live.execute("insert into cache values ('k', '1', 1, null, 'local', 'x')")
        live.commit()
        with ops.open(tmp_path) as warehouse:
            assert ops.compare_cache(warehouse)["status"].to_list() == ["same"]


def test_a_refused_extension_is_no_late_result(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.enqueued("j", 1)
    log.leased("j", 1)
    log.expired("j", 62)
    log.refused("j", 1, 70, settle="extend")
    with ops.open(tmp_path) as warehouse:
        assert ops.late_settles(warehouse).is_empty()
        assert ops.stuck_leases(warehouse)["how"].to_list() == ["refused"]


def test_findings_are_those_of_the_window(troubled: Path) -> None:
    with ops.open(troubled) as warehouse:
        early = ids(ops.findings.throughput_latency(warehouse, Span(until=text(12))))
        late = ops.findings.throughput_latency(warehouse, Span(text(14), text(15)))
        before = ops.findings.stuck_leases(warehouse, at=text(30))
        killed = ids(ops.findings.stuck_leases(warehouse, Span(until=text(82))))
        after = ids(ops.findings.stuck_leases(warehouse, Span(since=text(95))))
        with pytest.raises(BadInput, match="is not before"):
            ops.findings.throughput_latency(warehouse, Span(text(2), text(1)))
    assert early == {"answer_lost": ("key-lost",), "retried": ("key-lost",), "dead": ("key-dead",),
                     "delivered_twice": ("key-twice",), "open_jobs": ("key-open",)}  # fmt: skip
    assert [(one.kind, one.title) for one in late] == [("clean", "No job arrived in this window")]
    assert [one.title for one in before] == ["Every lease was ended in time in this window"]
    assert killed == {"stuck_lease": ("key-hung", "key-killed")}
    assert after == {"settled_late": ("key-late",)}


def test_a_lease_is_judged_as_of_the_instant_that_was_asked_for(troubled: Path) -> None:
    with ops.open(troubled) as warehouse:
        rows = {
            at: {row["job_id"]: row for row in ops.stuck_leases(warehouse, at=text(at)).to_dicts()}
            for at in (50, 80.5, 85, 95)
        }
    hows = {at: {job: row["how"] for job, row in found.items()} for at, found in rows.items()}
    assert hows == {
        50: {},
        80.5: {"killed": "overdue", "hung": "overdue"},
        85: {"killed": "expired", "hung": "expired"},
        95: {"killed": "expired", "hung": "refused"},
    }
    assert rows[80.5]["hung"]["ended_at"] is None and rows[85]["hung"]["refused_at"] is None


def test_a_lease_of_a_dead_worker_is_told_as_that(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.enqueued("j", 1)
    log.leased("j", 1)
    log.expired("j", 2, reason="worker_dead")
    with ops.open(tmp_path) as warehouse:
        assert ops.expired_leases(warehouse)["how"].to_list() == ["worker died"]
        (found,) = ops.findings.stuck_leases(warehouse)
    assert found.severity == "warning" and found.evidence.endswith("worker died")


def test_a_log_without_jobs_says_that_no_job_arrived(tmp_path: Path) -> None:
    Log(tmp_path)
    with ops.open(tmp_path) as warehouse:
        assert ops.findings.throughput_latency(warehouse)[0].title == "No job arrived"
        assert ops.findings.stuck_leases(warehouse)[0].title == "No lease was held"


def test_a_cache_as_of_an_earlier_instant_is_compared_at_the_end_and_says_so(
    tmp_path: Path,
) -> None:
    Log(tmp_path).put("k", 1, 1)
    with ops.open(tmp_path) as warehouse:
        found = ops.findings.cache_rebuild(warehouse, as_of=text(0))
    assert [one.kind for one in found] == ["cache_lost", "noted"] and text(0) in found[1].title


def test_commands_name_the_book_unless_it_is_the_default_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("book", "my book"):
        Log(tmp_path / name).enqueued("j", 1)
    commands = []
    for name in ("book", "my book"):
        with ops.open(tmp_path / name) as warehouse:
            commands.append(ops.findings.throughput_latency(warehouse)[0].action)
    assert commands == [
        "tallybook jobs list --status pending",
        f"tallybook jobs list --status pending --book '{tmp_path.resolve()}/my book'",
    ]
