"""The text of a log as rows: how DuckDB reads it, what it refuses, and where each row stands."""

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import duckdb

from tallybook.ops.imports.profile import Reading

SHOWN = 200
_HEAD = 1 << 16
_NOTHING = "\x01"


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that is in no job: where it stands, why it cannot be read, how it begins."""

    file: str
    line: int | None
    reason: str
    text: str

    @property
    def place(self) -> str:
        """File and line, as far as they are known."""
        return self.file if self.line is None else f"{self.file} line {self.line}"


@dataclass(slots=True)
class Text:
    """A file ready for the reader: ``plain`` is text, ``columns`` its columns or None (lines)."""

    source: str
    plain: Path
    reading: Reading
    columns: list[str] | None = None
    bad: list[BadRow] = field(default_factory=list)
    lines: list[int] | None = None
    head: str = ""

    def relation(self) -> tuple[str, dict[str, Any]]:
        """The reader's call and its parameters; columns are c0, c1, … or ``line``."""
        is_csv = self.columns is not None
        names = [f"c{at}" for at in range(len(self.columns or ()))] or ["line"]
        given = {
            "file": str(self.plain),
            "columns": dict.fromkeys(names, "VARCHAR"),
            "delimiter": self.reading.delimiter if is_csv else _NOTHING,
            "quote": (self.reading.quote or "") if is_csv else "",
            "header": is_csv and self.reading.header,
            "comment": self.reading.comment,
        }
        return _READ if is_csv else _READ.replace("comment = $comment", "comment = ''"), given

    def first_lines(self) -> list[str]:
        """How the text begins, by lines; the last one may be cut."""
        with self.plain.open("rb") as file:
            return file.read(_HEAD).decode("utf-8-sig", "replace").split("\n")

    def line_of(self, rows: Iterable[int]) -> dict[int, int]:
        """The line where each of these rows begins; rows count from 0 as the reader gives them."""
        wanted = set(rows)
        if not wanted:
            return {}
        begins = self._lines()
        last = max(wanted)
        return {at: line for at, line in zip(range(last + 1), begins, strict=False) if at in wanted}

    def line_in_file(self, line: int) -> int:
        """The line of the file that a line of ``plain`` was made of."""
        if self.lines is None:
            return line
        return self.lines[line - 1 - int(self.columns is not None and self.reading.header)]

    def _lines(self) -> Iterator[int]:
        rejected = {bad.line for bad in self.bad}
        if self.lines is not None:
            return (line for line in self.lines if line not in rejected)
        if self.columns is None:
            return _filled_lines(self.plain, self.reading.comment, rejected)
        return csv_lines(self.plain, self.reading, rejected)


_READ = """read_csv(
    $file, columns = $columns, delim = $delimiter, quote = $quote, escape = $quote,
    header = $header, comment = $comment, auto_detect = false, nullstr = '',
    allow_quoted_nulls = false, store_rejects = true, rejects_table = 'rejected',
    rejects_scan = 'scanned', rejects_limit = 0, max_line_size = 16777216
)"""
_REJECTED = "select line, error_message, csv_line from rejected order by line, column_idx"


def csv_lines(path: Path, reading: Reading, rejected: set[int | None]) -> Iterator[int]:
    """The line where each row begins, without header, remarks, blank and rejected lines."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        reader = csv.reader(file, delimiter=reading.delimiter, quotechar=reading.quote)
        headers, begins = int(reading.header), 1
        for cells in reader:
            is_row = bool(cells) and not is_remark(cells[0], reading.comment)
            if is_row and headers:
                headers -= 1
            elif is_row and begins not in rejected:
                yield begins
            begins = reader.line_num + 1


def _filled_lines(path: Path, comment: str, rejected: set[int | None]) -> Iterator[int]:
    with path.open(encoding="utf-8-sig", errors="replace", newline="\n") as file:
        for number, line in enumerate(file, 1):
            if line.strip() and number not in rejected and not is_remark(line, comment):
                yield number


def is_remark(text: str, comment: str) -> bool:
    """Whether a line begins as remarks do."""
    return bool(comment) and text.startswith(comment)


def with_one_line_end(text: Text, aside: Path) -> Text:
    """The same text where every line ends alike: DuckDB reads no file with both kinds."""
    target = aside / "one-line-end"
    with text.plain.open("rb") as source, target.open("wb") as file:
        for line in source:
            file.write(line.removesuffix(b"\n").removesuffix(b"\r") + b"\n")
    return replace(text, plain=target)


def rejected(connection: duckdb.DuckDBPyConnection, text: Text) -> list[BadRow]:
    """What the reader refused of a text, one reason a line; forgets it."""
    try:
        found = connection.execute(_REJECTED).fetchall()
    finally:
        connection.execute("drop table if exists rejected; drop table if exists scanned")
    first: dict[int, BadRow] = {}
    for line, reason, words in found:
        place = text.line_in_file(line)
        first.setdefault(line, BadRow(text.source, place, _short(reason), (words or "")[:SHOWN]))
    return list(first.values())


def _short(reason: str) -> str:
    """The reader's reason without its advice."""
    return " ".join(reason.split("\n")[0].split())[:SHOWN]
