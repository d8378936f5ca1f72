"""Sides that are tables in memory: Polars, Arrow, DuckDB; and what the result is."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow
import pytest

from tallybook.errors import BadInput, NoRoom, TallybookError
from tallybook.ops.reconciling import compare, plan, reconcile
from tallybook.ops.reconciling.room import Room

LONG = "select count(*) from range(1000000) as a, range(1000000) as b where a.range < b.range + 7"
TYPED = polars.DataFrame(
    {
        "id": ["a", "b", None],
        "n": [9007199254740993, None, 3],
        "price": [Decimal("1.50"), Decimal("-2.00"), None],
        "small": [1e-05, 1e22, 0.1],
        "at": [datetime(2026, 11, 30, 8, 0, 0, 120000, UTC), None, None],
        "ok": [True, False, None],
    }
)
MADE: dict[str, Callable[[polars.DataFrame], Any]] = {
    "polars": lambda frame: frame,
    "lazy": lambda frame: frame.lazy(),
    "arrow": lambda frame: frame.to_arrow(),
    "duckdb": lambda frame: duckdb.connect().from_arrow(frame.to_arrow()),
}


@pytest.mark.parametrize("left", MADE)
@pytest.mark.parametrize("right", [*MADE, "parquet"])
def test_a_table_is_equal_to_itself_in_any_form(tmp_path: Path, left: str, right: str) -> None:
    if right == "parquet":
        TYPED.write_parquet(tmp_path / "x.parquet")
        other = tmp_path / "x.parquet"
    else:
        other = MADE[right](TYPED)
    found = reconcile(MADE[left](TYPED), other, key="id")
    assert found.statuses["match"] == 2 and found.differences.is_empty()
    assert found.statuses["null_key_local"] == found.statuses["null_key_cloud"] == 1


def test_rows_are_numbered_over_all_batches() -> None:
    ids = [str(n) for n in range(5000)]
    left = polars.DataFrame({"id": ids, "x": ids})
    right = left.with_columns(x=polars.when(polars.col("id") == "4321").then(polars.lit("y"))
                              .otherwise("x"))  # fmt: skip
    pieces = pyarrow.concat_tables([right[:2000].to_arrow(), right[2000:].to_arrow()])
    assert pieces.column(0).num_chunks == 2
    assert reconcile(left, pieces, key="id").rows.row(0) == ("differs", "4321", 4322, 4322)


def test_the_result_is_relations_that_any_query_may_ask() -> None:
    left = polars.DataFrame({"id": ["1", "2", "3"], "x": ["a", "b", "c"]})
    right = polars.DataFrame({"id": ["1", "2", "4"], "x": ["a", "B", "d"]})
    with reconcile(left, right, key="id") as found:
        assert found.relation("differences").fetchall() == [("2", "x", "b", "B")]
        counted = "select status, count(*) from rows group by status order by status"
        assert found.sql(counted).fetchall() == [("differs", 1), ("only_cloud", 1),
                                                 ("only_local", 1)]  # fmt: skip
        assert found.relation("unreadable").pl().is_empty()
        with pytest.raises(BadInput, match="no relation 'cells'; choose one of differences"):
            found.relation("cells")


def test_what_is_set_aside_goes_when_the_result_is_closed_dropped_or_fails(tmp_path: Path) -> None:
    left = polars.DataFrame({"id": ["1"], "x": ["a"]})
    found = reconcile(left, left, key="id", out=tmp_path)
    assert len(list(tmp_path.iterdir())) == 1
    found.close()
    assert list(tmp_path.iterdir()) == []
    reconcile(left, left, key="id", out=tmp_path)
    assert list(tmp_path.iterdir()) == [], "dropped"
    with pytest.raises(BadInput):
        reconcile(left, left, key="none", out=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_frame_that_names_a_column_twice_or_has_none_is_refused() -> None:
    twice = (
        duckdb.connect().sql("select 1 as id, 2 as x").to_arrow_table().rename_columns(["a"] * 2)
    )
    good = polars.DataFrame({"id": ["1"]})
    with pytest.raises(BadInput, match="cloud table names a column twice: a"):
        reconcile(good, twice, key="id")
    with pytest.raises(BadInput, match="local table has no column"):
        reconcile(polars.DataFrame(), good, key="id")


@pytest.mark.parametrize(("side", "other"), [("local", {"id": [1]}), ("cloud", None)])
def test_what_is_no_table_is_a_type_error_that_says_what_is_taken(side: str, other: Any) -> None:
    good = polars.DataFrame({"id": ["1"]})
    sides = (other, good) if side == "local" else (good, other)
    said = rf"{side} side is a (dict|NoneType): give a path, a Polars .*pandas frame.* give pol"
    with pytest.raises(TypeError, match=said):
        reconcile(*sides, key="id")


WIDE = polars.DataFrame({"id": [f"{n:080}" for n in range(100_000)]}).with_columns(
    x=polars.col("id")
)


def test_what_does_not_fit_into_memory_is_spilled_and_compared_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spilled: list[Path] = []
    forget = Room.drop_all_but

    def seen(room: Room, kept: Collection[str]) -> None:
        spilled.extend(path for path in tmp_path.rglob("*") if path.is_file())
        forget(room, kept)

    monkeypatch.setattr(Room, "drop_all_but", seen)
    with reconcile(WIDE, WIDE, key="id", memory="50MB", out=tmp_path) as found:
        assert found.clean and found.rows_local == WIDE.height and spilled
    assert list(tmp_path.iterdir()) == []


def test_without_room_to_spill_it_says_where_and_leaves_nothing(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(NoRoom, match=r"the disk takes no more.*--out, or in TMPDIR"):
            reconcile(WIDE, WIDE, key="id", memory="50MB", out=tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_which_nothing_can_be_set_aside_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match=r"nothing can be set aside there.*name another folder"):
        reconcile(TYPED, TYPED, key="id", out=tmp_path / "file")


def test_an_interrupted_comparison_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> str:
        threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT]).start()
        return LONG

    monkeypatch.setattr(plan, "keyed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        reconcile(TYPED, TYPED, key="id", out=tmp_path, progress=lambda *_: None)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_comparison_left_is_removed_by_the_next(tmp_path: Path) -> None:
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout.strip()  # fmt: skip
    left, alive = tmp_path / f".spill-{gone}-x", tmp_path / f".spill-{os.getpid()}-x"
    left.mkdir()
    alive.mkdir()
    reconcile(TYPED, TYPED, key="id", out=tmp_path).close()
    assert list(tmp_path.iterdir()) == [alive]


def test_progress_is_told_by_stage_up_to_its_end() -> None:
    told: list[tuple[str, int, int]] = []
    reconcile(WIDE, WIDE.head(90_000), key="id", progress=lambda *how: told.append(how))
    ended = [stage for stage, done, of in told if done == of]
    assert ended == ["comparing", "finding differences"]
    for stage in ended:
        hundredths = [done for named, done, _ in told if named == stage]
        assert hundredths == sorted(hundredths) and {of for _, _, of in told} == {100}


def test_a_large_table_is_compared_in_parts_with_the_same_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left = polars.DataFrame({"id": ["1", "2", "2", None, "4", "5"], "x": ["a"] * 6})
    right = polars.DataFrame({"id": ["1", "2", None, "4", "6"], "x": ["a", "a", "a", "b", "a"]})
    whole = reconcile(left, right, key="id")
    monkeypatch.setattr(compare, "_ROWS_AT_ONCE", 2)
    parts = reconcile(left, right, key="id")
    assert parts.statuses == whole.statuses and parts.rows.equals(whole.rows)


def test_too_little_memory_is_said_as_such() -> None:
    with pytest.raises(TallybookError, match=r"too little for it; give it more \(--memory"):
        reconcile(WIDE, WIDE, key="id", memory="1MB")


def test_what_a_comparison_gives_is_in_order_however_much_it_is() -> None:
    """DuckDB reads a table of more than one group of rows by several threads."""
    left = polars.DataFrame({"id": [f"{at:06}" for at in range(200_000)], "x": "a"})
    right = left.with_columns(x=polars.lit("b"))
    unread = {"id": "integer", "x": "integer"}
    with reconcile(left, right, key="id") as found:
        assert found.rows["key"].is_sorted() and found.differences["key"].is_sorted()
        assert found.relation("rows").pl()["local_row"].is_sorted()
    with reconcile(left, right, key="id", types=unread) as found:
        assert found.unreadable["side"].to_list() == ["local"] * 200_000 + ["cloud"] * 200_000
