"""Where a row stands in its file: kept where it was read row by row, else the file is read again,
once for all rows that are asked for in their order."""

from collections.abc import Iterator

import duckdb

from tallybook.ops.exports import delimited
from tallybook.ops.exports.account import FileRead, Reading
from tallybook.ops.exports.ledger import Place
from tallybook.ops.exports.profile import Limits


class Places:
    """The places of the rows of a reading."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, reading: Reading, limits: Limits
    ) -> None:
        self._connection, self._reading, self._limits = connection, reading, limits
        self._file: FileRead | None = None
        self._rows: Iterator[tuple[int, Place]] = iter(())

    def of(self, row: int) -> Place:
        """The place of a row of the target, which count from 1."""
        file = next(file for file in reversed(self._reading.files) if file.before < row)
        statement = f"select line, byte from {self._reading.target.name} where rowid = ?"  # noqa: S608
        kept = self._connection.execute(statement, [row - 1]).fetchall()
        line, offset = kept[0] if kept else (None, None)
        if line is not None or file.found is None or file.text is None:
            return Place(file.name, line, offset)
        return self._again(file, row - file.before)

    def _again(self, file: FileRead, number: int) -> Place:
        for _ in range(2):
            if self._file is file:
                for at, place in self._rows:
                    if at == number:
                        return place
                    if at > number:
                        break
            self._file, self._rows = file, self._all(file)
        return Place(file.name)

    def _all(self, file: FileRead) -> Iterator[tuple[int, Place]]:
        if file.text is None or file.found is None:
            return
        bad = {one.offset for one in self._reading.bad if one.file == file.name}
        rows = delimited.rows_read(file.text.path, file.found, self._limits, bad)
        for number, row in enumerate(rows, start=1):
            yield number, Place(file.name, row.line, row.offset)
