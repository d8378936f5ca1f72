"""The ledger of reconciliations: what is verified, over which runs, and what stops it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ops_logs import Log, text

from tallybook import ops
from tallybook.errors import BadInput
from tallybook.ops.reconciling.ledger import NAME, Ledger, Run, Watermark

SERIES = "node:cache:id"


def run(name: str, order: float | None, verdict: str = "clean", *, again: bool = False) -> Run:
    covers = None if order is None else str(order)
    return Run(name, "at", SERIES, f"{name}.csv", verdict, {}, {}, covers, "time", order, again)


def watermark(*runs: Run) -> tuple[str | None, str | None]:
    found = Ledger(Path(), SERIES, runs).watermark()
    return found.through, found.stopped_by.run if found.stopped_by else None


def test_what_is_verified_moves_over_clean_runs_alone() -> None:
    assert watermark() == (None, None)
    assert watermark(run("a", 1), run("b", 2)) == ("2", None)
    assert watermark(run("a", 1, "differs"), run("b", 2)) == (None, "a")
    assert watermark(run("a", 1), run("b", 2, "differs"), run("c", 3)) == ("1", "b")
    assert watermark(run("a", 1), run("b", 2, "incomplete"), run("c", 3)) == ("1", "b")


def test_a_failed_run_is_settled_by_one_of_its_cover_or_by_a_second_look() -> None:
    failed = run("a", 1), run("b", 2, "differs")
    assert watermark(*failed, run("c", 2)) == ("2", None)
    assert watermark(*failed, run("c", 3, again=True)) == ("3", None)
    assert watermark(*failed, run("c", 3, "differs", again=True)) == ("1", "b")
    assert watermark(*failed, run("c", 3), run("d", 4, again=True)) == ("4", None)
    assert watermark(run("c", 3, again=True), run("b", 2, "differs")) == (None, "b")


def test_rows_in_flight_are_settled_by_any_later_clean_run() -> None:
    assert watermark(run("a", 1), run("b", 2, "in_flight")) == ("1", "b")
    assert watermark(run("a", 1), run("b", 2, "in_flight"), run("c", 3)) == ("3", None)


def test_a_run_that_says_nothing_of_its_cover_verifies_nothing() -> None:
    assert watermark(run("a", 1), run("b", None), run("c", None, "differs")) == ("1", None)


def reconciled(book: Path, out: Path, rows: str, covers: str | None, *, again: bool = False):
    export = book / f"export-{covers}.csv".replace(":", "")
    export.write_text("id,x\n" + rows)
    with ops.open(book) as warehouse:
        flight = ops.Flight(covers, at=text(60))
        found = ops.explain(warehouse, export, key="id", flight=flight)
        ledger = Ledger.of(out, SERIES)
        ledger.require_newer(export.name, found.cover)
        return ledger.second_look(found), ledger.add(export.name, found, again=again)


@pytest.fixture
def book(tmp_path: Path) -> Path:
    log = Log(tmp_path / "book")
    log.put("1", {"id": "1", "x": 1}, 1, origin="cloud")
    log.put("2", {"id": "2", "x": 1}, 2, origin="cloud")
    return tmp_path / "book"


def test_each_run_is_a_line_and_what_differed_is_kept(book: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    reconciled(book, out, "1,1\n2,1\n", text(10))
    _, ledger = reconciled(book, out, "1,1\n2,9\n", text(20))
    assert ledger.watermark() == Watermark(text(10), 1, ledger.runs[1])
    failed = out / "reconciliations" / ledger.runs[1].run
    kept = [json.loads(line) for line in (failed / "explained.ndjson").read_text().splitlines()]
    assert [(row["key"], row["cause"]) for row in kept] == [("2", "changed_in_cloud")]
    assert (failed / "differences.ndjson").read_text().count("\n") == 1
    _, ledger = reconciled(book, out, "1,1\n2,1\n", text(30), again=True)
    assert ledger.watermark() == Watermark(text(30), 2)
    assert failed.is_dir() and len((out / NAME).read_text().splitlines()) == 3
    assert ledger.frame()["verdict"].unique(maintain_order=True).to_list() == ["clean", "differs"]


def test_an_export_older_than_the_last_one_is_refused_by_name(book: Path, tmp_path: Path) -> None:
    reconciled(book, tmp_path / "out", "1,1\n2,1\n", text(20))
    with pytest.raises(BadInput, match=r"export-.*csv covers .*older than export-.*of run"):
        reconciled(book, tmp_path / "out", "1,1\n2,1\n", text(10))
    with pytest.raises(BadInput, match=r"is a version, and the runs in .* go by time"):
        reconciled(book, tmp_path / "out", "1,1\n2,1\n", "7")
    assert len((tmp_path / "out" / NAME).read_text().splitlines()) == 1


def test_a_later_run_says_what_became_of_the_rows_in_flight(book: Path, tmp_path: Path) -> None:
    log = Log(book, "0190bbbb" + "0" * 24, previous_writer="0190aaaa" + "0" * 24, previous_seq=3)
    for key in ("1", "2"):
        log.enqueued(f"j{key}", 50, payload={"id": key, "x": 1})
    _, ledger = reconciled(book, tmp_path / "out", "1,0\n2,0\n", text(55))
    assert (ledger.runs[0].verdict, ledger.runs[0].flying) == ("in_flight", ["1", "2"])
    told, _ = reconciled(book, tmp_path / "out", "1,1\n2,0\n", text(57))
    assert told == {"match": 1, "differs": 0, "in_flight": 1}


def test_a_line_that_is_no_run_is_named(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("\n{}\n")
    with pytest.raises(BadInput, match=f"{NAME} line 2 is no run"):
        Ledger.of(tmp_path, SERIES)
