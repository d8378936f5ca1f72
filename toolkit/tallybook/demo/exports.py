"""The cloud's export of its rows: one CSV and one NDJSON file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tallybook.demo.airports import COLUMNS

CSV_NAME = "airports.csv"
NDJSON_NAME = "airports.ndjson"


def write(folder: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write both files whole, by rename; the folder must exist."""
    listed = list(rows)
    header = ",".join(COLUMNS)
    _replace(folder / CSV_NAME, [header, *(",".join(map(_cell, _values(row))) for row in listed)])
    _replace(folder / NDJSON_NAME, [_line(row) for row in listed])


def _values(row: Mapping[str, Any]) -> Iterable[Any]:
    return (row[name] for name in COLUMNS)


def _cell(value: Any) -> str:
    """Text is always quoted, so that an empty text and a null stay apart (RFC 4180)."""
    if value is None:
        return ""
    if isinstance(value, str):
        return '"' + value.replace('"', '""') + '"'
    return repr(value)


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(dict(row), ensure_ascii=False, separators=(",", ":"))


def _replace(path: Path, lines: list[str]) -> None:
    partial = path.with_name(path.name + ".partial")
    partial.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    partial.rename(path)
