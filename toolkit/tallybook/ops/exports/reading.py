"""From the place of an export to a target full of rows, each row of it or in the ledger."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import duckdb

from tallybook.errors import BadInput, IncompleteInput, TallybookError
from tallybook.ops.exports import (
    copied,
    delimited,
    dialects,
    documents,
    fitting,
    formats,
    jsons,
    kinds,
    manifests,
    parts,
    tables,
    texts,
)
from tallybook.ops.exports.account import FileRead, Reading
from tallybook.ops.exports.layout import Head, Layout, Listed
from tallybook.ops.exports.layouts import ALL, BY_NAME
from tallybook.ops.exports.ledger import BadRow
from tallybook.ops.exports.parts import Part, Stamped
from tallybook.ops.exports.profile import Dialect, Profile
from tallybook.ops.exports.target import Target
from tallybook.ops.exports.texts import Text
from tallybook.ops.exports.unpacking import Unpacker

FORMATS = ("csv", "ndjson", "json", "copy", "parquet", "orc", "xlsx")
_ORDER = "preserve_insertion_order"


def load(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    given: str | Path,
    aside: Path,
    profile: Profile | None = None,
    *,
    typed: bool = False,
    lying: bool = False,
) -> Reading:
    """Read the export at ``given`` into the table ``name``; ``aside`` takes what must be unpacked.

    ``lying`` leaves the rows of one clean CSV file where they are, for ``delimited.settle``.
    Raises BadInput for what is no such export, IncompleteInput where a part of it is missing, cut
    or damaged.
    """
    how = profile or Profile()
    try:
        with _in_order(connection):
            loader = _Loader(connection, name, given, aside, how, typed=typed, lying=lying)
            with loader.unchanged():
                return loader.load()
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
        with suppress(duckdb.ConnectionException):  # Ctrl-C closed it
            connection.execute(f"set {_ORDER} = {'true' if kept else 'false'}")


class _Loader:
    def __init__(
        self, connection: duckdb.DuckDBPyConnection, name: str, given: str | Path, aside: Path,
        profile: Profile, *, typed: bool, lying: bool,
    ) -> None:  # fmt: skip
        self._connection, self._aside, self._profile = connection, aside, profile
        self._found = parts.find(given, aside)
        self._layout, self._listed = self._recognised()
        rules = {**self._listed.rules, **profile.rules}
        self._target = Target(connection, name, rules, profile.every, typed=typed)
        self._reading = Reading(self._found.source, self._target, rules)
        self._unpacker = Unpacker(aside, profile.limits)
        self._files = 0
        self._lying = lying and len(self._listed.parts) == 1 and not self._listed.rows

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

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Raise IncompleteInput where a file is written to, or goes, while it is read."""
        stamps = [Stamped.of(part.path) for part in self._listed.parts]
        try:
            yield
        except (OSError, duckdb.IOException):
            for stamped in stamps:
                stamped.require_same()
            raise
        for stamped in stamps:
            stamped.require_same()

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
        fitting.require_pinned_columns(reading, self._profile)
        fitting.require_known_rules(reading, self._profile)
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
        if self._target.source:
            raise delimited.NotAsItLies
        head = formats.head(part)
        if what := kinds.foreign(head, part.path):
            raise BadInput(f"{part.name} {what}")
        file = FileRead(part.name, self._target.rows)
        bad = len(self._reading.bad)
        columns = len(self._target.columns)
        self._read(part, head, file)
        file.rows, file.bad = self._target.rows - file.before, len(self._reading.bad) - bad
        fitting.require_one_export(self._reading, file, columns)
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
            reading, dialect = self._reading, self._profile.dialect
            reading.warnings += tables.take_workbook(part, dialect, self._target, reading.bad)
        elif what := formats.damaged(part):
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
        head = formats.text_head(part, text)
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
        return form or formats.of_text(part, head)

    def _read_csv(self, text: Text, file: FileRead) -> None:
        pinned = self._profile.dialect
        if self._listed.columns:
            pinned = _headerless(pinned, self._listed.columns)
        found = file.found = dialects.find(text.name, text.path, pinned)
        self._reading.warnings += found.said
        if self._left(text, found):
            return
        taken = delimited.take(self._connection, text, found, self._target, self._profile.limits)
        self._reading.bad += taken.bad
        self._reading.skipped += taken.skipped
        self._reading.warnings += taken.said
        for what, times in taken.skipped.items():
            if what != "blank line":
                self._say(f"{text.name}: {what} {times:,} times; it was skipped")

    def _left(self, text: Text, found: dialects.Found) -> bool:
        """Whether the rows of a text could be left where they lie."""
        rules = (*self._reading.rules.values(), self._profile.every)
        if not self._lying or any(rule.rewrites for rule in rules):
            return False
        return delimited.leave(self._connection, text, found, self._target, self._profile.limits)

    def _read_json(self, text: Text, form: str) -> None:
        rows = self._layout.rows if self._layout else jsons.objects
        largest = self._profile.limits.row
        if form == "ndjson":
            self._add(text, rows(jsons.lines(text.path, largest)))
            return
        try:
            each, said = self._profile.dialect.each, list[str]()
            self._add(text, rows(documents.document(text.path, largest, each, said)))
            self._reading.warnings += [f"{text.name}: {words}" for words in said]
        except documents.CutShort as error:
            raise IncompleteInput(f"{text.name} is cut: {error}") from None
        except ValueError as error:
            raise BadInput(f"{text.name} is no JSON: {error}") from None

    def _add(self, text: Text, items: Iterable[jsons.Item]) -> None:
        pinned = set(self._profile.dialect.columns)
        for item in items:
            cells, reason = jsons.cells(item)
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

    def _say(self, words: str) -> None:
        self._reading.warnings.append(words)


def _headerless(dialect: Dialect, columns: tuple[str, ...]) -> Dialect:
    return replace(dialect, header=0, columns=columns, delimiter=dialect.delimiter or ",")
