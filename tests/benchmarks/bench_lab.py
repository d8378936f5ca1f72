"""The incident notebook: how soon its first chart stands, and how long a brush takes.

The baseline is what was promised: 5 s from a new interpreter to the first chart on the sample book,
1 s from a brush to everything that follows it. A brush counts the questions, the charts and the
tables, all that the kernel does; the browser's drawing comes on top.
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.benchmarks.logs import write_book
from tests.benchmarks.measuring import WORKSHOP, Figure, Row

from tallybook.lab import offline, open_incident
from tallybook.ops import Span

SAMPLE = Path("data-samples") / "book"
FIRST_S, BRUSH_S, TURN_S = 5.0, 1.0, 1.0
_FIRST = "from tallybook import lab; lab.open_incident('{book}').linked"
_BRUSHES = 12


def measure(full: bool) -> Iterator[Row]:
    """First chart on the sample book; brushes on 2 million events, on 20 million with ``full``."""
    events = 20_000_000 if full else 2_000_000
    WORKSHOP.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=WORKSHOP)).resolve()
    try:
        yield _first(folder)
        write_book(folder / "book", events)
        yield from _brushes(folder, f"{events // 1_000_000} million events")
    finally:
        shutil.rmtree(folder)


def _first(folder: Path) -> Row:
    """As ``tallybook lab`` has it: the scripts of the charts are there from its start."""
    scripts = offline.scripts(folder / "out")
    scripts.parent.mkdir(parents=True)
    offline.write(scripts)
    environment = {**os.environ, offline.OUT: str(folder / "out")}
    command = [sys.executable, "-c", _FIRST.format(book=SAMPLE.resolve())]
    took = []
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run(command, env=environment, check=True)
        took.append(time.perf_counter() - start)
    return _row("lab: first chart, sample book, new interpreter", took, FIRST_S)


def _brushes(folder: Path, of: str) -> Iterator[Row]:
    start = time.perf_counter()
    view = open_incident(folder / "book", Span(), out=folder / "out")
    sys.stdout.write(f"  opened and counted in {time.perf_counter() - start:,.1f} s, {of}\n")
    dice, count = random.Random(1), view.incident.grains.count  # noqa: S311 - a benchmark
    brushes, turns = [], []
    for number in range(_BRUSHES):
        first = dice.randrange(count - 1)
        last = dice.randrange(first + 1, count) if number else count
        first = first if number else 1
        edges = view.incident.grains.start(first), view.incident.grains.start(last)
        brushes.append(_seconds(lambda edges=edges: view.select(*edges)))
        turns.append(_seconds(lambda at=edges[0]: view.as_of(at)))
    view.close()
    yield _row(f"lab: a brush and all that follows, {of}", brushes, BRUSH_S)
    yield _row(f"lab: the slowest brush of {_BRUSHES}, {of}", [max(brushes)], BRUSH_S)
    yield _row(f"lab: a turn of the slider, {of}", turns, TURN_S)


def _row(name: str, took: list[float], promised: float) -> Row:
    figure = Figure(statistics.median(took), min(took), max(took))
    return Row.beside(name, figure, Figure.of([promised]), "as promised", "s", 1.0)


def _seconds(do: Callable[[], object]) -> float:
    start = time.perf_counter()
    do()
    return time.perf_counter() - start
