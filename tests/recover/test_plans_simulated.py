"""Differences of whole small worlds: their true causes, and what a repair leaves of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from plan_worlds import World, ended, lived

REPAIRED = 6
"""So many of the worlds are repaired too."""


def check_causes(world: World, export: Path) -> None:
    """Each row that differs has its true cause, and the causes add up."""
    found = world.explain(export)
    assert dict(found.rows.select("key", "cause").iter_rows()) == world.truth()
    statuses = found.reconciliation.statuses
    both = statuses["match"] + statuses["differs"]
    assert both + statuses["only_local"] + statuses["in_flight_local"] == len(
        world.book.entries(10_000)
    )
    assert both + statuses["only_cloud"] + statuses["in_flight_cloud"] == len(world.exported)


def check_repair(world: World, policy: str) -> None:
    """Applied, undone, made anew, applied twice and drained: nothing differs but what was left."""
    world.drain()
    world.clock.advance(7200)
    before = world.state()
    path, plan = world.plan(world.export("second"), policy)
    world.apply(path)
    undone = world.undo(path)
    assert not undone.passed_over
    assert world.state() == before

    path, again = world.plan(world.export("again"), policy)
    assert [(one.key, one.action) for one in again.actions] == [
        (one.key, one.action) for one in plan.actions
    ]
    world.apply(path)
    end, applied = world.book.position(), world.state()
    twice = world.apply(path)
    assert (twice.done, twice.already) == ({}, len(again.to_do))
    assert (world.book.position(), world.state()) == (end, applied)

    world.drain()
    world.clock.advance(7200)
    after = world.explain(world.export("third"))
    left = sorted(one.key for one in again.actions if one.action == "leave")
    assert sorted(after.rows["key"]) == left
    assert all(one.why for one in again.actions)
    assert policy == "last-write-wins" or not left


def check_uncovered(world: World, export: Path) -> None:
    """Where nothing says what the export covers, no key that only moved here loses its value."""
    world.covers = None
    _, plan = world.plan(export, "last-write-wins")
    actions = {one.key: one.action for one in plan.actions}
    assert "delete" not in actions.values()
    taken = [key for key, action in actions.items() if action == "take_export"]
    kept = {entry.key for entry in world.book.entries(10_000)}
    touched = {key for key, facts in world.facts.items() if any(not fact.here for fact in facts)}
    twice = {key for key, facts in world.facts.items() if any(f.name == "twice" for f in facts)}
    assert kept.intersection(taken) <= touched | twice


def live(root: Path, seed: int, *, repaired: bool) -> None:
    """One world, explained and repaired, or planned for with no word of what its export covers."""
    world, export = lived(root, seed)
    check_causes(world, export)
    if repaired:
        check_repair(world, "server" if seed % 2 else "last-write-wins")
    else:
        check_uncovered(world, export)


@pytest.mark.parametrize("seed", range(30))
def test_every_difference_has_its_true_cause_and_its_repair_holds(
    tmp_path: Path, seed: int
) -> None:
    live(tmp_path, seed, repaired=seed < REPAIRED)


def test_the_worlds_show_every_cause_that_has_a_story(tmp_path: Path) -> None:
    world, export = ended(tmp_path)
    found = world.explain(export)
    assert {row["key"]: row["cause"] for row in found.rows.to_dicts()} == {
        "dead": "dead",
        "dead_update": "dead",
        "changed": "changed_in_cloud",
        "removed": "removed_in_cloud",
        "added": "added_in_cloud",
        "forgotten": "removed_here",
        "never": "never_enqueued",
        "never_since": "never_enqueued",
        "twice": "applied_twice",
        "waiting": "overdue",
        "cancelled": "cancelled",
        "uncached": "not_cached",
    }
