"""A plan whose apply is killed at any step goes on where it was, and nothing is done twice."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from plan_worlds import World

from tallybook import Book
from tallybook.book import New
from tallybook.book.repairing import Step
from tallybook.cli.main import main
from tallybook.errors import NoRoom
from tallybook.event import Event
from tallybook.layout import Layout
from tallybook.log.reader import history
from tallybook.recover import plans
from tallybook.testing import Fault, audit, crash_at, environment, faults

POINTS = ("before_append", "after_append", "after_sync", "before_commit", "after_commit")
STEPS = [
    *(Fault("point", point, nth, "kill") for point in POINTS for nth in (1, 2, 3)),
    *(Fault("write", "segment", nth, "kill") for nth in (1, 2, 3)),
    *(Fault(kind, "undo", 1, "kill") for kind in ("write", "rename")),
]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A closed book with six differences, two of each action but merge, and the plan for them."""
    world = World(tmp_path_factory.mktemp("template"), 0)
    for key in ("changed", "gone", "dead"):
        for n in "12":
            world.answers[key + n] = ["refused"] if key == "dead" else []
            world.write(key + n, 1)
    world.deliver()
    for n in "12":
        world.put("never" + n, 3)
        world.tamper("changed" + n, 9)
        world.tamper("gone" + n, None)
    path, plan = world.plan(world.export("e"), "last-write-wins")
    assert Counter(one.action for one in plan.actions) == {
        "take_export": 2, "delete": 2, "requeue": 2, "enqueue": 2,
    }  # fmt: skip
    world.book.close()
    return world.root / "book", path


@pytest.fixture
def place(template: tuple[Path, Path], tmp_path: Path) -> tuple[Path, Path]:
    """A copy of both."""
    book, plan = tmp_path / "book", tmp_path / template[1].name
    shutil.copytree(template[0], book)
    shutil.copy(template[1], plan)
    return book, plan


def told(book: Path) -> list[Event]:
    return [event for event, _ in history(Layout(book))]


def check_done_once(book: Path, plan: Path) -> None:
    """Every step was done exactly once, whatever happened on the way, and can be undone."""
    events = told(book)
    steps = [step for e in events if e.name == "plan.applied" for step in e["steps"]]
    assert sorted(steps) == list(range(1, 9))
    of_plan = [e for e in events if "plan-" in (e.get("idempotency_key") or "")]
    assert [e.name for e in of_plan] == ["job.enqueued"] * 2
    assert sum(e.name == "job.requeued" for e in events) == 2
    assert sum(e.name == "cache.invalidated" for e in events) == 2
    with Book.open(book) as opened:
        values = {entry.key: entry.value["x"] for entry in opened.entries()}
        assert {key: x for key, x in values.items() if key[:-1] in ("changed", "gone")} == {
            "changed1": 9, "changed2": 9,
        }  # fmt: skip
    assert audit(book) == []
    undone = plans.undo(book, plan)
    assert (sum(undone.done.values()), undone.passed_over) == (8, {})
    with Book.open(book) as opened:
        values = {entry.key: entry.value["x"] for entry in opened.entries()}
        assert len(opened.jobs(status="dead")) == 2
    kept = {f"{key}{n}": 1 for key in ("changed", "gone", "dead") for n in "12"}
    assert values == kept | {"a": 1, "never1": 3, "never2": 3}, "as before the plan"


def killed(book: Path, plan: Path, fault: Fault) -> int:
    """Apply the plan in a child that is killed at ``fault``; how the child ended."""
    child = os.fork()
    if not child:
        with faults(fault):
            plans.apply(book, plan)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("fault", STEPS, ids=str)
def test_a_kill_at_any_step_is_gone_on_from(
    place: tuple[Path, Path], fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tallybook.recover.plans.applying.BATCH", 3)
    book, plan = place
    assert killed(book, plan, fault) == -signal.SIGKILL
    applied = plans.apply(book, plan)
    assert applied.already + sum(applied.done.values()) == 8
    assert not applied.passed_over
    check_done_once(book, plan)


def test_the_command_that_was_killed_goes_on_when_it_is_given_again(
    place: tuple[Path, Path],
) -> None:
    book, plan = place
    words = [sys.executable, "-m", "tallybook", "plan", "apply", str(plan)]
    command = [*words, "--book", str(book)]
    armed = os.environ | environment(crash_at("after_append"))
    ended = subprocess.run(command, env=armed, capture_output=True, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert main([*command[3:], "--json"]) == 0
    check_done_once(book, plan)


@pytest.mark.parametrize("lost", range(1, 4))
def test_a_change_that_a_power_cut_tore_is_gone_on_from(
    place: tuple[Path, Path], lost: int
) -> None:
    """The last lines of a change are lost with ``plan.applied``, its first ones stand."""
    book, plan = place
    plans.apply(book, plan)
    segment = max(Layout(book).log.glob("*.ndjson"), key=lambda path: path.stat().st_mtime)
    rows = segment.read_bytes().splitlines(keepends=True)
    segment.write_bytes(b"".join(rows[:-lost]) + rows[-lost][:20])
    for path in [*book.glob("state.db*"), *book.glob("metrics/*")]:
        path.unlink()
    applied = plans.apply(book, plan)
    assert (applied.already, sum(applied.done.values()), applied.passed_over) == (0, 8, {})
    check_done_once(book, plan)


def test_a_full_disk_leaves_a_plan_that_can_be_gone_on_with(
    place: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tallybook.recover.plans.applying.BATCH", 3)
    book, plan = place
    with faults(Fault("write", "segment", 2, "ENOSPC")), pytest.raises(NoRoom):
        plans.apply(book, plan)
    plans.apply(book, plan)
    check_done_once(book, plan)


def test_a_step_that_another_process_has_done_is_not_done_again(place: tuple[Path, Path]) -> None:
    new = New("t", {"id": 1}, idempotency_key="plan-p-1")
    with Book.open(place[0]) as one, Book.open(place[0]) as other:
        assert [event.name for event in one.repair("p", [Step(1, new=new)], "applied")] == [
            "job.enqueued", "plan.applied",
        ]  # fmt: skip
        assert other.repair("p", [Step(1, new=new)], "applied") == []
