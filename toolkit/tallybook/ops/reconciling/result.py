"""What a reconciliation found."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Self

import duckdb
import polars

from tallybook.errors import BadInput
from tallybook.ops.reconciling.room import Room

SIDES: Final = ("local", "cloud")
ONE_SIDED: Final = ("duplicate", "null_key", "unreadable", "in_flight")
STATUSES: Final = (
    "match",
    "differs",
    "only_local",
    "only_cloud",
    *(f"{status}_{side}" for status in ONE_SIDED for side in SIDES),
)
RELATIONS: Final = ("differences", "rows", "unreadable")


@dataclass(frozen=True)
class Reconciliation:
    """The two sides compared; ``statuses`` counts rows, and both sums hold.

    ``apart`` says in words why nothing was comparable: no key in common, or a side without rows.
    ``tolerated`` pairs match only by a tolerance. Its relations, which any SQL may ask:

    - ``differences``, one row a changed cell: key, column, local, cloud;
    - ``rows``, one row a key (or a row without one) that is no match: status, key, local_row,
      cloud_row (numbers of the rows in their files, from 1);
    - ``unreadable``, one row a bad row or cell: side, file, line, column, reason, text.

    They live in a DuckDB of the reconciliation until it is closed or dropped.
    """

    key: tuple[str, ...]
    source_local: str
    source_cloud: str
    rows_local: int
    rows_cloud: int
    statuses: dict[str, int]
    changed_cells_by_column: dict[str, int]
    columns_only_local: tuple[str, ...]
    columns_only_cloud: tuple[str, ...]
    warnings: tuple[str, ...]
    apart: str
    tolerated: int
    room: Room = field(repr=False)

    def relation(self, name: str) -> duckdb.DuckDBPyRelation:
        """The relation ``differences``, ``rows`` or ``unreadable``; nothing is read yet."""
        if name not in RELATIONS:
            raise BadInput(f"no relation {name!r}; choose one of {', '.join(RELATIONS)}")
        return self.room.connection.table(name)

    def sql(self, query: str) -> duckdb.DuckDBPyRelation:
        """Any query over the three relations."""
        return self.room.connection.sql(query)

    @cached_property
    def differences(self) -> polars.DataFrame:
        """One row a changed cell: key, column, local, cloud, by key in byte order."""
        return self.room.frame("from differences")

    @cached_property
    def rows(self) -> polars.DataFrame:
        """One row a row that is no match: status, key, local_row, cloud_row."""
        return self.room.frame("from rows")

    @cached_property
    def unreadable(self) -> polars.DataFrame:
        """One row a bad row or cell: side, file, line, column, reason, text."""
        return self.room.frame("from unreadable")

    @property
    def counted(self) -> polars.DataFrame:
        """One row a status with rows: status, rows; above them the rows of each side."""
        sides = [("rows local", self.rows_local), ("rows cloud", self.rows_cloud)]
        found = [(name.replace("_", " "), rows) for name, rows in self.statuses.items() if rows]
        schema = {"status": polars.String, "rows": polars.Int64}
        return polars.DataFrame([*sides, *found], schema=schema, orient="row")

    @property
    def changed_cells(self) -> int:
        """How many cells differ in the rows that differ."""
        return sum(self.changed_cells_by_column.values())

    @property
    def clean(self) -> bool:
        """Whether every row of both sides matches."""
        return self.statuses["match"] == self.rows_local == self.rows_cloud

    @property
    def complete(self) -> bool:
        """Whether every row of both sides could be read."""
        return not (self.statuses["unreadable_local"] or self.statuses["unreadable_cloud"])

    def keys(self, status: str) -> list[str]:
        """The keys with ``status``, sorted; of several columns as a JSON list. No matches."""
        if status not in STATUSES or status == "match":
            known = ", ".join(STATUSES[1:])
            raise BadInput(f"no keys are kept for status {status!r}; choose one of {known}")
        found = self.rows.filter(polars.col("status") == status)["key"]
        return found.drop_nulls().unique().sort().to_list()

    def as_json(self) -> dict[str, Any]:
        """What ``tallybook reconcile --json`` prints."""
        return {
            "rows_local": self.rows_local,
            "rows_cloud": self.rows_cloud,
            "statuses": self.statuses,
            "changed_cells": self.changed_cells,
            "changed_cells_by_column": self.changed_cells_by_column,
            "columns_only_local": list(self.columns_only_local),
            "columns_only_cloud": list(self.columns_only_cloud),
            "warnings": list(self.warnings),
        }

    def write(self, folder: str | Path, kind: str = "csv") -> list[Path]:
        """Write summary, relations and a page into ``folder``: csv, parquet or ndjson."""
        from tallybook.ops.reconciling import writing

        return writing.write(self, Path(folder), kind)

    def close(self) -> None:
        """Drop its relations and what was set aside for them."""
        self.room.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
