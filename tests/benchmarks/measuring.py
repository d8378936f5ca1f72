"""Measuring ours beside a baseline: interleaved rounds, medians, and the ratio that counts."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. ``ratio`` is such that more is always better."""

    name: str
    ours: float
    baseline: float
    baseline_name: str
    unit: str
    target: float

    @property
    def ratio(self) -> float:
        """ours / baseline of a rate, baseline / ours of a time or a size."""
        rate = self.unit.endswith("/s")
        return self.ours / self.baseline if rate else self.baseline / self.ours

    @property
    def holds(self) -> bool:
        """Whether the target is met."""
        return self.ratio >= self.target

    def as_json(self) -> dict[str, Any]:
        """The row as build/bench.json has it."""
        return asdict(self) | {"ratio": round(self.ratio, 3), "holds": self.holds}

    def line(self) -> str:
        """The row as a person reads it."""
        mark = "holds" if self.holds else "MISSED"
        return (
            f"{self.name:<46} {self.ours:>12,.4g} {self.unit:<6} beside {self.baseline:>10,.4g} "
            f"{self.baseline_name:<26} ratio {self.ratio:5.2f}  target {self.target:.2f}  {mark}"
        )


def beside(
    ours: Callable[[], float], baseline: Callable[[], float], rounds: int = ROUNDS
) -> tuple[float, float]:
    """Medians of both, run in turn: A B A B …"""
    pairs = [(ours(), baseline()) for _ in range(rounds)]
    return statistics.median(p[0] for p in pairs), statistics.median(p[1] for p in pairs)
