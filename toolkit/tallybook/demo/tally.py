"""The tally: what was planted against what was found, in ten kinds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tallybook.demo.airports import record_of

KINDS = (
    "answer_lost",
    "retried",
    "dead",
    "stuck_lease",
    "late_settle_refused",
    "delivered_twice",
    "changed",
    "missing",
    "extra",
    "rebuilt",
)
_NAMED = 5


@dataclass(frozen=True, slots=True)
class Row:
    """One kind: the records in which it was planted, and those in which it was found."""

    kind: str
    planted: tuple[str, ...]
    found: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether both sides are the same records, at least one."""
        return bool(self.planted) and self.planted == self.found

    def difference(self) -> str:
        """One line that names what differs; empty when the row holds."""
        if self.holds:
            return ""
        if not self.planted and not self.found:
            return f"{self.kind}: nothing was planted and nothing was found"
        sides = {
            "planted, not found": sorted(set(self.planted) - set(self.found)),
            "found, not planted": sorted(set(self.found) - set(self.planted)),
        }
        told = [f"{side}: {_some(records)}" for side, records in sides.items() if records]
        return f"{self.kind}: {'; '.join(told)}"

    def as_json(self) -> dict[str, Any]:
        """The row as ``tallybook demo --json`` prints it."""
        return {"kind": self.kind, "planted": list(self.planted), "found": list(self.found)}


def tally(
    planted: Mapping[str, Iterable[str]], findings: Iterable[tuple[str, Iterable[str]]]
) -> tuple[Row, ...]:
    """Ten rows from the ledgers by kind and the findings as (kind, ids)."""
    found: dict[str, set[str]] = {kind: set() for kind in KINDS}
    for kind, ids in findings:
        if kind in found:
            found[kind] |= {record_of(one) for one in ids}
    return tuple(
        Row(kind, tuple(sorted(set(planted.get(kind, ())))), tuple(sorted(found[kind])))
        for kind in KINDS
    )


def table(rows: Iterable[Row]) -> str:
    """The table for a person: a line a kind, how many were planted and found."""
    lines = [f"{'kind':<20} {'planted':>8} | {'found':<8}"]
    for row in rows:
        mark = "" if row.holds else "  differs"
        lines.append(f"{row.kind:<20} {len(row.planted):>8} | {len(row.found):<8}{mark}".rstrip())
    return "\n".join(lines)


def _some(records: list[str]) -> str:
    more = f" and {len(records) - _NAMED} more" if len(records) > _NAMED else ""
    return ", ".join(records[:_NAMED]) + more
