"""An imported book as the warehouse reads it: what it says of itself, and where its events lie."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb

from tallybook.errors import BadInput, IncompleteInput
from tallybook.layout import Layout
from tallybook.ops import statements
from tallybook.ops.imports.writing import VERSION, Record

# Each count of an import that is worth a word where it is not zero.
COUNTED = {
    "never_started": "jobs never started",
    "open": "jobs open",
    "negative_waits": "starts before their submit",
    "negative_runs": "ends before their start",
    "ends_without_start": "ends without start",
    "no_submit": "jobs without a submit",
    "no_end_time": "ended by their word but not by a time, left open",
    "contradicted": "times that the status word contradicts, left out",
    "repeated_submits": "repeated submits left out",
    "repeated_starts": "repeated starts left out",
    "repeated_ends": "repeated ends left out",
    "out_of_order": "rows out of order",
}
Import = tuple[str, Record, str]
"""A node, what its import says of itself, and the Parquet file of its events."""

_NEEDED = {"v", "node_id", "profile", "events_file", "files", "counts", "silent"}


def read(place: Layout, *, in_place: bool = True) -> Record | None:
    """What ``log/imported.json`` says; None for a book of a queue.

    Raises BadInput where it is damaged or of a newer version, IncompleteInput where the events
    that it names are not there.
    """
    try:
        told = json.loads(place.imported.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        raise BadInput(f"{place.imported}: not readable; import the log anew") from None
    if not isinstance(told, dict) or not told.keys() >= _NEEDED or not _has_tables(told):
        raise BadInput(f"{place.imported}: not readable; import the log anew")
    if told["v"] != VERSION:
        raise BadInput(
            f"{place.imported}: v is {told['v']!r}; this version reads v {VERSION}: "
            "import the log anew, or update tallybook"
        )
    given: dict[str, Any] = {name: told.get(name) for name in Record.__slots__}
    record = Record(**given)
    if in_place and not (place.log / record.events_file).is_file():
        raise IncompleteInput(f"{place.log / record.events_file} is not there: import the log anew")
    return record


def _has_tables(told: Mapping[str, Any]) -> bool:
    return isinstance(told["counts"], dict) and isinstance(told["silent"], dict)


def attach(connection: duckdb.DuckDBPyConnection, found: Sequence[Import], whole: bool) -> None:
    """Make the view `imported_rows`: the events of imported logs with node and writer.

    In a fleet (``whole`` is false) job ids begin with their node: those of two logs may be equal.
    Raises IncompleteInput where a file cannot be read.
    """
    if not found:
        return
    _note(connection, found)
    for _, _, file in found:
        _require_parquet(connection, file)
    connection.execute("set variable import_files = ?", [[file for _, _, file in found]])
    name = "imported_rows" if whole else "imported_rows_of_nodes"
    connection.execute("create or replace macro imported_rows() as table " + statements.model(name))


def attach_remote(connection: duckdb.DuckDBPyConnection, found: Sequence[Import]) -> None:
    """As ``attach``, of `remote_rows`, an Arrow dataset with a column ``node``."""
    _note(connection, found)
    model = statements.model("imported_rows_remote")
    connection.execute("create or replace macro imported_rows() as table " + model)


def _note(connection: duckdb.DuckDBPyConnection, found: Sequence[Import]) -> None:
    connection.execute("create table imports (file varchar, node_id varchar, writer varchar)")
    rows = [[file, node, f"imported:{record.profile}"] for node, record, file in found]
    connection.executemany("insert into imports values (?, ?, ?)", rows)


def _require_parquet(connection: duckdb.DuckDBPyConnection, file: str) -> None:
    try:
        connection.read_parquet(file)
    except duckdb.Error as error:
        told = str(error).splitlines()[0]
        raise IncompleteInput(f"{file} cannot be read: {told}; import the log anew") from error


def unreadable(place: Layout) -> list[dict[str, Any]]:
    """The rows that the import could not read: file, line, reason, text."""
    try:
        lines = place.unreadable.read_text("utf-8").split("\n")
        return [json.loads(line) | {"byte_offset": None} for line in lines if line]
    except FileNotFoundError:
        return []
    except ValueError:
        raise BadInput(f"{place.unreadable}: not readable; import the log anew") from None


def notes(bad: Sequence[Mapping[str, Any]]) -> list[str]:
    """What makes every answer incomplete, as one sentence; none where all rows were read."""
    if not bad:
        return []
    first = bad[0]
    place = first["file"] if first["line"] is None else f"{first['file']} line {first['line']}"
    rows = "1 row" if len(bad) == 1 else f"{len(bad):,} rows"
    return [f"{rows} could not be imported, the first is {place}: {first['reason']}; "
            "unreadable.ndjson has all"]  # fmt: skip


def silent(record: Record) -> Mapping[str, str]:
    """What an import says of itself that it cannot tell, and what no import can."""
    return {"metrics": "an imported log has no metrics of workers", **record.silent}


def warnings(record: Record) -> list[str]:
    """What the log cannot say, and what it says twice, backwards or not at all."""
    counts = [f"{record.counts[name]:,} {words}" for name, words in COUNTED.items()
              if record.counts.get(name)]  # fmt: skip
    told = [f"imported with the profile {record.profile}: {', '.join(counts)}"] if counts else []
    return [*record.silent.values(), *told]
