"""The DuckDB of a warehouse: private to this process, under a limit of memory, spilling to --out.

What a large log needs beyond the limit goes into a folder ``.spill-<pid>-…`` in the ops folder. It
goes when the warehouse is closed, or when the next one opens where the process died.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

LIMIT = "600MB"
PREFIX = ".spill-"
_LARGE_BYTES = 64 * 1024 * 1024
Config = dict[str, str | bool | int | float | list[str]]
_CONFIG: Config = {
    "autoinstall_known_extensions": False,
    "python_enable_replacements": False,
    "preserve_insertion_order": False,
}


def connect(
    spill: Path | None = None, limit: str = LIMIT, **config: int
) -> duckdb.DuckDBPyConnection:
    """A DuckDB that reads no network and no variable of the caller, and counts time in UTC.

    Without a folder to spill to it has no limit but that of the machine.
    """
    limits: Config = {"memory_limit": limit, "temp_directory": str(spill)} if spill else {}
    connection = duckdb.connect(config={**_CONFIG, **limits, **config})
    connection.execute("load icu; set TimeZone = 'UTC'")
    return connection


def tell_progress(connection: duckdb.DuckDBPyConnection) -> None:
    """Let ``query_progress`` answer how far a statement is, with nothing printed.

    In a notebook DuckDB refuses that where ipywidgets is not installed: then it answers -1.
    """
    with suppress(duckdb.InvalidInputException):
        connection.execute(
            "set enable_progress_bar = true; set enable_progress_bar_print = false; "
            "set progress_bar_time = 0"
        )


def spill_folder(out: Path, text_bytes: int) -> TemporaryDirectory[str] | None:
    """A folder in ``out`` to spill to; None for a small log, or where nothing can be made there."""
    if text_bytes < _LARGE_BYTES:
        return None
    try:
        out.mkdir(parents=True, exist_ok=True)
        sweep(out)
        return TemporaryDirectory(prefix=prefix(), dir=out)
    except OSError:
        return None


def prefix() -> str:
    """How the name of a folder to spill to begins; ``sweep`` knows by it whose it is."""
    return f"{PREFIX}{os.getpid()}-"


def sweep(out: Path) -> None:
    """Remove what processes that died left in ``out``."""
    for left in _left_by_the_dead(out):
        shutil.rmtree(left, ignore_errors=True)


def _left_by_the_dead(out: Path) -> Iterator[Path]:
    for path in out.glob(f"{PREFIX}*"):
        pid = path.name.removeprefix(PREFIX).partition("-")[0]
        if pid.isdecimal() and not _lives(int(pid)):
            yield path


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
