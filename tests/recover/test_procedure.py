"""The runbook ``cache_rebuild``, cell by cell: before, plan, act, after, answer."""

from __future__ import annotations

import ast
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from recover_logs import HandLog, lines, write

from tallybook.errors import TallybookError
from tallybook.recover import procedure

RUNBOOK = Path(__file__).parents[2] / "runbooks" / "cache_rebuild.ipynb"


def ran(book: Path, **parameters: Any) -> dict[str, Any]:
    """What the cells leave, run one after the other with no kernel; ``shown`` by cell."""
    room: dict[str, Any] = {}
    shown: dict[str, Any] = {}
    for cell in json.loads(RUNBOOK.read_text())["cells"]:
        if cell["cell_type"] != "code" or "charts" in "".join(cell["source"]):
            continue
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, cell["id"], "exec"), room)  # noqa: S102 - the cells of our runbook
        if cell["id"] == "parameters":
            room.update({"book": str(book)} | parameters)
        if isinstance(last, ast.Expr):
            expression = ast.Expression(last.value)
            shown[cell["id"]] = eval(compile(expression, cell["id"], "eval"), room)  # noqa: S307
    return room | {"shown": shown}


def with_hole(root: Path) -> Path:
    """A book with a planted hole: `old` was written before it, `new` after it."""
    log = HandLog(root)
    log.live([("put", "old", 1), ("put", "lost", 1), ("put", "new", 2)])
    (path,) = (root / "log").iterdir()
    write(path, [line for line in lines(path) if b'"seq":3' not in line])
    return root


def test_on_a_book_with_a_planted_hole_the_plan_names_it_and_nothing_is_changed(
    tmp_path: Path,
) -> None:
    root = with_hole(tmp_path / "b")
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    room = ran(root)
    assert before == {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    assert room["shown"]["rebuild"].words == "dry_run: nothing was changed"
    answer = room["shown"]["answer"]
    assert answer.status == "incomplete"
    unknown = next(one for one in answer.findings if one["kind"] == "unknown_keys")
    assert unknown["ids"] == ["old"]
    shown = room["shown"]["plan"]._repr_mimebundle_()
    assert "1 missing event may concern keys not listed here" in shown["text/plain"]
    assert "Holes: events that are missing (1)" in shown["text/html"]


def test_rebuilt_it_holds_and_what_is_unknown_stays_told(tmp_path: Path) -> None:
    root = with_hole(tmp_path / "b")
    room = ran(root, dry_run=False)
    assert (root / "state.db").exists()
    assert room["done"].keys == 2
    assert room["shown"]["answer"].status == "incomplete"
    assert {found["kind"] for found in room["shown"]["answer"].findings} >= {"rebuilt", "gap"}


def test_a_whole_book_comes_out_clean_with_a_certificate(tmp_path: Path) -> None:
    log = HandLog(tmp_path / "b")
    log.live([("put", "a", 1), ("drop", "b", 0), ("enqueue", "j", 0)])
    room = ran(log.root, dry_run=False)
    assert room["shown"]["answer"].status == "clean"
    assert "Everything is known" in room["shown"]["after"]._repr_mimebundle_()["text/html"]


def test_the_step_after_fails_where_the_state_is_not_what_the_log_says(tmp_path: Path) -> None:
    log = HandLog(tmp_path / "b")
    log.put("a", 1)
    done = procedure.act(log.root, dry_run=False)
    other = HandLog(tmp_path / "other")
    other.put("a", 2)
    procedure.act(other.root, dry_run=False)
    for name in ("state.db", "state.db-wal", "state.db-shm"):
        (log.root / name).unlink(missing_ok=True)
    shutil.copy(other.root / "state.db", log.root / "state.db")
    with pytest.raises(TallybookError, match="does not hold"):
        procedure.after(log.root, done)
    procedure.after(other.root, procedure.act(other.root, dry_run=True))
