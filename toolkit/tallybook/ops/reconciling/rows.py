"""Whole rows of an export by their numbers: what a repair takes over."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars

from tallybook.ops import memory
from tallybook.ops.exports.profile import Profile
from tallybook.ops.interrupts import interruptible
from tallybook.ops.reconciling import reading

Cells = dict[str, str | None]


def of_export(
    export: str | Path, numbers: Iterable[int], profile: Profile | None = None
) -> dict[int, Cells]:
    """{number of the row: {column: text}} of those rows of an export, counted from 1."""
    wanted = polars.DataFrame({"n": sorted(numbers)}, schema={"n": polars.Int64})
    with (
        TemporaryDirectory(prefix="tallybook-reconcile-") as aside,
        memory.connect(Path(aside)) as connection,
        interruptible(connection),
    ):
        side = reading.read(connection, "cloud", export, Path(aside), profile)
        connection.register("wanted", wanted)
        cells = ", ".join(side.cell(at) for at in range(len(side.columns)))
        asked = f"select n, {cells} from cloud semi join wanted using (n)"  # noqa: S608 - positions
        return dict(_named(side.columns, connection.execute(asked).fetchall()))


def _named(columns: list[str], rows: list[tuple[Any, ...]]) -> Iterator[tuple[int, Cells]]:
    for number, *cells in rows:
        texts = [None if cell is None else str(cell) for cell in cells]
        yield int(number), dict(zip(columns, texts, strict=True))
