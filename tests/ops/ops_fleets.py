"""Rows in: a book of many jobs, and the same events on fifty nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ops_logs import Log, Simulation, text
from polars.testing import assert_frame_equal

from tallybook import ops
from tallybook.ops.fleet import Fleet

NODES = 50


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One book with the events of all nodes."""
    root = tmp_path_factory.mktemp("fleet") / "whole"
    Simulation(root, seed=1, jobs=200).run()
    return root


@pytest.fixture(scope="module")
def nodes(whole: Path) -> Path:
    """The same events, those of each job on one of fifty nodes."""
    root = whole.parent / "nodes"
    logs: dict[int, Log] = {}
    lines = [json.loads(line) for path in (whole / "log").iterdir() for line in path.open()]
    for line in lines:
        if job := line.get("job_id"):
            number = int(job[-6:]) % NODES
            if number not in logs:
                writer = f"{number:08x}" + "0" * 24
                logs[number] = Log(root / f"node=n{number:02}", writer)
            log = logs[number]
            log.seq += 1
            log.raw(json.dumps(line | {"seq": log.seq}).encode() + b"\n")
    return root


def fleet(root: Any, **options: Any) -> Fleet:
    found = ops.open(root, **options)
    assert isinstance(found, Fleet)
    return found


def same_answers(one: ops.Warehouse, many: ops.Warehouse) -> None:
    span = ops.Span(since=text(0), until=text(3600), every="1m")
    for question in (ops.throughput, ops.latency, ops.outcomes):
        asked = [
            question(w, span).drop("example_job_id", "example_error", strict=False)
            for w in (one, many)
        ]
        assert_frame_equal(*asked, check_row_order="window_start" in asked[0].columns)
    assert_frame_equal(ops.latency(one, by="topic"), ops.latency(many, by="topic"))
    for detector in (ops.dead, ops.retried, ops.answer_lost, ops.late_settles, ops.stuck_leases):
        ours, theirs = (detector(w).drop("evidence", "command", strict=False) for w in (one, many))
        assert ours.height and set(ours.columns) == set(theirs.columns)
        key = [name for name in ("job_id", "lease_token") if name in ours.columns]
        assert_frame_equal(ours.sort(key), theirs.select(ours.columns).sort(key))
    cached = [ops.cache_as_of(w).select("key", "value").sort("key") for w in (one, many)]
    assert_frame_equal(*cached)
