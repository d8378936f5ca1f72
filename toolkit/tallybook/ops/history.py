"""What the segments of a log make together: which lines are doubled, and what was pruned."""

from collections.abc import Mapping, Sequence

import duckdb

from tallybook.ops import statements
from tallybook.ops.openings import Opening

_COLUMNS = ("segment", "writer", "ordinal", "first_at", "node_id", "host", "boot_id", "versions",
            "previous_writer", "previous_seq")  # fmt: skip


def name(connection: duckdb.DuckDBPyConnection, openings: Sequence[Opening]) -> None:
    """Make the table `openings`, and the types of the columns that it fills."""
    connection.execute(statements.model("openings"))
    fill(
        connection, "openings", [[getattr(one, column) for column in _COLUMNS] for one in openings]
    )
    connection.execute(statements.query("create_names"))


def arrange(connection: duckdb.DuckDBPyConnection) -> int:
    """Make the table `segments` and drop doubled lines; how many those were."""
    _make_segments(connection)
    writers = connection.execute(statements.query("doubled_writers")).fetchall()
    if not writers:
        return 0
    named = [[writer for (writer,) in writers]]
    gone = connection.execute(statements.query("drop_doubled"), named).fetchall()
    _make_segments(connection)
    return len(gone)


def note_pruned(connection: duckdb.DuckDBPyConnection, ends: Mapping[str, int]) -> None:
    """Make the table `pruned`: up to where the lines of a writer were removed on purpose."""
    connection.execute("create table pruned (short_name varchar, last_seq bigint)")
    fill(connection, "pruned", [[name, seq] for name, seq in ends.items()])


def fill(connection: duckdb.DuckDBPyConnection, table: str, rows: list[list[object]]) -> None:
    """Add rows to one of our small tables."""
    if rows:
        marks = ", ".join("?" * len(rows[0]))
        connection.executemany(f"insert into {table} values ({marks})", rows)  # noqa: S608 - ours


def _make_segments(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("create or replace table segments as " + statements.model("segments"))
