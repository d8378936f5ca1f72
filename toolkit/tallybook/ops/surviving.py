"""state.db as it lies there, read without a trace: not even the files that SQLite would make."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tallybook.errors import TallybookError

Rows = list[tuple[Any, ...]]


def rows(state: Path, query: str) -> Rows | None:
    """What ``query`` finds in ``state``; None where there is no such file, or no such table in it.

    Raises TallybookError where there is one that cannot be read.
    """
    try:
        return _read(state, query) if state.stat().st_size else None
    except FileNotFoundError:
        return None
    except (sqlite3.Error, OSError) as error:
        if str(error).startswith("no such table"):
            return None
        said = (error.strerror if isinstance(error, OSError) else None) or error
        raise TallybookError(
            f"cannot read {state}: {said}; give yourself the right to read it, "
            "or where it is damaged run 'tallybook rebuild'"
        ) from error


def _read(state: Path, query: str) -> Rows:
    wal, shared = state.with_name("state.db-wal"), state.with_name("state.db-shm")
    if not wal.exists():
        return _query(f"{state.resolve().as_uri()}?mode=ro&immutable=1", query)
    if shared.exists():
        return _query(f"{state.resolve().as_uri()}?mode=ro", query)
    # A WAL without its index: SQLite would make one beside it, so it gets a copy elsewhere.
    with TemporaryDirectory(prefix="tallybook-state-") as aside:
        copy = Path(shutil.copy(state, aside))
        shutil.copy(wal, aside)
        return _query(copy.as_uri(), query)


def _query(uri: str, query: str) -> Rows:
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        return connection.execute(query).fetchall()
