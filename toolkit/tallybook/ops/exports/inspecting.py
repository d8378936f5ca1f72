"""``tallybook reconcile EXPORT --inspect``: what an export is, what looks wrong, and a profile."""

import json
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

from tallybook.ops import memory
from tallybook.ops.exports import choosing, columns, reading, suspicions, target
from tallybook.ops.exports.account import Reading
from tallybook.ops.exports.columns import Column
from tallybook.ops.exports.ledger import BadRow
from tallybook.ops.exports.profile import Profile
from tallybook.ops.interrupts import interruptible

_PLAIN = ("csv", "ndjson", "json", "copy", "parquet", "orc", "xlsx")


@dataclass(frozen=True, slots=True)
class Inspected:
    """What an export is; ``profile`` is the text of a TOML file that pins how to read it."""

    source: str
    layout: str
    encoding: str
    delimiter: str
    rows: int
    bad: tuple[BadRow, ...]
    columns: tuple[Column, ...]
    suspicious: tuple[str, ...]
    known: tuple[str, ...]
    profile: str

    def as_json(self) -> dict[str, Any]:
        """What ``--inspect --json`` prints."""
        return {
            "source": self.source,
            "layout": self.layout,
            "encoding": self.encoding,
            "delimiter": self.delimiter,
            "rows": self.rows,
            "unreadable": len(self.bad),
            "columns": [
                {"name": one.name, "nulls": one.nulls, "different": one.different,
                 "samples": list(one.samples), **one.rule()}
                for one in self.columns
            ],
            "suspicious": list(self.suspicious),
            "profiles": list(self.known),
            "profile": self.profile,
        }  # fmt: skip


def inspect(path: str | Path, profile: Profile | None = None) -> Inspected:
    """Look at all rows of an export. Raises as ``read_export`` does."""
    how = profile or Profile()
    with (
        TemporaryDirectory(prefix="tallybook-export-") as folder,
        memory.connect(Path(folder), how.limits.memory) as connection,
        interruptible(connection),
    ):
        target.prepare(connection)
        found = reading.load(connection, "read", path, Path(folder) / "aside", how)
        return _inspected(connection, found, how)


def _inspected(
    connection: duckdb.DuckDBPyConnection, found: Reading, profile: Profile
) -> Inspected:
    width = len(found.target.columns)
    looked = tuple(columns.look(connection, found.target, at) for at in range(width))
    rows = found.rows + len(found.bad)
    said = [*found.warnings, *suspicions.counts(found.source, rows, profile.last_rows)]
    said += [words for column in looked for words in column.suspicious()]
    first = found.files[0]
    return Inspected(
        source=found.source,
        layout=found.layout,
        encoding=first.encoding,
        delimiter=first.found.delimiter if first.found else "",
        rows=rows,
        bad=tuple(found.bad),
        columns=looked,
        suspicious=tuple(said),
        known=tuple(_known(found.target.columns)),
        profile=_text(found, looked, rows),
    )


def _known(names: list[str]) -> list[str]:
    """The profiles that tallybook carries and that know these columns."""
    marks = {
        name: choosing.tables_of(choosing.BUILT_IN / f"{name}.toml").get("known_by", [])
        for name in choosing.built_in()
    }
    return [name for name, known in marks.items() if known and set(known) <= set(names)]


def _text(found: Reading, looked: tuple[Column, ...], rows: int) -> str:
    """A profile as TOML: what was found out is pinned, what is unsure is a remark."""
    parts = [
        f"about = {_toml(f'written by tallybook reconcile --inspect for {found.source}')}",
        f"layout = {_toml(found.layout)}",
        "",
        "[read]",
        *_read(found),
        "",
        "[last]",
        f"rows = {rows}",
    ]
    for column in looked:
        fields = [f"{name} = {_toml(value)}" for name, value in column.rule().items()]
        fields += [f"# {words}" for words in column.suspicious()]
        if fields:
            parts += ["", f"[columns.{_toml(column.name)}]", *fields]
    return "\n".join(parts) + "\n"


def _read(found: Reading) -> list[str]:
    first = found.files[0]
    lines = []
    if first.encoding and found.layout in _PLAIN:
        lines.append(f"encoding = {_toml(first.encoding)}")
    if first.found and found.layout == "csv":
        dialect = first.found.dialect
        lines += [f"delimiter = {_toml(first.found.delimiter)}", f"header = {first.found.header}"]
        if dialect.blanks:
            lines.append("blanks = true")
    if found.layout in _PLAIN:
        names = ", ".join(_toml(name) for name in found.target.columns)
        lines.append(f"columns = [{names}]")
    return lines


def _toml(value: str) -> str:
    """A text as a basic string of TOML, which is that of JSON but for DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
