"""A Parquet file as a side where it lies: nothing is copied, so it may be of any size."""

# ruff: noqa: S608 - put together from positions alone; the path stands in a variable
from __future__ import annotations

from pathlib import Path
from typing import Final, TypeGuard

import duckdb

from tallybook.errors import BadInput
from tallybook.ops.exports import kinds, layouts, manifests, parts
from tallybook.ops.exports.parts import Stamped
from tallybook.ops.reconciling.reading import Side

_NUMBER: Final = "file_row_number"


def stands_alone(given: object) -> TypeGuard[str | Path]:
    """Whether ``given`` is one Parquet file that no manifest speaks of. Raises IncompleteInput
    where a checksum beside it does not hold, or its name says that other parts are missing."""
    if not isinstance(given, str | Path) or "://" in str(given) or not Path(given).is_file():
        return False
    with Path(given).open("rb") as file:
        if file.read(len(kinds.PARQUET)) != kinds.PARQUET:
            return False
    found = parts.find(given, Path(given).parent)
    if any(layout.listed(found) is not None for layout in layouts.ALL):
        return False
    manifests.require_sums(found)
    manifests.require_numbers(found)
    return True


def read(connection: duckdb.DuckDBPyConnection, name: str, given: str | Path) -> Side:
    """Make the file the view ``name``. Raises BadInput where it is damaged."""
    connection.execute(f"set variable {name}_path = $1", [str(given)])
    source = f"read_parquet(getvariable('{name}_path'), file_row_number = true)"
    try:
        found = connection.sql(f"select * exclude ({_NUMBER}) from {source} limit 0")
        width = len(found.columns)
        cells = ", ".join(f"cast(c{at} as varchar) as r{at}" for at in range(width))
        named = ", ".join([*(f"c{at}" for at in range(width)), "place"])
        connection.execute(
            f"create view {name} as select place + 1 as n, {cells} from {source} as given({named})"
        )
        (rows,) = connection.execute(f"select count(*) from {name}").fetchall()
    except duckdb.Error as error:
        words = str(error).splitlines()[0]
        raise BadInput(f"{given} is no readable Parquet file: {words}") from error
    stamped = Stamped.of(Path(given))
    return Side(name, str(given), list(found.columns), rows[0], stamped=stamped)
