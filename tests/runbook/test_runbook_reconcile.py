"""The runbook reconcile and its notebook on a world with a story a cause."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import plan_worlds as worlds
import pytest

from tallybook import ops
from tallybook.cli.main import main
from tallybook.errors import BadInput, TallybookError
from tallybook.recover.plans import procedure
from tallybook.runbook import Trial, trial

ROOT = Path(__file__).parents[2]
CAUSES = {
    "dead": 2, "changed_in_cloud": 1, "removed_in_cloud": 1, "added_in_cloud": 1,
    "removed_here": 1, "never_enqueued": 2, "applied_twice": 1, "overdue": 1, "cancelled": 1,
    "not_cached": 1,
}  # fmt: skip


@pytest.fixture
def world(tmp_path: Path) -> tuple[Path, Path]:
    """The book and the export of a world whose stories were told to their end."""
    made, export = worlds.ended(tmp_path)
    made.book.close()
    return tmp_path / "book", export


def asked(
    world: tuple[Path, Path], name: str = "runbooks/reconcile", **parameters: object
) -> Trial:
    book, export = world
    path = ROOT / f"{name}.ipynb"
    return trial(path, book=str(book), export=str(export), key="id", **parameters)


def digests(book: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in book.rglob("*") if path.is_file()}


def test_it_finds_each_cause_and_a_dry_run_changes_nothing(world: tuple[Path, Path]) -> None:
    before = digests(world[0])
    tried = asked(world)
    assert dict(tried.shown["causes"].select("cause", "rows").iter_rows()) == CAUSES
    found = {one["kind"]: set(one["ids"]) for one in tried.answer.findings}
    assert found["changed"] == {"changed", "dead_update", "never_since", "twice"}
    assert found["missing"] == {"cancelled", "dead", "never", "removed", "waiting"}
    assert found["extra"] == {"added", "forgotten", "uncached"}
    (changed,) = [one for one in tried.answer.findings if one["kind"] == "changed"]
    assert "dead: 1 row" in changed["evidence"]
    assert tried.shown["act"].words == "nothing was changed; 8 keys would be repaired"
    plan = {row["key"]: row for row in tried.shown["plan"].table.to_dicts()}
    assert plan["removed"]["action"] == "leave" and "--covers" in plan["removed"]["why"]
    assert tried.shown["after"].is_empty()
    assert "nothing to take back" in tried.shown["undo"]
    assert digests(world[0]) == before


def test_it_applies_the_plan_and_what_it_shows_takes_it_back(
    world: tuple[Path, Path], tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    done = asked(world, policy="server", dry_run=False, runs=str(runs))
    assert done.shown["after"]["now"].unique().to_list() == ["match"]
    (left,) = [one for one in done.answer.findings if one["kind"] not in ("covered",)]
    assert (left["kind"], left["ids"]) == ("missing", ["waiting"]), "its job is still open"
    (line,) = (runs / "reconciliations.ndjson").read_text().splitlines()
    assert json.loads(line)["causes"] == {"overdue": 1}
    undo = shlex.split(done.shown["undo"])
    assert undo[:3] == ["tallybook", "plan", "undo"]
    assert main(undo[1:]) == 0
    tried = asked(world)
    assert tried.shown["causes"]["rows"].sum() == sum(CAUSES.values())


def test_it_fails_where_a_key_still_differs_after_the_plan(world: tuple[Path, Path]) -> None:
    tried = asked(world, policy="server", dry_run=False)
    plan, done = tried.shown["plan"], tried.shown["act"]
    book, export = world
    export.write_text(export.read_text().replace("changed,7", "changed,8"))
    with ops.open(book) as warehouse:
        again = ops.explain(warehouse, export, key="id")
    with pytest.raises(TallybookError, match=r"1 key of .* still differ after the plan: changed"):
        procedure.after(plan, done, again)


def test_the_notebook_follows_one_row_of_a_cause(world: tuple[Path, Path]) -> None:
    tried = asked(world, "notebooks/reconcile_explore", cause="dead", row="dead_update")
    assert tried.shown["rows"]["key"].to_list() == ["dead_update", "dead"]
    assert tried.shown["cells"].rows() == [("dead_update", "x", "2", "1")]
    assert tried.shown["trace"]["event"].to_list()[-1] == "job.dead"
    with pytest.raises(BadInput, match="no cause 'tired'"):
        asked(world, "notebooks/reconcile_explore", cause="tired")
    with pytest.raises(BadInput, match="none of those that differ here"):
        asked(world, "notebooks/reconcile_explore", row="replayed")
