"""The archive: closed segments as Parquet in the ops folder, each with an entry that says of what.

    <out>/archive/<stem>.parquet      the rows as the load gives them, sorted by event and seq
    <out>/archive/<stem>.json         the entry; a Parquet file without one is none yet

An entry counts where the log still has the very text that it was made of, or where the log was
pruned there. The files are made by ``compacting``.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import duckdb

from tallybook import packed
from tallybook.layout import SEGMENT_SUFFIX, Layout, first_seq, pruned_ends, segment_name
from tallybook.ops import history, proofs, statements
from tallybook.ops.judge import BadLine
from tallybook.ops.openings import Opening

VERSION = 1
_SPAN = ("segment", "first_seq", "last_seq", "first_at", "last_at", "rows", "numbers")


@dataclass(frozen=True, slots=True)
class Entry:
    """A segment in the archive.

    ``lines = rows + doubled + blank + len(quarantine)``. ``hash`` is that of the chain behind the
    segment, None where its lines do not meet the chain; ``text_digest`` is BLAKE2b-256 of its
    text where no manifest stood beside it. ``base`` is what positions add to a seq.
    """

    segment: str
    opening: Opening
    base: int
    lines: int
    bytes: int
    rows: int
    doubled: int
    numbers: int
    first_seq: int | None
    last_seq: int | None
    first_at: str | None
    last_at: str | None
    parquet_bytes: int
    parquet_digest: str
    hash: str | None
    text_digest: str | None = None
    blank: int = 0
    quarantine: list[BadLine] = field(default_factory=list)
    v: int = VERSION


def parquet(folder: Path, segment: str) -> Path:
    """Where the rows of a segment lie."""
    return folder / f"{segment.removesuffix(SEGMENT_SUFFIX)}.parquet"


def as_json(entry: Entry) -> bytes:
    """The entry as its file holds it."""
    return (json.dumps(asdict(entry), indent=1, ensure_ascii=False) + "\n").encode()


def read(path: Path, sizes: Mapping[str, int] | None = None) -> Entry | None:
    """The entry in a file; None where it is none of this version, or without its Parquet."""
    rows = path.with_suffix(".parquet")
    try:
        raw = json.loads(path.read_bytes())
        if raw["v"] != VERSION:
            return None
        raw["opening"] = Opening(**raw["opening"])
        raw["quarantine"] = [BadLine(**line) for line in raw["quarantine"]]
        entry = Entry(**raw)
        size = rows.stat().st_size if sizes is None else sizes.get(rows.name)
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    return entry if size == entry.parquet_bytes else None


def usable(
    folder: Path, place: Layout, paths: Sequence[Path], sizes: Mapping[str, int] | None = None
) -> dict[str, Entry]:
    """The entries to be read instead of the segments in ``paths``, or where those were pruned.

    ``sizes`` are those of the Parquet files by name, where these do not lie in ``folder``.
    """
    known = (read(path, sizes) for path in sorted(folder.glob("*.json")))
    found = [entry for entry in known if entry]
    files = {segment_name(path): path for path in paths}
    ends = pruned_ends(place)
    return {entry.segment: entry for entry in found if _counts(entry, place, files, ends)}


def _counts(
    entry: Entry, place: Layout, files: Mapping[str, Path], ends: Mapping[str, int]
) -> bool:
    path = files.get(entry.segment)
    if path is None:
        return first_seq(entry.segment) <= ends.get(entry.segment[:8], 0)
    if not packed.is_packed(path):
        return entry.text_digest is not None and entry.text_digest == text_digest(path)
    manifest = proofs.told(place, entry.segment)
    return bool(manifest and entry.hash and manifest.get("hash") == entry.hash)


def text_digest(path: Path) -> str | None:
    """BLAKE2b-256 of a plain segment; None where it is gone by now."""
    try:
        return proofs.digest(path)
    except FileNotFoundError:
        return None


def attach(
    connection: duckdb.DuckDBPyConnection, folder: Path, entries: Iterable[Entry]
) -> list[str]:
    """Make the table `archived`; the files that hold the rows of ``entries``."""
    connection.execute(statements.model("archived"))
    kept = [entry for entry in entries if entry.rows]
    note(connection, kept)
    return [str(parquet(folder, one.segment)) for one in kept]


def note(connection: duckdb.DuckDBPyConnection, entries: Iterable[Entry]) -> None:
    """Add the spans of entries with rows to the table `archived`."""
    rows = [[getattr(entry, name) for name in _SPAN] for entry in entries if entry.rows]
    history.fill(connection, "archived", rows)


def attach_nodes(
    connection: duckdb.DuckDBPyConnection, files: Sequence[str], *, remote: bool = False
) -> None:
    """Make the macro `archived_rows`: the rows of ``files``, or of `remote_archive`, with the
    positions and nodes that the table `openings` gives their segments."""
    connection.execute("set variable archive_files = ?", [list(files)])
    name = "archived_rows_remote" if remote else "archived_rows"
    model = statements.model(name)
    connection.execute("create or replace macro archived_rows() as table " + model)
