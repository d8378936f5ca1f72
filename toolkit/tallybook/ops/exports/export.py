"""``ops.read_export``: an export as a typed relation, and the ledger of its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import duckdb
import polars

from tallybook.errors import BadInput, NoRoom
from tallybook.ops import memory
from tallybook.ops.exports import choosing, reading, suspicions
from tallybook.ops.exports.account import Reading
from tallybook.ops.exports.ledger import SHOWN, BadRow
from tallybook.ops.exports.places import Places
from tallybook.ops.exports.profile import Profile
from tallybook.ops.interrupts import interruptible

_UNREADABLE = {"file": polars.String, "line": polars.Int64, "offset": polars.Int64,
               "column": polars.String, "reason": polars.String, "text": polars.String}  # fmt: skip
_NO_MEMORY = "failed to allocate"


@dataclass(frozen=True, slots=True)
class Ledger:
    """What became of the rows: rows_in = rows + unreadable, always.

    ``unreadable`` has one row a row that is set apart: file, line, offset (of its unpacked text as
    UTF-8), column (null where the whole row cannot be read), reason, text. ``skipped`` counts lines
    that are no rows: blank ones, a header that stands again. ``files`` has one row a file.
    """

    rows: int
    unreadable: polars.DataFrame
    skipped: Mapping[str, int]
    files: polars.DataFrame
    layout: str
    warnings: tuple[str, ...]

    @property
    def rows_in(self) -> int:
        """How many rows the export has."""
        return self.rows + self.unreadable.height

    @property
    def complete(self) -> bool:
        """Whether every row could be read."""
        return self.unreadable.is_empty()


class Export:
    """An export that was read: a DuckDB in memory with the relation ``rows``, and its ledger."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, folder: TemporaryDirectory[str],
        found: Reading, ledger: Ledger,
    ) -> None:  # fmt: skip
        self._connection, self._folder = connection, folder
        self.ledger = ledger
        self.columns = found.target.names

    def relation(self) -> duckdb.DuckDBPyRelation:
        """The rows that could be read, in their order, typed; good until ``close``."""
        return self._connection.sql("from rows")

    def sql(self, query: str, **parameters: Any) -> duckdb.DuckDBPyRelation:
        """A query over the table ``rows``; values only as ``$name`` parameters."""
        return self._connection.sql(query, params=parameters or None)

    def pl(self) -> polars.DataFrame:
        """The rows as a Polars frame."""
        frame: polars.DataFrame = self.relation().pl()
        return frame

    def close(self) -> None:
        """Free the memory and the disk."""
        self._connection.close()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_export(
    path: str | Path,
    *,
    profile: str | Path | Profile | None = None,
    memory_limit: str | None = None,
) -> Export:
    """Read the export at ``path``: a file, a pattern, a folder of parts or a URL of a bucket.

    ``profile`` (a name, the path of a TOML file or a ``Profile``) says how it is read and of which
    types its columns are; without one every column is text, but those that the layout itself types.
    It takes no more than ``memory_limit`` (else that of the profile) and spills the rest into
    TMPDIR until it is closed. Raises BadInput for what is no such export, and IncompleteInput where
    a part of it is missing, cut or damaged.
    """
    how = choosing.load(profile) if isinstance(profile, str | Path) else profile or Profile()
    folder = TemporaryDirectory(prefix="tallybook-export-")
    connection = _connected(Path(folder.name), memory_limit or how.limits.memory)
    try:
        with interruptible(connection):
            found = reading.load(
                connection, "read", path, Path(folder.name) / "aside", how, typed=True
            )
            return Export(connection, folder, found, _ledger(connection, found, how))
    except BaseException as error:
        connection.close()
        folder.cleanup()
        if isinstance(error, duckdb.OutOfMemoryException) or _NO_MEMORY in str(error).lower():
            raise NoRoom(f"{path}: the memory of this reading is too small, or its disk is full; "
                         "raise memory in [limits] of the profile") from None  # fmt: skip
        raise


def _connected(folder: Path, limit: str) -> duckdb.DuckDBPyConnection:
    spill = folder / "spill"
    spill.mkdir()
    try:
        return memory.connect(spill, limit)
    except duckdb.Error as error:
        words = str(error).splitlines()[0]
        raise BadInput(f"memory {limit!r}: {words}; write it like 2GB or 800MB") from None


def _ledger(connection: duckdb.DuckDBPyConnection, found: Reading, profile: Profile) -> Ledger:
    if not found.target.columns:
        raise BadInput(f"{found.source} holds no row")
    found.target.show_typed("rows")
    warnings = [*found.warnings, *suspicions.told(connection, found, profile)]
    bad = [*found.bad, *_bad_cells(connection, found, profile)]
    rows = [(one.file, one.line, one.offset, one.column, one.reason, one.text) for one in bad]
    ((good,),) = connection.execute("select count(*) from rows").fetchall()
    return Ledger(
        rows=good,
        unreadable=polars.DataFrame(rows, schema=_UNREADABLE, orient="row"),
        skipped=dict(found.skipped),
        files=_files(found),
        layout=found.layout,
        warnings=tuple(warnings),
    )


def _files(found: Reading) -> polars.DataFrame:
    rows = [(one.name, one.format, one.encoding or None, one.rows + one.bad) for one in found.files]
    schema = {"file": polars.String, "format": polars.String, "encoding": polars.String,
              "rows_in": polars.Int64}  # fmt: skip
    return polars.DataFrame(rows, schema=schema, orient="row")


def _bad_cells(
    connection: duckdb.DuckDBPyConnection, found: Reading, profile: Profile
) -> list[BadRow]:
    """One a row with a cell that has no value of its type: its first such cell."""
    places = Places(connection, found, profile.limits)
    bad = []
    for row, at, word in found.target.bad_cells():
        place, column = places.of(row), found.target.columns[at]
        reason = suspicions.unfit(word, found.target.rule(at))
        bad.append(BadRow(place.line, reason, word[:SHOWN], place.file, place.offset, column))
    return bad
