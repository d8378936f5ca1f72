"""Where a comparison works: a DuckDB of its own under a limit of memory, and a folder for what
does not fit, which goes when the comparison is closed, interrupted or dropped."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any, Final
from weakref import finalize

import duckdb
import polars

from tallybook.errors import BadInput, NoRoom, TallybookError
from tallybook.ops import memory, statements
from tallybook.ops.interrupts import interruptible

MEMORY: Final = "1200MB"
Progress = Callable[[str, int, int], None]
_READING: Final = 70  # percent of a statement that are done when its files are read
_MADE: Final = """
    select 'view', view_name from duckdb_views() where not internal
    union all
    select 'table', table_name from duckdb_tables()"""
# DuckDB takes a CSV file for a few rows, and would keep all of it to look up a few keys: what is
# kept for a join stands on its right in every statement.
_GUESSING: Final = "join_order,build_side_probe_side"
_FULL = ("no space left", "max_temp_directory_size", "disk full", "could not write")
_TOO_LITTLE: Final = (
    "the memory that this comparison may use is too little for it; give it more (--memory, or "
    "memory= in Python)"
)


class Room:
    """The DuckDB and the folder of one comparison."""

    def __init__(
        self, out: Path | None, limit: str = MEMORY, progress: Progress | None = None
    ) -> None:
        above = out or Path(gettempdir())
        self._progress = progress
        try:
            above.mkdir(mode=0o700, parents=True, exist_ok=True)
            memory.sweep(above)
            folder = TemporaryDirectory(prefix=memory.prefix(), dir=above)
        except OSError as error:
            raise BadInput(
                f"{above}: nothing can be set aside there: {error.strerror or error}; name another "
                "folder with --out, or in TMPDIR"
            ) from None
        self.aside = Path(folder.name)
        (self.aside / "spill").mkdir()
        self.connection = _connected(self.aside / "spill", limit)
        if progress:
            memory.tell_progress(self.connection)
        self._closed = finalize(self, _leave, self.connection, folder)

    def close(self) -> None:
        """Forget everything; the folder goes."""
        self._closed()

    def spare_memory(self) -> None:
        """Leave room for what reads a CSV file: DuckDB would fill all memory with keys before it
        sets some of them aside."""
        self.connection.execute(
            "set variable third = "
            "parse_formatted_bytes(current_setting('memory_limit')) // 3 // 1024 || 'KiB'"
        )
        self.connection.execute("set operator_memory_limit = getvariable('third')")

    def set(self, variables: Mapping[str, object]) -> None:
        """Variables of DuckDB, which rules are told in: nothing of theirs becomes SQL."""
        for name, value in variables.items():
            self.connection.execute(f"set variable {name} = $1", [value])

    def run(
        self, statement: str, stage: str = "", part: int = 0, parts: int = 1, reads: int = 0
    ) -> None:
        """Run a statement that may take long; ``stage`` is what it does, in words, of which it is
        the ``part`` counted from 0. ``reads`` is how many bytes of files it reads, where DuckDB
        does not know how far it is."""
        with self.checked(), self._shown(stage, part, parts, reads):
            self.connection.execute(statement)

    def all(self, statement: str) -> list[tuple[Any, ...]]:
        """All rows of an answer."""
        with self.checked():
            return self.connection.execute(statement).fetchall()

    def frame(self, statement: str) -> polars.DataFrame:
        """An answer as a Polars frame."""
        with self.checked():
            found: polars.DataFrame = self.connection.sql(statement).pl()
        return found

    def keep(self, name: str, frame: polars.DataFrame) -> None:
        """Make a frame a table."""
        self.connection.register("given", frame)
        self.connection.execute(f"create or replace table {name} as from given")
        self.connection.unregister("given")

    def keep_order(self, *, kept: bool) -> None:
        """Whether rows come in the order of their table from now on, which takes more memory."""
        self.connection.execute(f"set preserve_insertion_order = {'true' if kept else 'false'}")

    def drop_all_but(self, kept: Collection[str]) -> None:
        """Forget every table and view but these: their rows need memory."""
        for kind, name in self.all(_MADE):
            if name not in kept:
                self.connection.execute(f'drop {kind} "{name}"')

    @contextmanager
    def checked(self) -> Iterator[None]:
        """Ctrl-C as such, and a full disk as what it is."""
        try:
            with interruptible(self.connection):
                yield
        except duckdb.Error as error:
            words = str(error).casefold()
            if any(one in words for one in _FULL):
                raise NoRoom(_full(self.aside)) from None
            if isinstance(error, duckdb.OutOfMemoryException):
                raise TallybookError(_TOO_LITTLE) from None
            raise

    @contextmanager
    def _shown(self, stage: str, part: int, parts: int, reads: int) -> Iterator[None]:
        """Tell how far a stage is, in hundredths, while a statement of it runs."""
        tell = self._progress
        if not (tell and stage):
            yield
            return
        before = _bytes_read()

        def show(percent: float) -> None:
            tell(stage, int(100 * part + percent) // parts, 100)

        def far() -> float:
            share = min(1, (_bytes_read() - before) / reads) if reads else 0
            return max(self.connection.query_progress(), _READING * share)

        with memory.watched(far, lambda percent: show(min(99, percent))):
            yield
        show(100)


def _connected(spill: Path, limit: str) -> duckdb.DuckDBPyConnection:
    try:
        connection = memory.connect(spill, limit, preserve_insertion_order=True)
    except duckdb.Error as error:
        words = str(error).splitlines()[0]
        raise BadInput(f"memory {limit!r}: {words}; write it like 2GB or 800MB") from None
    with interruptible(connection):
        connection.execute(f"set disabled_optimizers = '{_GUESSING}'")
        for macros in ("typing_cells", "comparing_cells"):
            connection.execute(statements.model(macros))
    return connection


def _bytes_read() -> int:
    """How many bytes this process has read, as the kernel counts them; 0 where it does not say."""
    try:
        counted = Path("/proc/self/io").read_text("ascii")
    except OSError:
        return 0
    return int(counted.partition("rchar: ")[2].partition("\n")[0])


def _leave(connection: duckdb.DuckDBPyConnection, folder: TemporaryDirectory[str]) -> None:
    connection.close()
    folder.cleanup()


def _full(aside: Path) -> str:
    return (
        f"{aside.parent}: the disk takes no more of what does not fit into memory; make room, "
        "or name another folder with --out, or in TMPDIR"
    )
