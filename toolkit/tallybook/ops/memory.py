"""The DuckDB of a warehouse: private to this process, under a limit of memory, spilling to --out.

What a large log needs beyond the limit goes into a folder ``.spill-<pid>-…`` in the ops folder. It
goes when the warehouse is closed, or when the next one opens where the process died.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread

import duckdb

LIMIT = "600MB"
PREFIX = ".spill-"
PERIOD_S = 0.2
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


@contextmanager
def watched(far: Callable[[], float], tell: Callable[[float], None]) -> Iterator[None]:
    """Tell every 0.2 s how far a statement is while it runs; ``far`` asks DuckDB for the percent.

    One Ctrl-C may come twice, from DuckDB and then from Python, so that nobody waits here for the
    last look: it may meet a connection that is closed, and then tells nothing.
    """
    over = Event()

    def watch() -> None:
        with suppress(duckdb.ConnectionException):
            while not over.wait(PERIOD_S):
                tell(max(0, min(100, far())))

    thread = Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


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
