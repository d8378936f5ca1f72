"""Whole rows of an export by their numbers: what a repair takes over."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import polars

from tallybook.ops import statements
from tallybook.ops.interrupts import interruptible
from tallybook.ops.reconciling import reading
from tallybook.ops.reconciling.reading import Table

Cells = dict[str, str | None]


def of_export(export: Table, numbers: Iterable[int]) -> dict[int, Cells]:
    """{number of the row: {column: text}} of those rows of an export, counted from 1."""
    with (
        interruptible(),
        duckdb.connect() as connection,
        TemporaryDirectory(prefix="tallybook-reconcile-") as aside,
    ):
        connection.execute("load icu; set TimeZone = 'UTC'")
        connection.execute(statements.model("typing_cells"))
        side = reading.read(connection, "cloud", export, Path(aside))
        connection.register(
            "wanted", polars.DataFrame({"n": sorted(numbers)}, schema={"n": polars.Int64})
        )
        cells = ", ".join(side.cell(at) for at in range(len(side.columns)))
        found = connection.execute(f"select n, {cells} from cloud semi join wanted using (n)")  # noqa: S608 - positions alone
        return dict(_named(side.columns, found.fetchall()))


def _named(columns: list[str], rows: list[tuple[object, ...]]) -> Iterator[tuple[int, Cells]]:
    for number, *cells in rows:
        texts = [None if cell is None else str(cell) for cell in cells]
        yield int(str(number)), dict(zip(columns, texts, strict=True))
