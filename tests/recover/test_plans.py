"""Repair plans: what a policy decides, what is refused, what apply and undo leave behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from plan_worlds import World

from tallybook import ops
from tallybook.book import Book
from tallybook.errors import BadInput
from tallybook.recover import plans
from tallybook.recover.plans import policies
from tallybook.recover.plans.policies import Choice, Difference, decide
from tallybook.recover.plans.shapes import Shape, Unfit

ALL = frozenset(("requeue", "enqueue", "take_export", "merge", "delete"))
HERE, CLOUD = {"x": 1, "y": 1}, {"x": 2, "y": 1}


def difference(cause: str, kind: str = "differs", **fields: Any) -> Difference:
    told = {"can": ALL, "local": HERE, "cloud": CLOUD, "base": HERE} | fields
    return Difference(kind, cause, **told)


# policies


@pytest.mark.parametrize(
    ("cause", "kind", "action"),
    [
        ("dead", "differs", "requeue"),
        ("never_enqueued", "only_local", "enqueue"),
        ("applied_twice", "differs", "enqueue"),
        ("changed_in_cloud", "differs", "take_export"),
        ("removed_in_cloud", "only_local", "delete"),
        ("added_in_cloud", "only_cloud", "take_export"),
        ("not_cached", "only_cloud", "take_export"),
        ("removed_here", "only_cloud", "leave"),
        ("cancelled", "differs", "leave"),
        ("overdue", "differs", "leave"),
        ("after_export", "differs", "leave"),
        ("unexplained", "differs", "leave"),
    ],
)
def test_the_last_write_wins(cause: str, kind: str, action: str) -> None:
    assert decide("last-write-wins", difference(cause, kind)).action == action


def test_a_dead_job_whose_entry_changed_since_is_not_requeued() -> None:
    assert decide("last-write-wins", difference("dead", is_changed_since=True)).action == "enqueue"


def test_the_stamp_of_the_cloud_says_who_wrote_last() -> None:
    later = {"moved_at": "2026-03-01T12:00:00.000000Z"}
    one = difference("dead", cloud_moved_at="2026-03-01T12:00:00.000001Z", **later)
    assert decide("last-write-wins", one).action == "take_export"
    two = difference("dead", cloud_moved_at="2026-03-01T11:59:59.999999Z", **later)
    assert decide("last-write-wins", two).action == "requeue"


@pytest.mark.parametrize("policy", ["last-write-wins", "merge"])
def test_a_value_that_was_here_before_is_not_taken_from_an_export_that_may_be_older(
    policy: str,
) -> None:
    assert decide(policy, difference("changed_in_cloud")).action == "take_export"
    left = decide(policy, difference("changed_in_cloud", may_be_older=True))
    assert left.action == "leave" and "--covers" in left.why
    forced = decide("server", difference("changed_in_cloud", may_be_older=True))
    assert forced.action == "take_export"


@pytest.mark.parametrize("policy", ["last-write-wins", "merge"])
def test_an_entry_is_not_deleted_for_an_export_that_may_be_older(policy: str) -> None:
    assert decide(policy, difference("removed_in_cloud", "only_local")).action == "delete"
    left = decide(policy, difference("removed_in_cloud", "only_local", may_be_older=True))
    assert left == ("leave", "nothing says until when the export is: give --covers")
    forced = decide("server", difference("removed_in_cloud", "only_local", may_be_older=True))
    assert forced.action == "delete"


@pytest.mark.parametrize(
    ("here", "cloud", "action"),
    [(2, 3, "take_export"), (3, 2, "enqueue"), (2, 2, "leave"), (2, None, "leave")],
)
def test_the_higher_version_wins(here: int, cloud: int | None, action: str) -> None:
    one = difference("changed_in_cloud", version=here, cloud_version=cloud)
    assert decide("version-check", one).action == action


@pytest.mark.parametrize(
    ("local", "cloud", "base", "choice"),
    [
        ({"x": 1, "y": 1}, {"x": 2, "y": 1}, {"x": 1, "y": 1}, "take_export"),
        ({"x": 2, "y": 1}, {"x": 1, "y": 1}, {"x": 1, "y": 1}, "enqueue"),
        ({"x": 2, "y": 1}, {"x": 1, "y": 2}, {"x": 1, "y": 1}, "merge"),
        ({"x": 2, "y": 1}, {"x": 3, "y": 1}, {"x": 1, "y": 1}, "leave"),
        ({"x": 2, "y": 1}, {"x": 3, "y": 1}, None, "leave"),
    ],
)
def test_fields_are_merged_against_what_both_had(
    local: Any, cloud: Any, base: Any, choice: str
) -> None:
    one = difference("never_enqueued", local=local, cloud=cloud, base=base)
    assert decide("merge", one).action == choice
    if choice == "merge":
        assert policies.merged(one) == ({"x": 2, "y": 2}, [])


def test_a_field_that_both_changed_is_named() -> None:
    one = difference("dead", local={"x": 2}, cloud={"x": 3}, base={"x": 1})
    assert decide("merge", one) == Choice("leave", "both sides changed x")


@pytest.mark.parametrize("cause", ["dead", "unexplained", "removed_here", "cancelled"])
def test_the_server_decides_and_a_person_may_always(cause: str) -> None:
    assert decide("server", difference(cause)).action == "take_export"
    assert decide("server", difference(cause, "only_local")).action == "delete"
    assert decide("manual", difference(cause)).action == "leave"


def test_what_cannot_be_done_is_left_with_its_reason() -> None:
    one = difference("added_in_cloud", "only_cloud", can=frozenset(), no={"take_export": "why"})
    assert decide("server", one) == Choice("leave", "why")
    assert "by hand" in decide("last-write-wins", difference("never_enqueued", can=frozenset())).why


# values


def test_cells_become_values_of_the_kinds_that_are_cached() -> None:
    shape = Shape.of([{"n": 1, "t": "a", "b": True, "j": [1], "e": None}, {"n": 1.5, "e": None}])
    cells = {"n": "7", "t": "007", "b": "false", "j": "[2]", "e": "x", "more": "1"}
    assert shape.value(cells, {"own": 1}, {}) == {
        "own": 1, "n": 7, "t": "007", "b": False, "j": [2], "e": "x",
    }  # fmt: skip
    assert shape.value({"n": None}, None, {}) == {"n": None}
    assert shape.value({"m": "5"}, None, {"n": {"rename": "m"}}) == {"n": 5}
    assert shape.value({"n": "-"}, None, {"n": {"null": ["-"]}}) == {"n": None}
    assert shape.value({"n": "9"}, {"n": 1}, {"n": {"ignore": True}}) == {"n": 1}


@pytest.mark.parametrize("text", ["1.50", "abc", "12345678901234567890", "0.1234567890123456789"])
def test_a_number_that_json_would_write_otherwise_is_no_value(text: str) -> None:
    with pytest.raises(Unfit, match="n: "):
        Shape.of([{"n": 1}]).value({"n": text}, None, {})


def test_a_number_of_a_typed_column_may_be_written_otherwise() -> None:
    shape = Shape.of([{"n": 1}])
    assert shape.value({"n": "1.50"}, None, {"n": {"type": "decimal"}}) == {"n": 1.5}


# one plan from end to end


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Five keys: dead, changed and removed in the cloud, added there, never enqueued."""
    return differing(tmp_path)


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> tuple[World, str]:
    """Such a world that no test changes, and the text of a plan for it."""
    made = differing(tmp_path_factory.mktemp("standing"))
    return made, planned(made)[0].read_text()


def differing(root: Path) -> World:
    made = World(root, 0)
    made.answers["dead"] = ["refused"]
    for key in ("changed", "dead", "gone"):
        made.write(key, 1)
    made.deliver()
    made.put("never", 3)
    made.tamper("changed", 9)
    made.tamper("gone", None)
    made.tamper("new", 5)
    return made


def planned(world: World, policy: str = "last-write-wins") -> tuple[Path, plans.Plan]:
    return world.plan(world.export("e"), policy)


def test_each_action_is_an_event_and_the_plan_names_its_steps(world: World) -> None:
    path, plan = planned(world)
    assert {one.key: one.action for one in plan.actions} == {
        "changed": "take_export",
        "dead": "requeue",
        "gone": "delete",
        "never": "enqueue",
        "new": "take_export",
    }
    applied = world.apply(path)
    assert applied.done == {"take_export": 2, "requeue": 1, "delete": 1, "enqueue": 1}
    with ops.open(world.root / "book") as warehouse:
        last = warehouse.sql("select event from events order by position desc limit 6").fetchall()
    assert [event for (event,) in reversed(last)] == [
        "cache.put", "cache.put", "cache.invalidated", "job.requeued", "job.enqueued",
        "plan.applied",
    ]  # fmt: skip
    (job,) = [job for job in world.book.jobs(status="pending") if job.payload["id"] == "never"]
    assert job.idempotency_key.startswith(f"plan-{plan.head.plan}-")
    (dead,) = [job for job in world.book.jobs(status="pending") if job.payload["id"] == "dead"]
    assert dead.idempotency_key == "dead-1", "the cloud may have seen it under its own key"


def overtaken(root: Path) -> tuple[World, Path]:
    """A world that went on after its export, which no longer says what it covers: a key written
    again, one made, and both delivered; two others were changed and removed in the cloud."""
    made = World(root, 0)
    for key in ("later", "changed", "gone"):
        made.write(key, 1)
    made.deliver()
    made.tamper("changed", 7)
    made.tamper("gone", None)
    export = made.export("e")
    made.write("later", 2)
    made.write("made", 1)
    made.deliver()
    made.covers = ""
    return made, export


def test_an_export_of_unknown_cover_takes_no_later_delivery_back(tmp_path: Path) -> None:
    made, export = overtaken(tmp_path)
    _, plan = made.plan(export, "last-write-wins")
    left = dict.fromkeys(("gone", "later", "made"), "leave")
    assert {one.key: one.action for one in plan.actions} == {"changed": "take_export"} | left
    assert all("delete" in one.choices for one in plan.actions if one.key in ("gone", "made"))


def test_who_forces_the_side_of_the_cloud_deletes_also_for_an_export_of_unknown_cover(
    tmp_path: Path,
) -> None:
    made, export = overtaken(tmp_path)
    _, plan = made.plan(export, "server")
    deleted = {one.key for one in plan.actions if one.action == "delete"}
    assert deleted == {"gone", "made"}


def test_a_dry_run_says_what_would_be_done_and_changes_nothing(world: World) -> None:
    path, _ = planned(world)
    before = world.book.position()
    assert sum(world.apply(path, dry_run=True).done.values()) == 5
    assert world.book.position() == before
    assert not path.with_name(path.stem + ".undo.ndjson").exists()
    world.apply(path)
    after = world.book.position()
    assert sum(world.undo(path, dry_run=True).done.values()) == 5
    assert world.book.position() == after


def test_undo_brings_back_dead_letters_as_they_were(world: World) -> None:
    path, _ = planned(world)
    (before,) = world.book.jobs(status="dead")
    state = world.state()
    world.apply(path)
    world.undo(path)
    (after,) = world.book.jobs(status="dead")
    kept = ("job_id", "attempt_count", "rescue_count", "last_error", "error_type", "lease_token")
    assert [getattr(after, name) for name in kept] == [getattr(before, name) for name in kept]
    assert world.state() == state
    with ops.open(world.root / "book") as warehouse:
        asked = "select status, attempt_count, last_error from jobs where job_id = ?"
        told = warehouse.sql(asked, [after.job_id]).fetchall()
    assert told == [("dead", 1, "too large")]


def test_what_was_delivered_or_written_since_is_not_undone(world: World) -> None:
    path, plan = planned(world)
    world.apply(path)
    world.drain()
    world.book.put_entry("changed", {"id": "changed", "x": 100, "y": "same"})
    undone = world.undo(path)
    assert set(undone.passed_over) == {"dead", "never", "changed"}
    assert "cannot be undone" in undone.passed_over["dead"]
    assert "written since" in undone.passed_over["changed"]
    assert undone.done == {"take_export": 1, "delete": 1}
    assert world.book.entry("gone") and not world.book.entry("new")
    assert len(plan.actions) == 5


def test_a_reviewer_takes_lines_out_and_chooses_otherwise(world: World) -> None:
    path, _ = planned(world)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    kept = [row | ({"action": "leave"} if row.get("key") == "gone" else {})
            for row in rows if row.get("key") != "dead"]  # fmt: skip
    path.write_text("\n".join(json.dumps(row) for row in kept) + "\n")
    applied = world.apply(path)
    assert (sum(applied.done.values()), applied.left) == (3, 1)
    assert world.book.entry("gone") and world.book.jobs(status="dead")


def edited(path: Path, number: int, change: Callable[[dict[str, Any]], None] | str) -> None:
    """Edit line ``number`` (from 1) of a plan."""
    rows = path.read_text().splitlines()
    if isinstance(change, str):
        rows[number - 1] = change
    else:
        row = json.loads(rows[number - 1])
        change(row)
        rows[number - 1] = json.dumps(row)
    path.write_text("\n".join(rows) + "\n")


@pytest.mark.parametrize(
    ("number", "change", "words"),
    [
        (2, lambda row: row["value"].update(x=1000), "line 2 was edited"),
        (3, lambda row: row.update(key="other"), "line 3 was edited"),
        (3, lambda row: row.update(action="explode"), "line 3 has no such action: 'explode'"),
        (3, lambda row: row.update(action="delete"), "line 3 cannot be 'delete'"),
        (2, lambda row: row.pop("choices"), "line 2 has no 'choices'"),
        (2, lambda row: row.update(n="2"), "line 2 has a 'n' that is no int"),
        (1, lambda row: row.update(policy="server"), "line 1 was edited"),
        (1, lambda row: row.update(v=9), "format 9"),
        (4, '{"n": 3,', "line 4 is not JSON"),
        (4, "[]", "line 4 is no JSON object"),
        (1, "", "line 2 has no 'plan'"),
    ],
)
def test_a_plan_that_was_edited_into_nonsense_is_refused_with_its_line(
    standing: tuple[World, str], tmp_path: Path, number: int, change: Any, words: str
) -> None:
    world, path = standing[0], tmp_path / "plan.ndjson"
    path.write_text(standing[1])
    edited(path, number, change)
    before = world.book.position()
    with pytest.raises(BadInput, match=words):
        world.apply(path)
    assert world.book.position() == before


def test_a_line_that_stands_twice_is_refused(standing: tuple[World, str], tmp_path: Path) -> None:
    world, path = standing[0], tmp_path / "plan.ndjson"
    rows = standing[1].splitlines()
    path.write_text("\n".join([*rows, rows[2]]))
    with pytest.raises(BadInput, match="line 7 is line 3 again"):
        world.apply(path)


@pytest.mark.parametrize("content", ["", "\n\n", "hello\n", "{}\n"])
def test_a_file_that_is_no_plan_is_refused(
    standing: tuple[World, str], tmp_path: Path, content: str
) -> None:
    world, path = standing[0], tmp_path / "plan.ndjson"
    path.write_text(content)
    with pytest.raises(BadInput, match=r"plan\.ndjson"):
        world.apply(path)
    with pytest.raises(BadInput, match="cannot read the plan"):
        world.apply(world.root / "no-such-plan")


def test_a_plan_for_another_book_is_refused_by_name(
    standing: tuple[World, str], tmp_path: Path
) -> None:
    path = tmp_path / "plan.ndjson"
    path.write_text(standing[1])
    with Book.open(tmp_path / "other") as other:
        other.put_entry("a", 1)
    with pytest.raises(BadInput, match="is for another book"):
        plans.apply(tmp_path / "other", path)


def test_a_plan_from_before_the_log_lost_its_end_is_refused(world: World) -> None:
    path, _ = planned(world)
    (segment,) = (world.root / "book" / "log").glob("*.ndjson")
    rows = segment.read_bytes().splitlines(keepends=True)
    segment.write_bytes(b"".join(rows[:-1]) + rows[-1].replace(b'"x":3', b'"x":4'))
    with pytest.raises(BadInput, match="does not have any more"):
        world.apply(path)


def test_a_stale_plan_is_refused_whole(world: World) -> None:
    path, _ = planned(world)
    world.book.put_entry("changed", {"id": "changed", "x": 2, "y": "same"})
    before = world.book.position()
    with pytest.raises(BadInput, match=r"is stale: 1 of 5 keys .*line 2, key changed"):
        world.apply(path)
    assert world.book.position() == before


def test_an_entry_that_came_back_to_its_version_with_another_value_is_stale(world: World) -> None:
    path, _ = planned(world)
    entry = world.book.entry("changed")
    assert entry
    world.book.put_entry("changed", {"id": "changed", "x": 2}, version=entry.version)
    with pytest.raises(BadInput, match="another value"):
        world.apply(path)


def test_a_plan_older_than_the_last_apply_is_refused(world: World) -> None:
    old, _ = planned(world)
    new, _ = planned(world, "server")
    assert old != new
    world.apply(new)
    with pytest.raises(BadInput, match="older than the last apply"):
        world.apply(old)


def test_an_undone_plan_is_not_applied_again(world: World) -> None:
    path, _ = planned(world)
    world.apply(path)
    world.undo(path)
    with pytest.raises(BadInput, match="was undone"):
        world.apply(path)
    assert world.undo(path).done == {}


def test_a_plan_stays_in_its_bounds(standing: tuple[World, str], tmp_path: Path) -> None:
    world, path = standing[0], tmp_path / "plan.ndjson"
    path.write_text(standing[1])
    with pytest.raises(BadInput, match="5 actions to do, more than 4: allow them with --max 5"):
        world.apply(path, most=4)
    with pytest.raises(BadInput, match="from 1 up"):
        world.apply(path, most=0)


def test_a_key_that_changes_while_the_plan_is_applied_is_passed_over(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = planned(world)
    first: list[int] = []

    def meddle(done: int, _: int) -> None:
        if not first:
            first.append(done)
            world.book.put_entry("gone", {"id": "gone", "x": 2, "y": "same"})

    monkeypatch.setattr("tallybook.recover.plans.applying.BATCH", 1)
    applied = world.apply(path, progress=meddle)
    assert applied.passed_over == {"gone": "changed meanwhile"}
    assert sum(applied.done.values()) == 4
    entry = world.book.entry("gone")
    assert entry and entry.value["x"] == 2


def test_without_its_undo_file_a_plan_is_not_undone(world: World) -> None:
    path, _ = planned(world)
    applied = world.apply(path)
    undo = Path(applied.undo)
    kept = undo.read_bytes()
    undo.unlink()
    with pytest.raises(BadInput, match="cannot read the undo file"):
        world.undo(path)
    undo.write_bytes(kept.replace(b'"undo_of":"', b'"undo_of":"other'))
    with pytest.raises(BadInput, match="is the undo file of plan other"):
        world.undo(path)
    undo.write_bytes(b"nonsense")
    with pytest.raises(BadInput, match="is no undo file"):
        world.undo(path)


def test_no_job_is_made_where_it_is_not_known_how_one_looks(tmp_path: Path) -> None:
    world = World(tmp_path, 0)
    world.answers["odd"] = ["reshaped"]
    world.write("odd", 1)
    world.deliver()
    world.put("never", 3)
    _, plan = planned(world)
    (never,) = plan.actions
    assert (never.action, never.choices) == ("leave", ("delete", "leave"))
    assert never.why == "how a job for it looks is not known: enqueue it by hand"


def test_a_policy_that_is_none_is_refused(standing: tuple[World, str]) -> None:
    with pytest.raises(BadInput, match="choose one of last-write-wins"):
        planned(standing[0], "newest")


def test_nothing_is_deleted_for_an_export_of_which_rows_cannot_be_read(
    standing: tuple[World, str],
) -> None:
    world = standing[0]
    export = world.export("cut")
    export.write_text(export.read_text() + "gone,1\n")
    _, plan = world.plan(export, "server")
    left = {one.key: (one.cause, one.action) for one in plan.actions if one.action == "leave"}
    assert left == dict.fromkeys(("gone", "never"), ("unexplained", "leave")) | {
        "dead": ("dead", "leave")
    }
    assert "delete" not in {choice for one in plan.actions for choice in one.choices}


def test_no_plan_is_made_where_no_key_is_on_both_sides(standing: tuple[World, str]) -> None:
    world = standing[0]
    export = world.export("other")
    export.write_text("id,x,y\nnobody,1,same\n")
    with pytest.raises(BadInput, match="no plan is made where nothing is comparable: no key"):
        world.plan(export, "server")


def test_equal_plans_bear_equal_names(standing: tuple[World, str]) -> None:
    world = standing[0]
    export = world.export("e")
    assert world.plan(export, "server")[1].head.plan == world.plan(export, "server")[1].head.plan
    assert world.plan(export, "server")[1].head.plan != world.plan(export, "manual")[1].head.plan
