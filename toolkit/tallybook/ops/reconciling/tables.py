"""Sides that are tables in memory already: Polars, Arrow and DuckDB, each cell as DuckDB writes it.

So a column reads the same from any of them and from a Parquet file: 1.50, 2026-11-30, true.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import TypeAlias

import duckdb
import polars
import pyarrow

from tallybook.errors import BadInput
from tallybook.ops.reconciling.reading import Side

InMemory: TypeAlias = polars.DataFrame | polars.LazyFrame | pyarrow.Table | duckdb.DuckDBPyRelation


def read(connection: duckdb.DuckDBPyConnection, name: str, given: InMemory) -> Side:
    """Make ``given`` the table ``name``. Raises BadInput where two columns bear one name."""
    reader = _batches(given)
    columns = [field.name or f"column {at}" for at, field in enumerate(reader.schema, start=1)]
    twice = sorted({one for one in columns if columns.count(one) > 1})
    if twice:
        raise BadInput(f"the {name} table names a column twice: {', '.join(twice)}")
    if not columns:
        raise BadInput(f"the {name} table has no column")
    connection.register("given", _numbered(reader, len(columns)))
    cells = ", ".join(f"cast(r{at} as varchar) as r{at}" for at in range(len(columns)))
    try:
        connection.execute(f"create table {name}_rows as select n, {cells} from given")  # noqa: S608 - positions
        connection.execute(f"create view {name} as from {name}_rows")
    finally:
        connection.unregister("given")
    rows = connection.table(name).count("*").fetchall()[0][0]
    return Side(name, f"the {name} table", columns, rows)


def _batches(given: InMemory) -> pyarrow.RecordBatchReader:
    if isinstance(given, duckdb.DuckDBPyRelation):
        return given.to_arrow_reader()
    if isinstance(given, polars.LazyFrame):
        given = given.collect()
    if isinstance(given, pyarrow.Table):
        return given.to_reader()
    try:
        return given.to_arrow().to_reader()
    except (polars.exceptions.PolarsError, pyarrow.ArrowInvalid) as error:
        raise BadInput(f"a column of the frame cannot be text: {error}") from error


def _numbered(reader: pyarrow.RecordBatchReader, width: int) -> pyarrow.RecordBatchReader:
    """The batches with columns by position, and each row with its number from 1."""
    names = [f"r{at}" for at in range(width)]
    fields = [field.with_name(name) for field, name in zip(reader.schema, names, strict=True)]
    schema = pyarrow.schema([*fields, pyarrow.field("n", pyarrow.int64())])
    return pyarrow.RecordBatchReader.from_batches(schema, _with_numbers(reader, schema))


def _with_numbers(
    reader: pyarrow.RecordBatchReader, schema: pyarrow.Schema
) -> Iterator[pyarrow.RecordBatch]:
    numbers = count(1)
    for batch in reader:
        first = next(numbers)
        numbers = count(first + batch.num_rows)
        yield pyarrow.record_batch(_columns(batch, first), schema=schema)


def _columns(batch: pyarrow.RecordBatch, first: int) -> Sequence[pyarrow.Array]:
    return [*batch.columns, pyarrow.array(range(first, first + batch.num_rows), pyarrow.int64())]
