"""Checkpoints: the whole state at a place of the log, so that a fold need not begin at its start.

``checkpoints/<writer8>-<seq>.db`` is a copy of state.db made by SQLite's backup in one step, with
the position inside. ``<stem>.json`` beside it names the position and the digest of the file; a
file without it is no checkpoint yet. A damaged one is passed over for the next older.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tallybook.alone import alone
from tallybook.book import older, opening
from tallybook.book.store import Store
from tallybook.errors import TallybookError
from tallybook.layout import FILE_MODE, FOLDER_MODE, Layout
from tallybook.log import chain
from tallybook.log.chain import Position
from tallybook.log.durable import make_folder, rename, replace_file, sync
from tallybook.log.manifest import digest
from tallybook.log.reader import reaches

KEPT = 3


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A state kept whole: its file, where it stands in the log, its size and BLAKE2b-256."""

    path: Path
    position: Position
    made_at: str
    bytes: int
    digest: str


def make(layout: Layout, made_at: str) -> Checkpoint:
    """Keep the state as it stands now, on disk when this returns; takes no lock of the log.

    Older ones than the newest three are removed. Raises TallybookError where there is no state.
    """
    store = opening.open_read_only(layout.state)
    if store is None:
        raise TallybookError(f"{layout.state} cannot be read, so there is no state to keep")
    make_folder(layout.checkpoints, FOLDER_MODE)
    try:
        with closing(store.connection) as source, alone(layout.checkpoints):
            made = _make(layout, source, made_at)
    except (OSError, sqlite3.Error) as error:
        raise TallybookError(
            f"{layout.checkpoints}: no checkpoint was made: {error}; what was there stays"
        ) from error
    return made


def make_if_due(layout: Layout, made_at: str, every: int) -> Checkpoint | None:
    """Keep the state where ``every`` events came since the newest checkpoint, else None."""
    store = opening.open_read_only(layout.state)
    if store is None:
        return None
    with closing(store.connection):
        ordinal = store.position().ordinal
    newest = max((found.position.ordinal for found in kept(layout)), default=0)
    return make(layout, made_at) if ordinal - newest >= every else None


def kept(layout: Layout) -> list[Checkpoint]:
    """The checkpoints that are there, the newest first; nothing is said of their files."""
    found = (_read(path) for path in layout.checkpoints.glob("*.json"))
    return sorted((one for one in found if one), key=lambda one: -one.position.ordinal)


def good(layout: Layout) -> Iterator[Checkpoint]:
    """The checkpoints that a fold can begin with, the newest first: whole files of this version or
    an older one, at a place that the log still has."""
    return (found for found in whole(layout) if reaches(layout, found.position))


def whole(layout: Layout) -> Iterator[Checkpoint]:
    """The checkpoints whose files are whole, of this version or an older one, the newest first;
    also those that saw lines which the log has lost."""
    return (found for found in kept(layout) if _is_whole(found))


def _make(layout: Layout, source: sqlite3.Connection, made_at: str) -> Checkpoint:
    for left in layout.checkpoints.glob(".*"):
        left.unlink()
    aside = layout.checkpoints / ".new"
    try:
        position = _back_up(source, aside)
        made = _keep(layout, aside, position, made_at)
    finally:
        aside.unlink(missing_ok=True)
    _drop_old(layout)
    return made


def _back_up(source: sqlite3.Connection, aside: Path) -> Position:
    os.close(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE))
    with closing(sqlite3.connect(aside, isolation_level=None)) as target:
        target.execute("pragma synchronous = off")
        source.backup(target)
        target.execute("pragma journal_mode = delete")
        position = Store(target).position()
    fd = os.open(aside, os.O_RDWR)
    try:
        sync(fd, "checkpoint")
    finally:
        os.close(fd)
    return position


def _keep(layout: Layout, aside: Path, position: Position, made_at: str) -> Checkpoint:
    path = layout.checkpoint(position.writer, position.seq)
    made = Checkpoint(path, position, made_at, aside.stat().st_size, digest(aside))
    path.with_suffix(".json").unlink(missing_ok=True)
    rename(aside, path, "checkpoint")
    shown = {"v": 1, "made_at": made_at, "bytes": made.bytes, "digest": made.digest}
    text = json.dumps(shown | chain.as_json(position), indent=1) + "\n"
    replace_file(path.with_suffix(".json"), text.encode(), "checkpoint mark")
    return made


def _read(path: Path) -> Checkpoint | None:
    try:
        raw = json.loads(path.read_bytes())
        position = chain.from_json(raw)
        return Checkpoint(
            path.with_suffix(".db"), position, raw["made_at"], raw["bytes"], raw["digest"]
        )
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def _is_whole(found: Checkpoint) -> bool:
    try:
        if digest(found.path) != found.digest:
            return False
    except FileNotFoundError:
        return False
    return position_of(found.path) == found.position


def position_of(path: Path) -> Position | None:
    """Where the state in a file stands, of this version or an older one; None where it is none."""
    store = opening.open_read_only(path)
    if store is None:
        return older.position(path)
    with closing(store.connection):
        return store.position() if store.position().writer else None


def _drop_old(layout: Layout) -> None:
    """Remove all but the newest, and files that a crash left without their mark."""
    newest = {found.path.stem for found in kept(layout)[:KEPT]}
    for path in sorted(layout.checkpoints.glob("*.json")) + sorted(layout.checkpoints.glob("*.db")):
        if path.stem not in newest:
            path.unlink(missing_ok=True)
