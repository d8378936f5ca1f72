"""From the place of an export to a target full of rows, each row of it or in the ledger."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path

import duckdb

from tallybook.errors import BadInput, IncompleteInput, TallybookError
from tallybook.ops.exports import (
    copied,
    delimited,
    dialects,
    jsons,
    kinds,
    manifests,
    parts,
    tables,
    texts,
)
from tallybook.ops.exports.layout import Head, Layout, Listed
from tallybook.ops.exports.layouts import ALL, BY_NAME
from tallybook.ops.exports.ledger import BadRow
from tallybook.ops.exports.parts import Part
from tallybook.ops.exports.profile import Dialect, Profile, Rule
from tallybook.ops.exports.target import Target
from tallybook.ops.exports.texts import Text
from tallybook.ops.exports.unpacking import Unpacker

FORMATS = ("csv", "ndjson", "json", "copy", "parquet", "orc", "xlsx")
_SPARSE = ("ndjson", "json")
_HEAD = 1 << 16
_ORDER = "preserve_insertion_order"


@dataclass(slots=True)
class FileRead:
    """A file of which rows were read: how many stand before them in the target, and how to find
    the line of one again where it was not kept."""

    name: str
    before: int
    rows: int = 0
    bad: int = 0
    format: str = ""
    encoding: str = ""
    text: Text | None = None
    found: dialects.Found | None = None


@dataclass(slots=True)
class Reading:
    """An export as read into ``target``; ``bad`` rows are not in it, ``skipped`` lines no rows."""

    source: str
    target: Target
    rules: Mapping[str, Rule]
    layout: str = ""
    files: list[FileRead] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """How many rows are in the target."""
        return self.target.rows


def load(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    given: str | Path,
    aside: Path,
    profile: Profile | None = None,
    *,
    typed: bool = False,
) -> Reading:
    """Read the export at ``given`` into the table ``name``; ``aside`` takes what must be unpacked.

    Raises BadInput for what is no such export, IncompleteInput where a part of it is missing, cut
    or damaged.
    """
    try:
        with _in_order(connection):
            return _Loader(connection, name, given, aside, profile or Profile(), typed=typed).load()
    except OSError as error:
        raise TallybookError(f"cannot read {given}: {error.strerror or error}") from error


@contextmanager
def _in_order(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """While rows are read, they keep the order that they have in their file."""
    ((kept,),) = connection.execute("select current_setting($1)", [_ORDER]).fetchall()
    connection.execute(f"set {_ORDER} = true")
    try:
        yield
    finally:
        connection.execute(f"set {_ORDER} = {'true' if kept else 'false'}")


class _Loader:
    def __init__(
        self, connection: duckdb.DuckDBPyConnection, name: str, given: str | Path, aside: Path,
        profile: Profile, *, typed: bool,
    ) -> None:  # fmt: skip
        self._connection, self._aside, self._profile = connection, aside, profile
        self._found = parts.find(given, aside)
        self._layout, self._listed = self._recognised()
        rules = {**self._listed.rules, **profile.rules}
        self._target = Target(connection, name, rules, profile.every, typed=typed)
        self._reading = Reading(self._found.source, self._target, rules)
        self._unpacker = Unpacker(aside, profile.limits)
        self._files = 0

    def _recognised(self) -> tuple[Layout | None, Listed]:
        """The native layout by its manifest, and the files that this lists."""
        pinned = self._profile.layout
        if pinned and pinned not in BY_NAME and pinned not in FORMATS:
            known = ", ".join((*FORMATS, *BY_NAME))
            raise BadInput(f"there is no layout {pinned!r}; there are {known}")
        for layout in ALL if pinned not in FORMATS else ():
            listed = layout.listed(self._found)
            if listed is not None:
                if pinned not in ("", layout.name):
                    raise BadInput(f"{self._found.source} has the layout {layout.name}, "
                                   f"and the profile is for {pinned}")  # fmt: skip
                return layout, listed
        manifests.require_sums(self._found)
        manifests.require_numbers(self._found)
        return BY_NAME.get(pinned), Listed(self._found.parts)

    def load(self) -> Reading:
        reading = self._reading
        if self._listed.columns:
            self._target.need(self._listed.columns)
        for part in self._listed.parts:
            before = self._target.rows + len(reading.bad)
            for file in self._unpacker.unpacked(part):
                self._take(file)
            self._require_rows(part, self._target.rows + len(reading.bad) - before)
        reading.layout = self._layout.name if self._layout else reading.files[0].format
        self._require_pinned_columns()
        self._require_known_rules()
        return reading

    def _require_rows(self, part: Part, rows: int) -> None:
        expected = self._listed.rows.get(part.name, rows)
        if rows != expected:
            raise IncompleteInput(
                f"{part.name} is cut or another file: it has {rows:,} rows, and its manifest says "
                f"{expected:,}"
            )

    def _take(self, part: Part) -> None:
        """The rows of one unpacked file."""
        head = _head(part)
        if what := kinds.foreign(head, part.path):
            raise BadInput(f"{part.name} {what}")
        file = FileRead(part.name, self._target.rows)
        bad = len(self._reading.bad)
        columns = len(self._target.columns)
        self._read(part, head, file)
        file.rows, file.bad = self._target.rows - file.before, len(self._reading.bad) - bad
        self._require_one_export(file, columns)
        self._reading.files.append(file)

    def _read(self, part: Part, head: bytes, file: FileRead) -> None:
        if head.startswith(kinds.PARQUET):
            file.format = "parquet"
            tables.take_parquet(self._connection, part, self._target)
        elif head.startswith(kinds.ORC):
            file.format = "orc"
            tables.take_orc(part, self._target)
        elif head.startswith(kinds.ZIP):
            file.format = "xlsx"
            dialect = self._profile.dialect
            notes = tables.take_workbook(part, dialect.sheet, dialect.header, self._target)
            self._reading.warnings += notes
        elif what := _damaged(part):
            raise BadInput(f"{part.name} is a damaged {what}: it does not begin as one")
        else:
            self._read_text(part, file)

    def _read_text(self, part: Part, file: FileRead) -> None:
        self._files += 1
        aside = self._aside / f"utf-8-{self._files}"
        text = texts.text_of(part, self._profile.dialect.encoding, aside)
        file.encoding, file.text = text.encoding, text
        if text.was_guessed:
            self._say(f"{part.name}: read as {text.encoding}")
        head = _text_head(part, text)
        file.format = self._format(part, head)
        if file.format == "csv":
            self._read_csv(text, file)
        elif file.format == "copy":
            columns = self._profile.dialect.columns
            self._reading.bad += copied.take(text, columns, self._target)
        else:
            self._read_json(text, file.format)

    def _format(self, part: Part, head: Head) -> str:
        """The format of a text, and its layout where it is the first one that says so."""
        if self._layout is None and self._profile.layout not in FORMATS:
            self._layout = next((layout for layout in ALL if layout.suits(head)), None)
            if self._layout and self._layout.name == "dynamodb":
                self._say(f"{part.name}: read without the manifest of its export, so nothing says "
                          "whether it is whole")  # fmt: skip
        pinned = self._profile.layout if self._profile.layout in FORMATS else ""
        form = pinned or self._listed.format or (self._layout.format if self._layout else "")
        return form or _format_of(part, head)

    def _read_csv(self, text: Text, file: FileRead) -> None:
        pinned = self._profile.dialect
        if self._listed.columns:
            pinned = _headerless(pinned, self._listed.columns)
        found = dialects.find(text.name, text.path, pinned)
        taken = delimited.take(self._connection, text, found, self._target, self._profile.limits)
        file.found = found
        self._reading.bad += taken.bad
        self._reading.skipped += taken.skipped
        self._reading.warnings += found.said
        for what, times in taken.skipped.items():
            if what != "blank line":
                self._say(f"{text.name}: {what} {times:,} times; it was skipped")

    def _read_json(self, text: Text, form: str) -> None:
        rows = self._layout.rows if self._layout else jsons.objects
        largest = self._profile.limits.row
        if form == "ndjson":
            self._add(text, rows(jsons.lines(text.path, largest)))
            return
        try:
            each, said = self._profile.dialect.each, list[str]()
            self._add(text, rows(jsons.document(text.path, largest, each, said)))
            self._reading.warnings += [f"{text.name}: {words}" for words in said]
        except ValueError as error:
            raise BadInput(f"{text.name} is no JSON: {error}") from None

    def _add(self, text: Text, items: Iterable[jsons.Item]) -> None:
        pinned = set(self._profile.dialect.columns)
        for item in items:
            cells, reason = _cells(item)
            if reason:
                bad = BadRow(item.line, reason, item.text, text.name, item.offset)
                self._reading.bad.append(bad)
                continue
            if pinned and (new := cells.keys() - pinned):
                raise BadInput(f"{text.name} line {item.line}: the field {min(new)!r} is not in "
                               "the profile")  # fmt: skip
            self._add_row(item, cells)
        self._target.flush()

    def _add_row(self, item: jsons.Item, cells: jsons.Row) -> None:
        target = self._target
        if not cells.keys() <= target.known.keys():
            target.need(list(cells))
        row: list[str | None] = [None] * len(target.columns)
        for name, cell in cells.items():
            row[target.known[name]] = cell
        target.add(row, item.line, item.offset)

    def _require_one_export(self, file: FileRead, columns: int) -> None:
        """Raise BadInput where a part has other columns than the first: two exports are mixed."""
        reading, found = self._reading, file.found
        first = next((one for one in reading.files if one.format != "json"), None)
        if first is None:
            return
        if file.format != first.format:
            raise BadInput(f"{reading.source} mixes two exports: {first.name} is {first.format} "
                           f"and {file.name} is {file.format}")  # fmt: skip
        if found and first.found and set(found.columns) != set(first.found.columns):
            other = sorted(set(found.columns) ^ set(first.found.columns))[0]
            raise BadInput(f"{reading.source} mixes two exports: {first.name} and {file.name} do "
                           f"not have the same columns (see {other!r})")  # fmt: skip
        if file.format in ("parquet", "orc", "xlsx") and len(self._target.columns) > columns:
            raise BadInput(f"{reading.source} mixes two exports: {file.name} has the column "
                           f"{self._target.columns[columns]!r}, {first.name} has not")  # fmt: skip

    def _require_known_rules(self) -> None:
        """Raise BadInput where the profile has a rule for a column that is not there."""
        held = self._target.columns
        for name in self._profile.rules if self._profile.is_own else ():
            if name not in held:
                near = get_close_matches(name, held, 1)
                hint = f"the nearest is {near[0]!r}" if near else f"it has {', '.join(held)}"
                raise BadInput(f"{self._reading.source} has no column {name!r}, for which the "
                               f"profile has a rule; {hint}")  # fmt: skip

    def _require_pinned_columns(self) -> None:
        pinned = self._profile.dialect.columns
        held = self._target.columns
        if pinned and set(pinned) != set(held):
            other = sorted(set(pinned) ^ set(held))[0]
            where = "the profile has it and the export has not"
            if other in held:
                where = "the export has it and the profile has not"
            if where.startswith("the export") or self._reading.files[0].format not in _SPARSE:
                raise BadInput(f"{self._reading.source} no longer fits the profile: column "
                               f"{other!r}: {where}")  # fmt: skip
            self._target.need(pinned)

    def _say(self, words: str) -> None:
        self._reading.warnings.append(words)


def _head(part: Part) -> bytes:
    with part.path.open("rb") as file:
        return file.read(_HEAD)


def _damaged(part: Part) -> str:
    """What a file ought to be by its ending, where it does not begin as one."""
    name = part.bare
    if name.endswith((".parquet", ".pq")):
        return "Parquet file"
    if name.endswith(".orc"):
        return "ORC file"
    return "workbook" if name.endswith((".xlsx", ".xlsm", ".xls", ".ods")) else ""


def _text_head(part: Part, text: Text) -> Head:
    with text.path.open(encoding="utf-8-sig", errors="replace") as file:
        words = file.read(_HEAD)
    return Head(part.bare, words, jsons.first(words))


def _format_of(part: Part, head: Head) -> str:
    """The format of a text by what it begins with, and by its ending where that says nothing."""
    name, begin = part.bare, head.text.lstrip()[:1]
    if name.endswith((".ndjson", ".jsonl")):
        return "ndjson"
    if not name.endswith(".json") and (head.first is None or begin not in ("{", "[")):
        return "csv"
    return "ndjson" if begin == "{" and _is_lines(head.text) else "json"


def _is_lines(text: str) -> bool:
    """Whether the first filled line of a text is one JSON value, and another follows it."""
    filled = [line for line in text.splitlines() if line.strip()]
    return len(filled) > 1 and jsons.is_value(filled[0])


def _headerless(dialect: Dialect, columns: tuple[str, ...]) -> Dialect:
    return replace(dialect, header=0, columns=columns, delimiter=dialect.delimiter or ",")


def _cells(item: jsons.Item) -> tuple[jsons.Row, str]:
    """The cells of a value, or why it is no row."""
    if item.reason:
        return {}, item.reason
    try:
        cells = jsons.row(item.value)
    except RecursionError:
        return {}, "nested too deep"
    for name, cell in cells.items():
        if not _is_text(name) or (cell is not None and not _is_text(cell)):
            return {}, f"{name!a} has half a letter (a lone surrogate)"
    return cells, ""


def _is_text(cell: str) -> bool:
    """Whether a cell can be written as UTF-8: JSON can name half a letter."""
    return cell.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in cell)
