"""Compaction: closed segments become Parquet in the archive, once each.

    rows written aside, read back, synced → renamed in → entry, synced with the folder of both

What a crash leaves is a file that no entry names; the next compaction writes it again. One
process at a time compacts into a folder (flock on it); another waits, and finds it done.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

from tallybook import layout as layouts
from tallybook import packed
from tallybook.alone import alone
from tallybook.errors import TallybookError
from tallybook.layout import FILE_MODE, FOLDER_MODE, Layout, segment_name
from tallybook.ops import archive, history, loading, memory, proofs, statements
from tallybook.ops.archive import Entry
from tallybook.ops.judge import Verdict
from tallybook.ops.openings import Opening
from tallybook.ops.survey import Survey, survey

_WORKERS = 2
_LIMIT = "300MB"
_SPAN = ("rows", "numbers", "first_seq", "last_seq", "first_at", "last_at")


@dataclass(frozen=True, slots=True)
class Left:
    """A closed segment that was not compacted, and why."""

    segment: str
    reason: str


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a compaction did: entries made, segments that the archive had, and those left out."""

    folder: Path
    made: list[Entry]
    kept: list[Entry]
    left: list[Left]


@dataclass(frozen=True, slots=True)
class _Closed:
    """A segment to be compacted, and how the one after it begins."""

    path: Path
    opening: Opening
    following: Opening


def compact(book: Path, out: Path | None = None) -> Compacted:
    """Bring every closed segment of ``book`` into the archive under ``out``.

    Raises BadInput where there is no book, and TallybookError where the archive cannot be written.
    """
    place = layouts.require_book(book)
    found = survey(place, out)
    try:
        found.folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        with alone(found.folder):
            for left in found.folder.glob(".*.new"):
                left.unlink()
            return _compact(place, survey(place, out))
    except OSError as error:
        name = error.filename or found.folder
        raise TallybookError(f"cannot compact: {name}: {error.strerror}") from error
    except duckdb.IOException as error:
        said = str(error).partition("\n")[0]
        raise TallybookError(f"cannot compact into {found.folder}: {said}") from error


def _compact(place: Layout, found: Survey) -> Compacted:
    closed, left = _closed(found)
    with TemporaryDirectory(prefix=f"{memory.PREFIX}{os.getpid()}-", dir=found.out) as spill:
        shares = [closed[number::_WORKERS] for number in range(_WORKERS)]
        with ThreadPoolExecutor(_WORKERS) as pool:
            work = [pool.submit(_share, place, found, share, Path(spill)) for share in shares]
            done = [one for share in work for one in share.result()]
    made = sorted((one for one in done if isinstance(one, Entry)), key=lambda one: one.segment)
    left += [one for one in done if isinstance(one, Left)]
    return Compacted(found.folder, made, [*found.archived, *found.moved], left)


def _share(
    place: Layout, found: Survey, closed: Sequence[_Closed], spill: Path
) -> list[Entry | Left]:
    """Compact some segments, one after the other, on a connection of their own."""
    if not closed:
        return []
    with closing(memory.connect(spill, _LIMIT, threads=1)) as connection:
        history.name(connection, found.openings)
        archive.attach(connection, found.folder, [])
        return [_compact_one(connection, place, found, one) for one in closed]


def _closed(found: Survey) -> tuple[list[_Closed], list[Left]]:
    """The segments that are not in the archive and that another one follows."""
    paths = {segment_name(path): path for path in found.paths}
    order = sorted(found.openings, key=lambda one: (one.ordinal, layouts.first_seq(one.segment)))
    closed, left = [], []
    for opening, following in pairwise(order):
        if opening.segment not in paths:
            continue
        if opening.segment[:8] != opening.writer[:8]:
            left.append(Left(opening.segment, "a copy, by its name: its lines are counted once"))
        else:
            closed.append(_Closed(paths[opening.segment], opening, following))
    return closed, left


def _compact_one(
    connection: duckdb.DuckDBPyConnection, place: Layout, found: Survey, one: _Closed
) -> Entry | Left:
    verdicts = loading.load(connection, place, [one.path], found.openings)
    doubled = history.arrange(connection)
    span = connection.sql(statements.query("span_of_lines")).fetchall()[0]
    rows = dict(zip(_SPAN, span, strict=True)) | {"doubled": doubled}
    same = one.following.writer == one.opening.writer
    if same and (rows["last_seq"] or 0) >= layouts.first_seq(one.following.segment):
        return Left(one.opening.segment, "it overlaps the segment that follows it")
    file = archive.parquet(found.folder, one.opening.segment)
    kept = _keep_rows(connection, file)
    entry = _entry(one, rows | kept | _account(place, one, verdicts))
    _keep(file.with_suffix(".json"), archive.as_json(entry))
    return entry


def _entry(one: _Closed, told: dict[str, Any]) -> Entry:
    opening = one.opening
    return Entry(segment=opening.segment, base=opening.base, opening=opening, **told)


def _account(place: Layout, one: _Closed, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """What became of the lines, and what the text can be known by again."""
    proof = proofs.proof(place, one.path)
    if proof and not verdicts:
        return {"lines": proof.lines, "bytes": proof.bytes, "hash": proof.hash}
    (verdict,) = verdicts
    bad = verdict.bad + [verdict.torn_tail] * bool(verdict.torn_tail)
    return {
        "lines": verdict.lines + bool(verdict.torn_tail),
        "bytes": verdict.text_bytes,
        "blank": verdict.blank,
        "quarantine": bad,
        "hash": None if bad or verdict.blank else _chain(one),
        "text_digest": archive.text_digest(one.path),
    }


def _chain(one: _Closed) -> str | None:
    """The hash of the chain behind a segment, where the one that follows goes on from there.

    docs/log-format.md has the chain; this is its other reader.
    """
    starts_anew = layouts.first_seq(one.opening.segment) == 1
    chain = bytes(32) if starts_anew else bytes.fromhex(one.opening.previous_hash or "")
    with packed.reading(one.path) as file:
        for line in file:
            chain = blake2b(chain + line.removesuffix(b"\n"), digest_size=32).digest()
    return chain.hex() if chain.hex() == one.following.previous_hash else None


def _keep_rows(connection: duckdb.DuckDBPyConnection, file: Path) -> dict[str, Any]:
    """Write `lines` to ``file``, whole or not at all, once it was read back the same."""
    aside = file.with_name(f".{file.name}.{os.getpid()}.new")
    os.close(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE))
    connection.execute(statements.query("write_archive"), {"file": str(aside)})
    written = connection.execute(statements.query("digest_of_lines")).fetchall()
    again = connection.execute(statements.query("digest_of_file"), {"file": str(aside)}).fetchall()
    if written != again:
        raise TallybookError(f"{aside} does not read back as it was written; look at the disk")
    told = {"parquet_bytes": aside.stat().st_size, "parquet_digest": proofs.digest(aside)}
    _settle(aside, file)
    return told


def _keep(path: Path, data: bytes) -> None:
    aside = path.with_name(f".{path.name}.{os.getpid()}.new")
    fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
    _settle(aside, path)


def _settle(aside: Path, path: Path) -> None:
    """Give a file that was written its name; both are on disk when this returns."""
    aside.chmod(FILE_MODE)
    _sync(aside, os.O_RDWR)
    aside.replace(path)
    _sync(path.parent, os.O_RDONLY | os.O_DIRECTORY)


def _sync(path: Path, flags: int) -> None:
    fd = os.open(path, flags | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
