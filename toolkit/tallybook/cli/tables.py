"""The rows of an answer as JSON has them, and as tables for a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tallybook.cli import output

if TYPE_CHECKING:
    import polars

_SHOWN = 20
_MEASURES = ("wait", "run", "total")
_MARKS = ("mean", "p50", "p90", "p95", "p99", "max")


def plain(frame: polars.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame, with times as text."""
    return [
        {name: value.isoformat() if isinstance(value, datetime) else value
         for name, value in row.items()}
        for row in frame.to_dicts()
    ]  # fmt: skip


def labels(rows: Sequence[Mapping[str, Any]], by: str | None) -> list[str]:
    """The columns that name a row: its window, where there is one, and its group."""
    window = ["window_start"] if rows and "window_start" in rows[0] else []
    return [*window, *([by] if by else [])]


def nested(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of latency with one object a measure."""
    measured = {
        f"{measure}_s": {
            **{mark: row[f"{measure}_{mark}_s"] for mark in _MARKS},
            "negative": row[f"{measure}_negative"],
        }
        for measure in _MEASURES
    }
    flat = {name: value for name, value in row.items() if not name.startswith(_MEASURES)}
    return flat | measured


def latency_text(groups: Sequence[Mapping[str, Any]], named: Sequence[str]) -> str:
    """A row a group and measure, behind the columns that name the group."""
    rows = [
        {name: group[name] for name in (*named, "n", "open", "open_oldest_s")}
        | {"time": measure, **group[f"{measure}_s"]}
        for group in groups
        for measure in _MEASURES
    ]
    columns = [*named, "n", "open", "open_oldest_s", "time", *_MARKS, "negative"]
    return table(rows, columns, rows_shown=None) + "\n\ntimes in seconds"


def listed(
    counts: Sequence[Mapping[str, Any]],
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[str],
    none: str,
) -> str:
    """How many rows there are of each kind, and the first of them; ``none`` in words."""
    if not rows:
        return none
    return "\n\n".join([table(counts, list(counts[0])), table(rows, columns)])


def table(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str], rows_shown: int | None = _SHOWN
) -> str:
    """A table of the first rows, which says how many more there are."""
    shown = output.table([_rounded(row) for row in rows[:rows_shown]], columns)
    left = len(rows) - len(rows[:rows_shown])
    more = f"\nand {output.counted(left, 'more row')}; --json gives all" if left else ""
    return shown + more


def _rounded(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row whose numbers fit a table: six digits that count."""
    return {
        name: float(f"{value:.6g}") if isinstance(value, float) else value
        for name, value in row.items()
    }
