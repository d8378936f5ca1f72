"""A reconciliation as files: summary, every difference, and a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import duckdb
import orjson

from tallybook import whole
from tallybook.errors import BadInput
from tallybook.layout import FOLDER_MODE
from tallybook.ops import memory
from tallybook.ops.reconciling import page
from tallybook.ops.reconciling.result import RELATIONS, Reconciliation

_FORMULA: Final = r"^[=+\-@\t\r\n\x{ff1d}\x{ff0b}\x{ff0d}\x{ff20}]"
_NUMBER: Final = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"


def write(found: Reconciliation, folder: Path, kind: str = "csv") -> list[Path]:
    """Write ``reconciliation.json``, ``report.html`` and the relations of ``found`` into ``folder``
    as ``kind`` (csv, parquet or ndjson); returns the files.

    In a CSV null is an empty cell and '' a quoted one, and a cell that a spreadsheet would take for
    a formula begins with a quote. None takes the place of an older one before all are written.
    Raises BadInput where the folder cannot be written.
    """
    if kind not in FORMATS:
        raise BadInput(f"no format {kind!r}; choose one of {', '.join(FORMATS)}")
    folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=memory.prefix(), dir=folder) as aside:
        files = _written(found, Path(aside), kind)
        return [path.replace(folder / path.name) for path in files]


def _written(found: Reconciliation, folder: Path, kind: str) -> list[Path]:
    summary = orjson.dumps(found.as_json(), option=orjson.OPT_INDENT_2)
    files = [whole.put(folder / "reconciliation.json", summary + b"\n")]
    files += [
        relation(found, found.relation(name), folder / f"{name}.{kind}") for name in RELATIONS
    ]
    html = page.html(found, beside=f"differences.{kind} or rows.{kind}")
    return [*files, whole.put(folder / "report.html", html.encode("utf-8", "replace"))]


def relation(found: Reconciliation, told: duckdb.DuckDBPyRelation, path: Path) -> Path:
    """Write one relation of ``found`` into ``path``, in the format that its ending names."""
    with whole.written(path) as aside, found.room.checked():
        FORMATS[path.suffix[1:]](told, str(aside))
    return path


def _csv(relation: duckdb.DuckDBPyRelation, path: str) -> None:
    texts = [
        f'"{name}"' if kind not in ("VARCHAR",) else _defused(name)
        for name, kind in zip(relation.columns, map(str, relation.types), strict=True)
    ]
    relation.project(", ".join(texts)).write_csv(path, header=True)


def _defused(name: str) -> str:
    """SQL of a cell that no spreadsheet takes for a formula; a plain number is none."""
    column = f'"{name}"'
    formula = (
        f"regexp_matches({column}, '{_FORMULA}') and not regexp_full_match({column}, '{_NUMBER}')"
    )
    return f"case when {formula} then '''' || {column} else {column} end as {column}"


def _parquet(relation: duckdb.DuckDBPyRelation, path: str) -> None:
    relation.write_parquet(path, compression="zstd")


def _ndjson(relation: duckdb.DuckDBPyRelation, path: str) -> None:
    relation.pl().write_ndjson(path)


FORMATS: Final[Mapping[str, Callable[[duckdb.DuckDBPyRelation, str], None]]] = {
    "csv": _csv,
    "parquet": _parquet,
    "ndjson": _ndjson,
}
