"""Reading one side: every cell as text, every row accounted for.

An unquoted empty CSV cell is null, a quoted one is ''. Nothing is guessed: ids keep their zeros,
``NA`` stays ``NA``, numbers stay as they are written.
"""

import csv
import gzip
import shutil
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import polars

from tallybook.errors import BadInput, IncompleteInput, TallybookError
from tallybook.ops import cached
from tallybook.ops.exports import jsons
from tallybook.ops.exports.jsons import Row
from tallybook.ops.exports.ledger import BadRow, Place
from tallybook.ops.exports.profile import Profile
from tallybook.ops.warehouse import Warehouse

Table = str | Path | polars.DataFrame | Warehouse

_GZIP = b"\x1f\x8b"
_PARQUET = b"PAR1"
_ZIP = b"PK\x03\x04"
_OLE = b"\xd0\xcf\x11\xe0"
_REJECTED = "select line, error_message, csv_line from rejected order by line"


@dataclass(slots=True)
class Side:
    """One side as read: the DuckDB table ``name`` with the text cells r0, r1, …; n, the number of
    the row from 1; and in_flight.

    ``types`` has the type of each column that the profile of this side gives one.
    """

    name: str
    source: str
    columns: list[str]
    rows: int
    bad: list[BadRow] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    lines: dict[int, int] = field(default_factory=dict)
    csv_file: tuple[Path, str] | None = None
    types: Mapping[str, str] = field(default_factory=dict)

    def cell(self, at: int) -> str:
        """SQL of the cell at a position in standard notation, which each type is told from:
        1.50 where the file has 1,50; null where it has a word for it. ``r<at>`` is what it has."""
        return f"r{at}"

    def place(self, row: int) -> Place:
        """Where a row begins in its file."""
        return Place(self.source, self.line(row))

    def line(self, row: int) -> int | None:
        """The line where a row begins, where its format has lines; the file is read anew for it."""
        if not self.lines and self.csv_file:
            rejected = {bad.line for bad in self.bad}
            self.lines.update(csv_lines(*self.csv_file, rejected))
        return self.lines.get(row)


def read(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    given: Table,
    aside: Path,
    profile: Profile | None = None,
) -> Side:
    """Read ``given`` into the table ``name``; ``aside`` is a folder for what must be unpacked.

    ``profile`` says how a file is to be read; without one its ending and first bytes do.
    """
    if isinstance(given, Warehouse):
        return _read_cache(connection, name, given)
    if isinstance(given, polars.DataFrame):
        return _from_frame(connection, name, "frame", _as_text(given))
    path = Path(given)
    if not path.is_file():
        found = "that is a folder" if path.is_dir() else "there is no such file"
        raise BadInput(f"cannot read {path}: {found}")
    try:
        side = _read_file(connection, name, path, aside)
    except OSError as error:
        raise TallybookError(f"cannot read {path}: {error}") from error
    if profile:
        side.types = {column: rule.type for column, rule in profile.rules.items()}
    return side


def _read_file(connection: duckdb.DuckDBPyConnection, name: str, path: Path, aside: Path) -> Side:
    plain = _unpacked(path, aside / name)
    with plain.open("rb") as file:
        head = file.read(4096)
    if not head:
        raise BadInput(f"{path} is empty")
    kind = path.name.lower().removesuffix(".gz")
    if head.startswith(_PARQUET):
        return _read_parquet(connection, name, path, plain)
    if wrong := _wrong_kind(head, kind):
        raise BadInput(f"{path} {wrong}")
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise BadInput(f"{path} is UTF-16; write it as UTF-8 first")
    if kind.endswith((".ndjson", ".jsonl")):
        return _read_objects(connection, name, path, jsons.read_lines(plain))
    if kind.endswith(".json"):
        return _read_json(connection, name, path, plain, head)
    return _read_csv(connection, name, path, plain, "\t" if kind.endswith(".tsv") else ",")


def _wrong_kind(head: bytes, kind: str) -> str:
    """What a file is that is none of the kinds read here, by its first bytes or its ending."""
    if kind.endswith((".parquet", ".pq")):
        return "is a damaged Parquet file: it does not begin with PAR1"
    if head.startswith((_ZIP, _OLE)) or kind.endswith((".xlsx", ".xls", ".ods")):
        damaged = "" if head.startswith((_ZIP, _OLE)) else "damaged "
        what = "workbook" if kind.endswith((".xlsx", ".xls", ".ods")) else "zip archive or workbook"
        return f"is a {damaged}{what}; save it as CSV first"
    return ""


def _unpacked(path: Path, target: Path) -> Path:
    """The file itself, or its unpacked copy where it is gzip, whatever its name and members."""
    with path.open("rb") as file:
        if file.read(2) != _GZIP:
            return path
    try:
        with gzip.open(path, "rb") as packed, target.open("wb") as plain:
            shutil.copyfileobj(packed, plain, 1 << 20)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise IncompleteInput(f"{path} is a damaged or cut archive: {error}") from error
    return target


def _read_cache(connection: duckdb.DuckDBPyConnection, name: str, warehouse: Warehouse) -> Side:
    """The cache as the log folds it: ``key``, and the fields of each value."""
    cache = cached.cache_as_of(warehouse)
    entries = [{"key": key} | jsons.row(_rewritten(jsons.parse(value)))
               for key, value in cache.select("key", "value").iter_rows()]  # fmt: skip
    if not entries:
        raise _empty(warehouse)
    columns = list(dict.fromkeys(column for entry in entries for column in entry))
    source = f"the cache of {warehouse.book}"
    return _from_frame(connection, name, source, _frame(columns, entries), cache["pending"])


def _empty(warehouse: Warehouse) -> TallybookError:
    """Nothing is cached: that says nothing about the other side, least of all where lines lack."""
    if "cache" in warehouse.silent:
        return BadInput(
            f"{warehouse.book}: {warehouse.silent['cache']}, so there is nothing to compare an "
            "export with; compare two files: tallybook reconcile EXPORT --local FILE"
        )
    words = f"the cache of {warehouse.book} is empty: there is nothing to compare"
    if notes := warehouse.notes:
        return IncompleteInput(f"{words}, and its log is incomplete: {notes[0]}")
    return BadInput(f"{words}; name another book, or a file with --local")


def _rewritten(value: object) -> object:
    """Numbers with the digits that Python gives them: DuckDB writes 1e-05 as 0.00001."""
    if isinstance(value, jsons.RawNumber) and any(mark in value for mark in ".eE"):
        return jsons.RawNumber(repr(float(value)))
    if isinstance(value, dict):
        return {name: _rewritten(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_rewritten(item) for item in value]
    return value


def _as_text(frame: polars.DataFrame) -> polars.DataFrame:
    try:
        return frame.select(polars.all().cast(polars.String))
    except polars.exceptions.PolarsError as error:
        raise BadInput(f"a column of the frame cannot be text: {error}") from error


def _read_json(
    connection: duckdb.DuckDBPyConnection, name: str, path: Path, plain: Path, head: bytes
) -> Side:
    """A JSON file is one array of objects, or else objects line by line."""
    if not head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"["):
        return _read_objects(connection, name, path, jsons.read_lines(plain))
    try:
        return _read_objects(connection, name, path, jsons.read_array(plain))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path} is no JSON array of objects: {error}") from error


def _read_objects(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    path: Path,
    objects: Iterable[tuple[int | None, Row | BadRow]],
) -> Side:
    rows: list[Row] = []
    bad: list[BadRow] = []
    lines: dict[int, int] = {}
    columns: dict[str, None] = {}
    for line, found in objects:
        if isinstance(found, BadRow):
            bad.append(found)
            continue
        rows.append(found)
        columns.update(dict.fromkeys(found))
        if line is not None:
            lines[len(rows)] = line
    if not columns:
        raise BadInput(f"{path} holds no JSON object")
    side = _from_frame(connection, name, str(path), _frame(list(columns), rows))
    side.bad, side.lines = bad, lines
    return side


def _frame(columns: list[str], rows: list[Row]) -> polars.DataFrame:
    cells = {column: [row.get(column) for row in rows] for column in columns}
    return polars.DataFrame(cells, schema=dict.fromkeys(columns, polars.String))


def _from_frame(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    source: str,
    frame: polars.DataFrame,
    flying: polars.Series | None = None,
) -> Side:
    columns = frame.columns
    frame = frame.rename({column: f"r{at}" for at, column in enumerate(columns)})
    pending = polars.lit(False) if flying is None else flying
    frame = frame.with_columns(in_flight=pending).with_row_index("n", offset=1)
    connection.register("given", frame)
    connection.execute(f"create table {name} as select * from given")  # noqa: S608 - our own name
    connection.unregister("given")
    return Side(name, source, columns, frame.height)


def _read_parquet(
    connection: duckdb.DuckDBPyConnection, name: str, path: Path, plain: Path
) -> Side:
    try:
        found = connection.sql(
            "select columns(*)::varchar from read_parquet($1)", params=[str(plain)]
        ).pl()
    except duckdb.Error as error:
        raise BadInput(f"{path} is no readable Parquet file: {error}") from error
    return _from_frame(connection, name, str(path), found)


def _read_csv(
    connection: duckdb.DuckDBPyConnection, name: str, path: Path, plain: Path, delimiter: str
) -> Side:
    columns, warnings = _header(path, plain, delimiter)
    cells = {f"r{at}": "VARCHAR" for at in range(len(columns))}
    given = {"file": str(plain), "columns": cells, "delimiter": delimiter}
    try:
        connection.execute(f"create table {name} as " + _CSV, given)
        rejected = connection.execute(_REJECTED).fetchall()
    except duckdb.Error as error:
        raise BadInput(f"{path} cannot be read as CSV: {str(error).splitlines()[0]}") from error
    finally:
        connection.execute("drop table if exists rejected; drop table if exists scanned")
    rows = connection.table(name).count("*").fetchall()[0][0]
    bad = [BadRow(line, reason, (text or "")[:200]) for line, reason, text in _first_of(rejected)]
    return Side(name, str(path), columns, rows, bad, warnings, csv_file=(plain, delimiter))


def _first_of(rejected: list[tuple[int, str, str]]) -> list[tuple[int, str, str]]:
    """One reason a line: a row with three cells too many is told three times."""
    first: dict[int, tuple[int, str, str]] = {}
    for line, reason, text in rejected:
        first.setdefault(line, (line, reason, text))
    return list(first.values())


_CSV = """
    select row_number() over () as n, false as in_flight, *
    from read_csv(
        $file, columns = $columns, delim = $delimiter, header = true, auto_detect = false,
        quote = '"', escape = '"', nullstr = '', allow_quoted_nulls = false,
        store_rejects = true, rejects_table = 'rejected', rejects_scan = 'scanned',
        rejects_limit = 0, max_line_size = 16777216, parallel = false
    )
"""


def _header(path: Path, plain: Path, delimiter: str) -> tuple[list[str], list[str]]:
    with plain.open(encoding="utf-8-sig", newline="") as file:
        try:
            names = next(csv.reader(file, delimiter=delimiter, strict=True), [])
        except (csv.Error, UnicodeDecodeError) as error:
            raise BadInput(f"{path} has no readable CSV header: {error}") from error
    named = [name or f"column {at}" for at, name in enumerate(names, start=1)]
    twice = sorted({name for name in named if named.count(name) > 1})
    if twice:
        raise BadInput(f"{path} names a column twice: {', '.join(twice)}")
    unnamed = [
        f"{path.name}: column {at} has no name" for at, name in enumerate(names, 1) if not name
    ]
    return named, unnamed


def csv_lines(path: Path, delimiter: str, bad: set[int | None]) -> dict[int, int]:
    """The line where each row begins, rows counted from 1 and without the ``bad`` ones."""
    lines: dict[int, int] = {}
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        reader = csv.reader(file, delimiter=delimiter)
        next(reader, None)
        begins = reader.line_num + 1
        for cells in reader:
            if cells and begins not in bad:
                lines[len(lines) + 1] = begins
            begins = reader.line_num + 1
    return lines
