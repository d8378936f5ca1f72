"""The notebooks as they are stored: no outputs, stable ids, thin cells, a question, an answer."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tallybook.runbook import making, shape
from tallybook.runbook.catalogue import read

ROOT = Path(__file__).parents[2]
RUNBOOKS = sorted((ROOT / "runbooks").glob("*.ipynb"))
STORED = [*RUNBOOKS, *sorted((ROOT / "notebooks").glob("*.ipynb"))]
LONGEST = 12

every = pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)


def cells(path: Path) -> list[dict[str, Any]]:
    return list(json.loads(path.read_text("utf-8"))["cells"])


def code(path: Path) -> list[dict[str, Any]]:
    return [cell for cell in cells(path) if cell["cell_type"] == "code"]


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def test_the_nine_runbooks_and_the_incident_notebook_are_here() -> None:
    assert [path.stem for path in RUNBOOKS] == [
        "backlog",
        "cache_rebuild",
        "dead_letters",
        "log_health",
        "reconcile",
        "settings_review",
        "stuck_leases",
        "throughput_latency",
        "weekly_review",
    ]
    assert "incident" in [path.stem for path in STORED]


@every
def test_it_is_stored_without_outputs_and_counts(path: Path) -> None:
    for cell in code(path):
        assert (cell["outputs"], cell["execution_count"]) == ([], None)
    assert "papermill" not in json.loads(path.read_text("utf-8"))["metadata"]


@every
def test_its_cells_have_ids_that_say_what_they_are(path: Path) -> None:
    ids = [cell["id"] for cell in cells(path)]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[a-z][a-z-]{2,40}", one) for one in ids), ids


@every
def test_it_begins_with_the_question_and_the_parameters(path: Path) -> None:
    question, parameters, *rest = cells(path)
    assert question["cell_type"] == "markdown" and source(question).startswith("# ")
    assert read(path).question.endswith("?")
    assert parameters["metadata"]["tags"] == ["parameters"]
    assert not any(cell["metadata"].get("tags") for cell in rest)


@every
def test_every_parameter_says_what_it_means_and_book_is_one(path: Path) -> None:
    runbook = read(path)
    assert runbook.takes("book")
    assert all(parameter.meaning for parameter in runbook.parameters)


@every
def test_a_cell_calls_and_does_not_compute(path: Path) -> None:
    loops = (ast.For, ast.While, ast.FunctionDef, ast.ListComp, ast.DictComp, ast.Lambda, ast.BinOp)
    for cell in code(path):
        assert len(source(cell).splitlines()) <= LONGEST
        found = [node for node in ast.walk(ast.parse(source(cell))) if isinstance(node, loops)]
        assert not found, source(cell)


@every
def test_its_last_cell_is_the_answer(path: Path) -> None:
    assert re.search(r"^answer\(", source(cells(path)[-1]), re.MULTILINE)


@every
def test_its_kernel_is_the_plain_python(path: Path) -> None:
    metadata = json.loads(path.read_text("utf-8"))["metadata"]
    assert metadata["kernelspec"]["name"] == "python3"


@pytest.mark.parametrize("path", RUNBOOKS, ids=lambda path: path.stem)
def test_a_runbook_has_the_shape_that_all_have(path: Path) -> None:
    assert shape.faults(path) == []


SPOILED: list[tuple[str, str, str]] = [
    ("jobs of this window?", "jobs of this window.", "asks no question"),
    ("**Use it when**", "Use it", "does not say when to use it"),
    ("# {title}", "{title}", "first cell is no heading"),
    ("book = ", "books = ", "no parameter book"),
    ("  # [time] begin of the window; empty = the first event", "", "since says not what it means"),
    ("## Undo", "## Undone", "not these headings once, in this order"),
    ("found = ops.open_jobs(warehouse, span)", "found = [1 for _ in span]", "open-jobs computes"),
    ("seen = ", "\n" * 12 + "seen = ", "covered has more than 12 lines"),
    ("answer(serious", "print(serious", "last cell is not answer"),
    ("found = ops", "acting.act(1)\nfound = ops", "dry_run = True is not its default"),
]


@pytest.mark.parametrize(("good", "bad", "said"), SPOILED, ids=[said for *_, said in SPOILED])
def test_what_lacks_the_shape_is_told(
    good: str, bad: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = making.make("mine")
    good, bad = (text.replace("{title}", "Mine") for text in (good, bad))
    stored = json.loads(path.read_text())
    for cell in stored["cells"]:
        cell["source"] = "".join(cell["source"]).replace(good, bad)
    path.write_text(json.dumps(stored))
    assert any(said in fault for fault in shape.faults(path)), shape.faults(path)


def test_outputs_tags_and_cells_without_a_name_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = making.make("mine")
    stored = json.loads(path.read_text())
    stored["cells"][3]["execution_count"] = 1
    stored["cells"][4]["id"] = "8f3a"
    stored["cells"][5]["metadata"]["tags"] = ["parameters"]
    path.write_text(json.dumps(stored))
    outputs, ids, tags = shape.faults(path)
    assert "clear them" in outputs and "no ids" in ids and "no other, is tagged" in tags


@every
def test_it_and_its_parameters_are_in_the_docs(path: Path) -> None:
    docs = (ROOT / "docs" / "runbooks.md").read_text("utf-8")
    assert path.stem in docs
    missing = [one.name for one in read(path).parameters if f"`{one.name}`" not in docs]
    assert not missing
