"""Runbooks and notebooks on an imported book: every cell runs, and what is not known is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from import_steps import SAMPLES

from tallybook.errors import BadInput
from tallybook.ops import imports

ROOT = Path(__file__).parents[2]
NAMES = ("runbooks/throughput_latency", "runbooks/stuck_leases", "runbooks/cache_rebuild",
         "notebooks/incident")  # fmt: skip


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("imported") / "book"
    imports.import_jobs([SAMPLES / "slurm.txt"], "slurm", root)
    return root


def run(name: str, book: Path) -> Any:
    """What the last cell of a notebook gives, its cells run one after the other."""
    notebook = json.loads((ROOT / f"{name}.ipynb").read_text("utf-8"))
    known: dict[str, Any] = {}
    *cells, last = ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]
    for at, source in enumerate(cells):
        # Charts are made, not drawn: that they can be is seen elsewhere, and takes seconds.
        exec(source.replace("ops.charts.show(", "("), known)  # noqa: S102 - our own notebooks
        known |= {"book": str(book)} if at == 0 else {}
    *before, answer = last.rsplit("answer(", 1)
    exec(before[0] + "found_answer = answer(" + answer, known)  # noqa: S102 - our own notebooks
    known["warehouse"].close()
    return known["found_answer"]


@pytest.mark.parametrize("name", NAMES)
def test_each_cell_runs_and_the_answer_says_what_the_log_cannot(name: str, book: Path) -> None:
    answer = run(name, book)
    assert answer.status == ("findings" if "throughput" in name else "clean")
    titles = [found["title"] for found in answer.findings]
    assert "An imported log says nothing of a cache" in titles


def test_reconcile_says_that_there_is_no_cache_to_compare(book: Path) -> None:
    with pytest.raises(BadInput, match="says nothing of a cache, so there is nothing to compare"):
        run("runbooks/reconcile", book)
