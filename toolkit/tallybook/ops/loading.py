"""The lossless load: segments become the table `lines`, and what cannot be read is accounted for.

DuckDB reads strictly, with declared columns, plain segments and archives alike. A segment is
proven whole when that read succeeds, every cell fits its kind and it has as many rows as line
ends. Any other is read again, line by line, by ``judge``; DuckDB then gets its whole lines only.
"""

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

from tallybook import packed
from tallybook.errors import TallybookError
from tallybook.layout import segment_name
from tallybook.ops import statements
from tallybook.ops.fields import COLUMNS
from tallybook.ops.judge import Verdict, judge

LINE_LIMIT = 16 * 1024 * 1024


def load(connection: duckdb.DuckDBPyConnection, segments: Iterable[Path]) -> list[Verdict]:
    """Fill the table `lines`; a verdict for each segment that was not proven whole."""
    connection.execute(statements.model("typing"))
    with TemporaryDirectory(prefix="tallybook-load-") as aside:
        _create(connection, Path(aside))
        filled = [path for path in segments if not path.exists() or path.stat().st_size]
        suspect = _load_proven(connection, filled)
        return [_load_judged(connection, path, Path(aside)) for path in suspect]


def _create(connection: duckdb.DuckDBPyConnection, aside: Path) -> None:
    nothing = aside / "nothing.ndjson"
    nothing.touch()
    select = statements.model("lines")
    connection.execute("create table lines as " + select, _reading([nothing], LINE_LIMIT))


def _reading(files: list[Path], line_limit: int) -> dict[str, Any]:
    return {"files": [str(file) for file in files], "columns": COLUMNS, "line_limit": line_limit}


def _insert(connection: duckdb.DuckDBPyConnection, files: list[Path], line_limit: int) -> bool:
    try:
        connection.execute("insert into lines " + statements.model("lines"),
                           _reading(files, line_limit))  # fmt: skip
    except (duckdb.InvalidInputException, duckdb.IOException):
        return False
    return True


def _load_proven(connection: duckdb.DuckDBPyConnection, paths: list[Path]) -> list[Path]:
    """Load every segment that a strict read proves whole; the others come back."""
    ends = {path: _line_ends(path) for path in paths}
    whole = [path for path in paths if ends[path] is not None]
    if whole and not _insert(connection, whole, LINE_LIMIT):
        whole = [path for path in whole if _insert(connection, [path], LINE_LIMIT)]
    found = connection.execute(statements.query("rows_by_segment")).fetchall()
    rows = {segment: (count, fitting) for segment, count, fitting in found}
    proven = {path for path in whole if rows.get(segment_name(path)) == (ends[path], ends[path])}
    suspect = [path for path in paths if path not in proven]
    connection.execute(
        statements.query("drop_segments"), [[segment_name(path) for path in suspect]]
    )
    return suspect


def _line_ends(path: Path) -> int | None:
    """How many lines the text has; None where its last line has no end or cannot be reached."""
    count, last = 0, b"\n"
    try:
        with packed.reading(path) as file:
            for chunk in packed.chunks(file):
                count += chunk.count(b"\n")
                last = chunk[-1:]
    except packed.Unreadable:
        return None
    return count if last == b"\n" else None


def _load_judged(connection: duckdb.DuckDBPyConnection, path: Path, aside: Path) -> Verdict:
    clean = aside / segment_name(path)
    with clean.open("wb") as file:
        verdict = judge(path, file)
    if verdict.rows:
        loaded = _insert(connection, [clean], max(LINE_LIMIT, 2 * verdict.longest))
        _require_agreement(connection, verdict, loaded)
    clean.unlink()
    return verdict


def _require_agreement(
    connection: duckdb.DuckDBPyConnection, verdict: Verdict, loaded: bool
) -> None:
    """Two readers judged each line; where they differ nothing may be answered."""
    found = connection.execute(statements.query("rows_by_segment")).fetchall()
    rows = {segment: (count, fitting) for segment, count, fitting in found}
    if not loaded or rows.get(verdict.segment) != (verdict.rows, verdict.rows):
        raise TallybookError(
            f"{verdict.segment}: two readers disagree on which of its lines are whole; "
            "please report this file as a bug"
        )
