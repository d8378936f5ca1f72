"""Sides that are tables in memory: Polars, Arrow, DuckDB; and what the result is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars
import pytest

from tallybook.errors import BadInput
from tallybook.ops.reconciling import reconcile

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
    batches = duckdb.connect().from_arrow(right.to_arrow())
    assert reconcile(left, batches, key="id").rows.row(0) == ("differs", "4321", 4322, 4322)


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
