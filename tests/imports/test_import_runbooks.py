"""Runbooks and notebooks on an imported book: every cell runs, and what is not known is said."""

from __future__ import annotations

import ast
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars
import pytest
from import_steps import SAMPLES

from tallybook import layout, ops
from tallybook.errors import BadInput
from tallybook.lab import offline
from tallybook.ops import imports
from tallybook.runbook import folder

ROOT = Path(__file__).parents[2]
CACHE = "An imported log says nothing of a cache"
LEASES = "An imported log without lease ends: no lease can be called late, expired or orphaned"
SETTINGS = "An imported log says nothing of the settings of its queue"
METRICS = "An imported log has no metrics of workers"
NOTHING = f"{CACHE}: there is nothing to compare"
WITH_A_DEAD_JOB = ("throughput_latency", "dead_letters", "weekly_review")
SAID = {
    "runbooks/throughput_latency": {"metrics-gap": METRICS},
    "runbooks/stuck_leases": {"late": LEASES, "settings": SETTINGS},
    "runbooks/cache_rebuild": {"parity": CACHE, "entries": CACHE},
    "runbooks/reconcile": {"compare": NOTHING, "differences": NOTHING, "rows": NOTHING},
    "runbooks/settings_review": {"settings": SETTINGS},
    "runbooks/dead_letters": {},
    "runbooks/backlog": {},
    "runbooks/log_health": {},
    "runbooks/weekly_review": {},
    "notebooks/incident": {"stuck": LEASES},
    "notebooks/capacity": {},
    "notebooks/cache_history": {"changes": CACHE, "then": CACHE},
    "notebooks/sql": {},
}


@pytest.fixture(scope="module", autouse=True)
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Widgets take the scripts that are there: to put them together takes seconds."""
    kept = offline.scripts(tmp_path_factory.mktemp("out"))
    kept.parent.mkdir()
    kept.touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(offline.OUT, str(kept.parent.parent))
        yield


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("imported") / "book"
    imports.import_jobs([SAMPLES / "slurm.txt"], "slurm", root)
    return root


def run(name: str, book: Path) -> dict[str, Any]:
    """What each code cell of a notebook gives, by its id, its cells run one after the other."""
    notebook = json.loads((ROOT / f"{name}.ipynb").read_text("utf-8"))
    known: dict[str, Any] = {}
    given = {cell["id"]: result("".join(cell["source"]), known, book)
             for cell in notebook["cells"] if cell["cell_type"] == "code"}  # fmt: skip
    (known.get("warehouse") or known["incident"]).close()
    return given


def result(source: str, known: dict[str, Any], book: Path) -> Any:
    """The value of a cell's last expression. Charts are made, not drawn: that takes seconds."""
    tree = ast.parse(source.replace("ops.charts.show(", "("))
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), known)  # noqa: S102 - our own notebooks
    if "parameters" not in known:
        known |= {"book": str(book), "parameters": True}
    if last is None:
        return None
    assert isinstance(last, ast.Expr)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), known)  # noqa: S307 - as above


@pytest.mark.parametrize("name", SAID)
def test_each_cell_says_what_the_log_cannot_and_shows_no_table_that_could_only_be_empty(
    name: str, book: Path
) -> None:
    given = run(name, book)
    said = {cell: shown.words for cell, shown in given.items() if hasattr(shown, "words")}
    assert {cell: said[cell] for cell in SAID[name]} == SAID[name]
    answer = given["answer"]
    assert answer.status == ("findings" if name.endswith(WITH_A_DEAD_JOB) else "clean")
    titles = [found["title"] for found in answer.findings]
    assert len(titles) == len(set(titles)) and any(title.startswith(CACHE) for title in titles)


def test_charts_of_a_reconciliation_say_that_there_is_no_cache(book: Path) -> None:
    given = run("runbooks/reconcile", book)
    for cell in ("status-chart", "columns-chart"):
        assert NOTHING in json.dumps(given[cell].to_dict())


def test_rows_stay_rows_where_there_are_some_or_the_log_could_have_had_them(book: Path) -> None:
    some, none = polars.DataFrame({"n": [1]}), polars.DataFrame({"n": []})
    with ops.open(book) as warehouse:
        assert ops.or_silence(warehouse, "cache", some) is some
        assert ops.or_silence(warehouse, "workers", none) is none
        overview = ops.overview(warehouse).row(0, named=True)
    assert overview["cache_keys"] is None and overview["jobs"] == 5


@pytest.mark.parametrize("name", [name for name in SAID if not name.endswith("/reconcile")])
def test_each_runbook_takes_a_folder_of_nodes(name: str, book: Path, tmp_path: Path) -> None:
    for node in ("a", "b"):
        shutil.copytree(book, tmp_path / f"node={node}")
    given = run(name, tmp_path)
    assert given["overview"]["jobs"].item() == 10 if "overview" in given else given["covered"].seen
    titles = " | ".join(found["title"] for found in given["answer"].findings)
    assert "node a: an imported log says nothing of a cache" in titles
    assert LEASES in titles or "leases" not in name
    if name.endswith("cache_rebuild"):
        assert given["plan"].words.startswith("A fleet has no state.db: rebuild that of a node")


def test_a_run_and_the_lab_take_a_book_a_folder_of_nodes_or_a_bucket(tmp_path: Path) -> None:
    (tmp_path / "fleet" / "node=a" / "log").mkdir(parents=True)
    named = layout.require_readable(tmp_path / "fleet")
    assert (named, folder.node_of(named)) == (tmp_path / "fleet", "fleet")
    for given in ("s3://some/where", Path("s3://some/where")):
        named = layout.require_readable(given)
        assert (named, folder.node_of(named)) == ("s3://some/where", "fleet")
    with pytest.raises(BadInput, match="that folder has no log/ in it"):
        layout.require_readable(tmp_path)
