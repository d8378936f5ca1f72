"""Measuring ours beside baselines: interleaved rounds, each in a fresh process with a fresh store,
medians, and the ratio that counts."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROUNDS = 5
WORKSHOP = Path("build") / "bench"


@dataclass(frozen=True, slots=True)
class Figure:
    """A median and the range that it comes from."""

    median: float
    lowest: float
    highest: float

    @classmethod
    def of(cls, values: list[float]) -> Figure:
        """The figure of some rounds."""
        return cls(statistics.median(values), min(values), max(values))


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. ``ratio`` is such that more is always better."""

    name: str
    ours: float
    baseline: float
    baseline_name: str
    unit: str
    target: float
    range: tuple[float, float] | None = None

    @classmethod
    def beside(
        cls, name: str, ours: Figure, baseline: Figure, baseline_name: str, unit: str, target: float
    ) -> Row:
        """The row of two figures."""
        spread = (ours.lowest, ours.highest)
        return cls(name, ours.median, baseline.median, baseline_name, unit, target, spread)

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
        spread = "{:,.4g} to {:,.4g}".format(*self.range) if self.range else ""
        return (
            f"{self.name:<66} {self.ours:>9,.4g} {self.unit:<5} ({spread:>16}) beside "
            f"{self.baseline:>9,.4g} {self.baseline_name:<30} "
            f"ratio {self.ratio:5.2f} target {self.target:5.2f} {mark}"
        )


def stage(name: str, jobs: int, durability: str = "full", **asked: Any) -> Callable[[], float]:
    """A measurement to be run in a process and a folder of its own; ``name`` as in ``stages``."""

    def run() -> float:
        WORKSHOP.mkdir(parents=True, exist_ok=True)
        folder = tempfile.mkdtemp(dir=WORKSHOP)
        order = {"name": name, "jobs": jobs, "durability": durability, "folder": folder} | asked
        command = [sys.executable, "-m", "tests.benchmarks.stages", json.dumps(order)]
        try:
            told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        finally:
            shutil.rmtree(folder)
        return float(told)

    return run


def interleaved(
    stages: Mapping[str, Callable[[], float]], rounds: int = ROUNDS
) -> dict[str, Figure]:
    """Each stage once a round, A B C A B C …, as figures by name."""
    taken: dict[str, list[float]] = {name: [] for name in stages}
    for _ in range(rounds):
        for name, run in stages.items():
            taken[name].append(run())
    return {name: Figure.of(values) for name, values in taken.items()}
