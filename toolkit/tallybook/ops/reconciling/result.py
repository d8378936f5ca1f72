"""What a reconciliation found."""

from dataclasses import dataclass
from typing import Any

import polars

from tallybook.errors import BadInput

SIDES = ("local", "cloud")
ONE_SIDED = ("duplicate", "null_key", "unreadable", "in_flight")
STATUSES = (
    "match",
    "differs",
    "only_local",
    "only_cloud",
    *(f"{status}_{side}" for status in ONE_SIDED for side in SIDES),
)


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """The two sides compared; ``statuses`` counts rows, and both sums hold.

    ``differences`` has one row a changed cell: key, column, local, cloud.
    ``rows`` has one row a key (or a row without one) that is no match: status, key, local_row,
    cloud_row (numbers of the rows in their files, from 1).
    ``unreadable`` has one row a bad row or cell: side, file, line, column, reason, text.
    """

    key: tuple[str, ...]
    rows_local: int
    rows_cloud: int
    statuses: dict[str, int]
    changed_cells_by_column: dict[str, int]
    columns_only_local: tuple[str, ...]
    columns_only_cloud: tuple[str, ...]
    warnings: tuple[str, ...]
    differences: polars.DataFrame
    rows: polars.DataFrame
    unreadable: polars.DataFrame

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
