"""Reading the files of a log: each becomes rows of text cells, and what is no row is told.

Two roads, both DuckDB's CSV reader with nothing guessed: a CSV has its columns, any other format
one column, ``line``, with a JSON object a row. JSON documents, blocks and columns between blanks
are first written out that way, into a folder aside.
"""

import csv
import gzip
import shutil
import zlib
from dataclasses import replace
from pathlib import Path

from tallybook import packed
from tallybook.errors import BadInput, IncompleteInput
from tallybook.ops.imports import rewriting
from tallybook.ops.imports.profile import Profile, Reading
from tallybook.ops.imports.texts import Text, is_remark

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_OTHER = {
    b"PAR1": "is Parquet",
    b"PK\x03\x04": "is a zip archive or workbook",
    b"\xd0\xcf\x11\xe0": "is a workbook",
    b"SQLite format 3": "is an SQLite database",
    b"Obj\x01": "is binary Avro",
    b"\x7fELF": "is a program",
    b"%PDF": "is a PDF",
}


def prepare(path: Path, profile: Profile, aside: Path) -> Text:
    """The text of a file, with its columns; raises BadInput for a file of another kind."""
    plain = unpacked(path, aside)
    reading = profile.reading
    head = _head(path, plain)
    if reading.format == "csv":
        if reading.delimiter == "blanks":
            return _tabbed(path, plain, reading, aside, head)
        return Text(path.name, plain, reading, _columns(path, plain, reading), head=head)
    if reading.format == "ndjson":
        return Text(path.name, plain, reading, head=head)
    if reading.format == "json":
        return rewriting.from_document(path, plain, reading, aside)
    return rewriting.from_blocks(path, plain, reading, aside)


def _tabbed(path: Path, plain: Path, reading: Reading, aside: Path, head: str) -> Text:
    """Columns between runs of blanks, rewritten with tabs between them."""
    tabbed = replace(reading, delimiter="\t", comment="")
    target, lines = rewriting.from_blanks(plain, reading, aside)
    names = _columns(path, target, tabbed)
    first = int(reading.header)
    return Text(path.name, target, tabbed, names, lines=lines[first:], head=head)


def unpacked(path: Path, aside: Path) -> Path:
    """The file itself, or its unpacked copy where it is gzip or Zstandard, whatever its name."""
    if not path.is_file():
        found = "that is a folder" if path.is_dir() else "there is no such file"
        raise BadInput(f"cannot read {path}: {found}")
    with path.open("rb") as file:
        magic = file.read(4)
    target = aside / "unpacked"
    try:
        if magic.startswith(_GZIP):
            with gzip.open(path, "rb") as source, target.open("wb") as plain:
                shutil.copyfileobj(source, plain, 1 << 20)
        elif magic == _ZSTD:
            with target.open("wb") as plain:
                packed.unpack(path, plain)
        else:
            return path
    except (EOFError, zlib.error, gzip.BadGzipFile, packed.Unreadable) as error:
        raise IncompleteInput(f"{path} is a damaged or cut archive: {error}") from error
    return target


def _head(path: Path, plain: Path) -> str:
    """The first lines of a text; raises BadInput for a file that is none."""
    with plain.open("rb") as file:
        raw = file.read(1 << 16)
    if not raw.strip():
        raise BadInput(f"{path} is empty")
    for magic, what in _OTHER.items():
        if raw.startswith(magic):
            raise BadInput(f"{path} {what}; write it as CSV or NDJSON first")
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise BadInput(f"{path} is UTF-16; write it as UTF-8 first")
    if b"\x00" in raw:
        raise BadInput(f"{path} is no text: it holds NUL bytes")
    return raw.decode("utf-8-sig", "replace")


def _columns(path: Path, plain: Path, reading: Reading) -> list[str]:
    names = list(reading.columns)
    if reading.header:
        names = _header(path, plain, reading)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise BadInput(f"{path} has two columns of one name: {', '.join(twice)}")
    return names


def _header(path: Path, plain: Path, reading: Reading) -> list[str]:
    with plain.open(encoding="utf-8-sig", errors="strict", newline="") as file:
        try:
            for cells in csv.reader(file, delimiter=reading.delimiter, strict=True):
                if cells and not is_remark(cells[0], reading.comment):
                    return [name.strip() or f"column {at}" for at, name in enumerate(cells, 1)]
        except (csv.Error, UnicodeDecodeError) as error:
            raise BadInput(f"{path} has no readable header line: {error}") from None
    raise BadInput(f"{path} has no header line")
