"""What is changed, deleted and added in the cloud behind the system's back: pure, by seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tallybook.demo.faults import lowest

SHARE = 0.01
AT_LEAST = 3


def tampering(
    seed: int, rows: Mapping[str, Mapping[str, Any]], known: Sequence[str]
) -> dict[str, list[Any]]:
    """The order for the cloud, from the rows that it has by code.

    An added row takes a code that is none of ``known``.
    """
    count = max(AT_LEAST, round(len(rows) * SHARE))
    changed = lowest(seed, "changed", rows, count)
    left = set(rows) - set(changed)
    deleted = lowest(seed, "missing", left, count)
    copied = lowest(seed, "extra", left - set(deleted), count)
    return {
        "change": [_changed(rows[record], rank) for rank, record in enumerate(changed)],
        "delete": list(deleted),
        "add": [
            {**rows[record], "icao": code}
            for record, code in zip(copied, _unused(known, len(copied)), strict=True)
        ],
    }


def _changed(row: Mapping[str, Any], rank: int) -> dict[str, Any]:
    """By turns a number, a text, a text made null, and two cells at once."""
    renamed, higher = f"{row['name']} (closed)", row["elevation"] + 1
    cells: tuple[dict[str, Any], ...] = (
        {"elevation": higher},
        {"name": renamed},
        {"city": None},
        {"name": renamed, "elevation": higher},
    )
    return {"icao": row["icao"], **cells[rank % len(cells)]}


def _unused(known: Sequence[str], count: int) -> list[str]:
    taken = set(known)
    numbers = (f"ZZ{number:04d}" for number in range(count + len(taken)))
    return [code for code in numbers if code not in taken][:count]
