"""The tally of one recorded run, repeated with each detector broken in turn."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tallybook import ops
from tallybook.demo.exports import CSV_NAME
from tallybook.demo.folder import Folder
from tallybook.demo.tally import KINDS, Row, tally
from tallybook.ops import cached, detectors, findings
from tallybook.ops.warehouse import Warehouse

DETECTORS = {
    "answer_lost": (detectors, "answer_lost"),
    "retried": (detectors, "retried"),
    "dead": (detectors, "dead"),
    "stuck_lease": (detectors, "expired_leases"),
    "late_settle_refused": (detectors, "late_settles"),
    "delivered_twice": (detectors, "delivered_twice"),
    "rebuilt": (cached, "compare_cache"),
}
STATUSES = {"changed": "differs", "missing": "only_local", "extra": "only_cloud"}


@pytest.fixture(scope="module")
def place(recorded) -> Folder:
    return recorded(1).place


@pytest.fixture(scope="module")
def warehouse(place) -> Iterator[Warehouse]:
    with ops.open(place.book) as opened:
        yield opened


@pytest.fixture(scope="module")
def reconciliation(place, warehouse) -> ops.Reconciliation:
    return ops.reconcile(warehouse, place.exports / CSV_NAME, key="icao")


@pytest.fixture
def tallied(place, warehouse, reconciliation) -> Callable[[], tuple[Row, ...]]:
    def count() -> tuple[Row, ...]:
        found = [
            *findings.throughput_latency(warehouse),
            *findings.stuck_leases(warehouse),
            *findings.cache_rebuild(warehouse),
            *findings.reconcile(reconciliation),
        ]
        planted = json.loads(place.planted.read_text("utf-8"))
        return tally(planted, [(finding.kind, finding.ids) for finding in found])

    return count


def test_every_kind_has_a_detector_that_is_broken_here():
    assert set(DETECTORS) | set(STATUSES) == set(KINDS)


def test_the_tally_holds_with_all_detectors_whole(tallied):
    assert [row.difference() for row in tallied() if not row.holds] == []


@pytest.mark.parametrize("kind", DETECTORS)
@pytest.mark.parametrize("lost", [1, None], ids=["misses one", "finds nothing"])
def test_a_broken_detector_makes_the_tally_differ_in_its_kind_alone(
    tallied, monkeypatch, kind, lost
):
    module, name = DETECTORS[kind]
    whole = getattr(module, name)

    def broken(warehouse: Warehouse, *span: Any, **at: Any):
        frame = whole(warehouse, *span, **at)
        return frame.slice(frame.height if lost is None else lost)

    monkeypatch.setattr(module, name, broken)
    assert [row.kind for row in tallied() if not row.holds] == [kind]


@pytest.mark.parametrize("kind", STATUSES)
@pytest.mark.parametrize("lost", [1, None], ids=["misses one", "finds nothing"])
def test_a_broken_status_makes_the_tally_differ_in_its_kind_alone(tallied, monkeypatch, kind, lost):
    whole = ops.Reconciliation.keys

    def broken(self: ops.Reconciliation, status: str):
        keys = list(whole(self, status))
        return keys[len(keys) if lost is None else lost :] if status == STATUSES[kind] else keys

    monkeypatch.setattr(ops.Reconciliation, "keys", broken)
    assert [row.kind for row in tallied() if not row.holds] == [kind]


def test_each_planted_difference_is_explained_by_its_cause_and_no_other(recorded, tmp_path):
    for seed in (1, 2, 3):
        place = recorded(seed).place
        planted = json.loads(place.planted.read_text("utf-8"))
        with ops.open(place.book) as warehouse:
            found = ops.explain(warehouse, place.exports / CSV_NAME, key="icao")
            sent = warehouse.sql("select payload::varchar from jobs").fetchall()
            local = tmp_path / f"{seed}.ndjson"
            local.write_text("".join(f"{payload}\n" for (payload,) in sent), "utf-8")
            against = ops.explain(warehouse, place.exports / CSV_NAME, key="icao", local=local)
        causes = {
            "changed_in_cloud": planted["changed"],
            "removed_in_cloud": planted["missing"],
            "added_in_cloud": planted["extra"],
        }
        assert {cause: found.keys(cause) for cause in causes} == causes
        assert set(found.causes["cause"]) == set(causes)
        assert against.keys("dead") == planted["dead"], "the source beside what was delivered"
        assert set(against.causes["cause"]) == {*causes, "dead"}
