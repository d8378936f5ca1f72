"""The book of an import: events as one Parquet file, and what was read in ``log/imported.json``.

The Parquet file has a name of its own; imported.json names it and is renamed in last, so a book
holds one whole import or none.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import duckdb

from tallybook import whole
from tallybook.errors import BadInput, TallybookError
from tallybook.layout import FILE_MODE, FOLDER_MODE, Layout
from tallybook.ops.imports.mapping import Mapped
from tallybook.ops.imports.profile import Profile

VERSION = 1
_COPY = "copy ({}) to '{}' (format parquet, compression zstd)"


@dataclass(frozen=True, slots=True)
class Record:
    """What ``log/imported.json`` says of an import."""

    v: int
    node_id: str
    profile: str
    events_file: str
    imported_at: str
    files: tuple[Mapping[str, Any], ...]
    counts: Mapping[str, int]
    unknown_words: Mapping[str, int]
    silent: Mapping[str, str]


def require_room(book: Path, replace: bool) -> None:
    """Raise BadInput where ``book`` is a folder that no import may write into."""
    place = Layout(book)
    if book.exists() and not book.is_dir():
        raise BadInput(f"{book} is a file; a book is a folder")
    if place.imported.exists():
        if not replace:
            raise BadInput(f"{book} holds an import already; name another folder, or --replace it")
    elif place.log.is_dir():
        raise BadInput(
            f"{book} is the book of a queue; an import makes a book of its own: name a new folder"
        )
    elif book.is_dir() and any(book.iterdir()):
        raise BadInput(f"{book} is a folder with other files in it; name an empty or a new one")


def write(book: Path, mapped: Mapped, profile: Profile, node_id: str, at: str) -> Record:
    """Write the book, all of it or nothing. Raises TallybookError where the disk refuses."""
    place = Layout(book)
    try:
        for folder in (book, place.log, place.profiles):
            folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        return _write(place, mapped, profile, node_id, at)
    except OSError as error:
        raise TallybookError(f"cannot write {error.filename}: {error.strerror}") from error
    except duckdb.IOException as error:
        raise TallybookError(f"cannot write {book}: {str(error).splitlines()[0]}") from error


def _write(place: Layout, mapped: Mapped, profile: Profile, node_id: str, at: str) -> Record:
    name = f"imported-{os.urandom(4).hex()}.parquet"
    with whole.written(place.log / name) as aside:
        events = _copy(mapped, aside, profile)
    files = tuple({"file": file, "rows_before": before} for file, before in mapped.files)
    counts = asdict(mapped.counts) | {"events": events}
    record = Record(VERSION, node_id, profile.name, name, at, files, counts,
                    mapped.unknown_words, silences(profile, mapped))  # fmt: skip
    _text(place.profiles / f"{profile.name}.toml", profile.text)
    _text(place.settings, f"[node]\nid = {json.dumps(node_id)}\n")
    _lines(place.unreadable, [asdict(bad) for bad in mapped.unreadable])
    _text(place.imported, json.dumps(asdict(record), ensure_ascii=False, indent=1) + "\n")
    whole.sync(place.log)
    for old in place.log.glob("imported-*.parquet"):
        if old.name != name:
            old.unlink()
    return record


def _copy(mapped: Mapped, target: Path, profile: Profile) -> int:
    """Write the events, without the columns that this log cannot fill."""
    quoted, empty = str(target).replace("'", "''"), ", ".join(_empty(mapped, profile))
    asked = f"select * exclude ({empty}) from ({mapped.sql})" if empty else mapped.sql  # noqa: S608
    events = mapped.connection.execute(_COPY.format(asked, quoted)).fetchall()[0][0]
    target.chmod(FILE_MODE)
    return int(events)


def _empty(mapped: Mapped, profile: Profile) -> Iterator[str]:
    if "until" not in profile.columns:
        yield from ("locked_until", "lease_ms")
    if not mapped.counts.no_submit:
        yield "reason"
    yield from (name for name in ("error", "correlation_id") if name not in profile.columns)


def silences(profile: Profile, mapped: Mapped) -> dict[str, str]:
    """What the log cannot say, each with its sentence: cache, settings, leases, workers, …"""
    counts, columns = mapped.counts, profile.columns
    told = {"cache": "an imported log says nothing of a cache",
            "settings": "an imported log says nothing of the settings of its queue"}  # fmt: skip
    if "until" not in columns:
        told["leases"] = ("an imported log without lease ends: no lease can be called late, "
                          "expired or orphaned")  # fmt: skip
    if "worker" not in columns and "worker" not in profile.fixed:
        told["workers"] = "an imported log that names no workers"
    if counts.no_submit:
        all_of_them = counts.no_submit == counts.jobs
        which = "any job was" if all_of_them else f"{counts.no_submit:,} of its jobs were"
        told["submits"] = f"an imported log that does not say when {which} submitted: no waits"
    if counts.never_started == counts.jobs and counts.jobs:
        told["starts"] = "an imported log that says of no job when it started: no waits, no runs"
    return told


def _lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    _text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def _text(path: Path, text: str) -> None:
    """Write a file beside its place, sync it and rename it in."""
    whole.put(path, text.encode())
