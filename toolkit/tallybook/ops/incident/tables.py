"""The small tables of a span: made once from the log, so that a brush reads no event."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tallybook.ops import questions, windows
from tallybook.ops.warehouse import Warehouse
from tallybook.ops.windows import EPOCH, MICROSECOND, WHOLE, Span
from tallybook.statements import load

_MOST_GRAINS = 600
_MADE = (
    "jobs",
    "held",
    "names",
    "leases",
    "taken",
    "cells",
    "bands",
    "flows",
    "lanes",
    "queue",
    "cache",
)
_NEEDED_ONCE = ("jobs", "held")
_STATEMENTS = load("tallybook.ops.incident", "tables.sql")


@dataclass(frozen=True, slots=True)
class Grains:
    """The steps of time that a span is counted in: ``count`` of them, each ``step`` long."""

    since: datetime
    step: timedelta
    count: int
    zone: str = "UTC"

    @property
    def until(self) -> datetime:
        """The end of the last one, not part of it."""
        return self.since + self.count * self.step

    def start(self, grain: int) -> datetime:
        """When a grain begins."""
        return self.since + grain * self.step

    def parameters(self) -> dict[str, int]:
        """What a statement takes, in microseconds."""
        return {
            "since": (self.since - EPOCH) // MICROSECOND,
            "until": (self.until - EPOCH) // MICROSECOND,
            "grain": self.step // MICROSECOND,
        }


def over(warehouse: Warehouse, span: Span = WHOLE) -> Grains:
    """At most some 600 grains over the span, which begins and ends with one of them."""
    start, end = questions.reach(warehouse, span)
    step = windows.step_of(end - start, _MOST_GRAINS)
    first = (start - EPOCH) // step
    return Grains((EPOCH + first * step).astimezone(UTC), step, -(-(end - EPOCH) // step) - first,
                  span.zone)  # fmt: skip


def make(warehouse: Warehouse, grains: Grains) -> Warehouse:
    """The warehouse with the small tables of the span beside it, for the questions of this room."""
    beside = warehouse.apart()
    try:
        for name in _MADE:
            text = _STATEMENTS[name]
            given = {key: one for key, one in grains.parameters().items() if f"${key}" in text}
            beside.sql(text, given)
        for name in _NEEDED_ONCE:
            beside.sql(f"drop table incident_{name}")
    except BaseException:
        beside.close()
        raise
    return beside
