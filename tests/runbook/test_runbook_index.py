"""The page of all runs: what each found, where its report is, how its figures went."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from runbook_notebooks import answering, notebook

from tallybook import runbook
from tallybook.runbook import index
from tallybook.runbook.answers import answer, carried_by
from tallybook.runbook.kernels import Warm


def run_of(number: int, **more: Any) -> dict[str, Any]:
    told = {
        "run": f"small-{number}",
        "runbook": "small",
        "status": "clean",
        "started_at": f"2026-11-{number:02}T10:00:00.000000Z",
        "duration_s": number / 2,
        "findings": {"problem": number % 3, "warning": 0, "info": 1},
        "book": "<book>",
    }
    return told | more


def test_every_run_stands_in_the_index_newest_first_and_leads_to_its_report(
    place: Path, warm: Warm
) -> None:
    path = notebook(place / "small.ipynb", answering("problem"))
    results = [runbook.run(path, warm=warm) for _ in range(2)]
    page = (place / "tallybook-out" / "node-7" / "index.html").read_text("utf-8")
    links = re.findall(r'href="([^"]+)"', page)
    assert links == [f"reports/{one.folder.name}/report.html" for one in reversed(results)]
    assert page.count("<circle") >= 4


def test_a_figure_of_several_runs_has_a_trend_and_one_of_a_single_run_has_none(
    tmp_path: Path,
) -> None:
    runs = [
        run_of(n, figures={"wait_p95_s": n, "jobs": 5} if n < 3 else {"late": 1}) for n in (1, 2, 3)
    ]
    page = index.render(runs, tmp_path)
    told = re.findall(r"<figcaption>([^<]+)</figcaption>", page)
    assert told == [
        "problems: 0, at most 2",
        "warnings: 0, at most 0",
        "seconds: 1.5, at most 1.5",
        "wait_p95_s: 2, at most 2",
        "jobs: 5, at most 5",
    ]
    assert "not kept" in page and "&lt;book&gt;" in page


def test_runs_that_ended_without_a_word_or_under_another_shape_are_shown(tmp_path: Path) -> None:
    runs = [
        {"run": "../../x", "runbook": "small", "status": "interrupted"},
        {"run": "y", "runbook": "small", "status": "<b>", "duration_s": "long", "findings": None},
    ]
    page = index.render(runs, tmp_path)
    assert "interrupted" in page and "&lt;b&gt;" in page and "href" not in page


def test_with_many_runs_the_newest_are_shown_and_the_others_counted(tmp_path: Path) -> None:
    runs = [run_of(1, run=f"small-{n}", started_at=f"{n}") for n in range(230)]
    page = index.render(runs, tmp_path)
    assert page.count("<tr>") == 201 and "and 30 before" in page
    assert "230 runs of 1 runbook<" in page


def test_figures_of_an_answer_are_its_finite_numbers() -> None:
    told = {"n": 3, "wait_p95_s": 1.5, "none": None, "nan": float("nan"), "flag": True}
    made = answer([], figures=told)
    assert made.figures == {"n": 3, "wait_p95_s": 1.5}
    carried = carried_by([{"data": made._repr_mimebundle_()}])
    assert carried and carried.figures == made.figures
