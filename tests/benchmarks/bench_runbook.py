"""How quickly a runbook starts: beside papermill alone, five on one kernel beside five on their
own, and what ledger and report cost."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.measuring import Figure, Row, interleaved

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "data-samples" / "book"
FIVE = ("throughput_latency", "stuck_leases", "reconcile", "cache_rebuild", "dead_letters")
ALLOWED_S = 0.5
REPORT_S = 1.0
WARM = 3.0
PAPERMILL = """
import sys, papermill
papermill.execute_notebook(sys.argv[1], sys.argv[2], progress_bar=False)
"""
AFTER = """
import sys, time
from tallybook import runbook
from tallybook.runbook import engine
execute, ended = engine.execute, []

def timed(*given):
    failure = execute(*given)
    ended.append(time.perf_counter())
    return failure

engine.execute = timed
runbook.run(sys.argv[1], book=sys.argv[2], out=sys.argv[3])
print(time.perf_counter() - ended[0])
"""


def measure(full: bool) -> Iterator[Row]:
    """Three rows: the runner, a warm row of five, ledger and report."""
    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        trivial = _trivial(place / "trivial.ipynb")
        rounds = 5 if full else 3
        ran = {"ours": lambda: _run(place, str(trivial)), "papermill": lambda: _papermill(trivial)}
        got = interleaved(ran, rounds)
        target = got["papermill"].median / (got["papermill"].median + ALLOWED_S)
        name = "a runbook with a trivial cell"
        yield Row.beside(name, got["ours"], got["papermill"], "papermill alone", "s", target)
        many = {"warm": lambda: _run(place, *FIVE), "cold": lambda: _cold(place)}
        got = interleaved(many, 3 if full else 1)
        cold = "the five one by one"
        yield Row.beside("five runbooks in a row", got["warm"], got["cold"], cold, "s", WARM)
        after = Figure.of([_after(place) for _ in range(rounds if full else 1)])
        allowed = Figure.of([REPORT_S])
        yield Row.beside("ledger, report and index of a run", after, allowed, "allowed", "s", 1.0)


def _trivial(path: Path) -> Path:
    """A notebook of one cell that answers nothing."""
    stored = json.loads((ROOT / "runbooks" / "stuck_leases.ipynb").read_text("utf-8"))
    cell = next(one for one in stored["cells"] if one["cell_type"] == "code")
    source = "from tallybook.runbook import answer\nanswer([])"
    stored["cells"] = [{**cell, "metadata": {}, "source": source}]
    path.write_text(json.dumps(stored), "utf-8")
    return path


def _run(place: Path, *names: str) -> float:
    paths = [name if name.endswith(".ipynb") else str(_stored(name)) for name in names]
    options = ["--book", str(SAMPLE), "--out", str(place / "out")]
    began = time.perf_counter()
    command = [sys.executable, "-m", "tallybook", "runbook", "run", *paths, *options]
    ended = subprocess.run(command, capture_output=True, text=True)
    seconds = time.perf_counter() - began
    if ended.returncode not in (0, 1):
        raise RuntimeError(ended.stderr)
    shutil.rmtree(place / "out")
    return seconds


def _cold(place: Path) -> float:
    return sum(_run(place, name) for name in FIVE)


def _papermill(notebook: Path) -> float:
    began = time.perf_counter()
    out = str(notebook.with_suffix(".out.ipynb"))
    command = [sys.executable, "-c", PAPERMILL, str(notebook), out]
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - began


def _after(place: Path) -> float:
    path = _stored("throughput_latency")
    command = [sys.executable, "-c", AFTER, str(path), str(SAMPLE), str(place / "out")]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(ended.stdout)


def _stored(name: str) -> Path:
    return ROOT / "runbooks" / f"{name}.ipynb"
