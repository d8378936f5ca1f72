"""Each profile that tallybook carries reads a small log of its kind, and is proposed for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from import_steps import SAMPLES, at, jobs

from tallybook import ops
from tallybook.ops import imports
from tallybook.ops.imports import inspecting

EXPECTED = {
    "slurm": {
        "101": ("gpu", "done", at("08:00:00"), at("08:01:30"), at("08:11:30"), "n1"),
        "102": ("gpu", "dead", at("08:00:05"), at("08:02:00"), at("08:03:00"), "n2"),
        "103": ("cpu", "cancelled", at("08:01:00"), None, at("08:05:00"), None),
        "104": ("cpu", "leased", at("08:02:00"), at("08:02:10"), None, "n3"),
        "105": ("cpu", "pending", at("08:03:00"), None, None, None),
    },
    "swf": {
        "1": ("2", "done", at("08:00:00"), at("08:00:10"), at("08:01:50"), "7"),
        "2": ("2", "pending", at("08:00:30"), None, None, None),
        "3": ("1", "dead", at("08:01:00"), at("08:01:05"), at("08:01:25"), "8"),
    },
    "taskcluster": {
        "T1": ("linux", "done", at("08:00:00"), at("08:00:02.500000"), at("08:10:00"), "w-1"),
        "T2": ("mac", "leased", at("08:00:10"), at("08:01:00"), None, "w-2"),
        "T3": ("mac", "pending", at("08:00:20"), None, None, None),
    },
    "treeherder": {
        "a/0": ("linux", "done", at("08:00:00"), at("08:01:00"), at("08:05:00"), "m-1"),
        "b/0": ("mac", "dead", at("08:00:01"), at("08:02:01"), at("08:03:20"), "m-2"),
        "c/0": ("mac", "pending", at("08:00:02"), None, None, None),
    },
    "github": {
        "11": ("lint", "done", at("08:00:00"), at("08:00:20"), at("08:01:00"), "runner-1"),
        "12": ("test", "dead", at("08:00:00"), at("08:00:30"), at("08:09:30"), "runner-2"),
        "13": ("ship", "pending", at("08:00:01"), None, None, None),
    },
    "airflow": {
        "daily/load/r1/-1/1": ("daily/load", "dead", at("08:00:00"), at("08:00:07"), at("08:01:07"),
                               "h1"),
        "daily/load/r1/-1/2": ("daily/load", "done", at("08:05:00"), at("08:05:03.250000"),
                               at("08:06:00"), "h2"),
        "daily/send/r1/-1/1": ("daily/send", "pending", at("08:06:10"), None, None, None),
    },
    "celery": {
        "u1": ("mail.send", "done", at("08:00:00.250000"), at("08:00:01.500000"), at("08:00:03"),
               "c@1"),
        "u2": ("mail.send", "dead", at("08:00:02"), at("08:00:03"), at("08:00:12"), "c@2"),
    },
    "spark": {
        "0/0/0": ("ShuffleMapTask", "done", at("08:00:00"), at("08:00:00"), at("08:00:01.250000"),
                  "e2"),
        "0/0/1": ("ShuffleMapTask", "pending", at("08:00:00.100000"), at("08:00:00.100000"), None,
                  "e2"),
    },
    "htcondor": {
        "17.000": ("job", "done", at("08:00:00"), at("08:00:30"), at("08:04:01"), "10.1.0.3"),
        "18.000": ("job", "dead", at("08:00:10"), at("08:00:50"), at("08:01:50"), "10.1.0.2"),
        "19.000": ("job", "cancelled", at("08:05:00"), None, at("08:06:00"), None),
    },
    "hadoop": {
        "job_1_0001": ("job", "done", at("08:00:00"), at("08:00:01"), at("08:00:08"), None),
        "task_1_0001_m_0": ("MAP", "done", at("08:00:02"), at("08:00:03"), at("08:00:07.500000"),
                            "t2"),
    },
    "process-mining": {
        "1": ("register", "done", at("08:00:00"), at("08:00:00"), at("08:05:00"), "anna"),
        "2": ("register", "done", at("08:01:00"), at("08:01:00"), at("08:11:00"), "bert"),
        "3": ("check", "leased", at("08:30:00"), at("08:30:00"), None, "cleo"),
    },
    "pegasus": {
        "stage_in/1": ("stage_in", "done", at("08:00:02"), at("08:00:10"), at("08:00:13"), "local"),
        "sort/2": ("sort", "dead", at("08:00:20"), at("08:00:25"), at("08:00:30"), "pool"),
    },
}  # fmt: skip
CHANGES = {"htcondor": ["time.year=2024"]}


def sample(name: str) -> Path:
    (found,) = SAMPLES.glob(f"{name}.*")
    return found


def test_each_profile_has_a_sample_of_its_own() -> None:
    assert sorted(EXPECTED) == imports.built_in()


@pytest.mark.parametrize("name", EXPECTED)
def test_a_profile_reads_its_kind_of_log(name: str, tmp_path: Path) -> None:
    profile = imports.load(name, CHANGES.get(name, []))
    found = imports.import_jobs([sample(name)], profile, tmp_path / "book")
    assert jobs(tmp_path / "book") == EXPECTED[name]
    assert found.complete and not found.unknown_words


@pytest.mark.parametrize("name", EXPECTED)
def test_inspect_proposes_the_profile_of_a_known_log_with_its_first_jobs(name: str) -> None:
    proposal = inspecting.inspect(sample(name))
    assert (proposal.profile, proposal.built_in) == (name, True)
    assert [one["job_id"] for one in proposal.samples] == list(EXPECTED[name])[:5]


def test_runs_of_a_job_are_told_apart_and_a_resubmitted_task_runs_again(tmp_path: Path) -> None:
    imports.import_jobs([sample("spark")], "spark", tmp_path)
    query = "select lease_token, how, duration_ms from leases where job_id = '0/0/0' order by 1"
    with ops.open(tmp_path) as warehouse:
        assert warehouse.sql(query).fetchall() == [(1, "done", 500.0), (2, "done", 250.0)]


def test_an_eviction_hands_the_job_back_and_the_next_run_ends_it(tmp_path: Path) -> None:
    imports.import_jobs(
        [sample("htcondor")], imports.load("htcondor", ["time.year=2024"]), tmp_path
    )
    query = (
        "select lease_token, how, duration_ms / 1000 from leases where job_id = '17.000' order by 1"
    )
    with ops.open(tmp_path) as warehouse:
        assert warehouse.sql(query).fetchall() == [(1, "released", 90.0), (2, "done", 120.0)]


def test_a_lease_that_a_log_knows_keeps_its_length(tmp_path: Path) -> None:
    imports.import_jobs([sample("taskcluster")], "taskcluster", tmp_path)
    with ops.open(tmp_path) as warehouse:
        found = warehouse.sql("select job_id, lease_ms from leases order by 1").fetchall()
        assert found == [("T1", 1_200_000.0), ("T2", 1_200_000.0)]
        assert "leases" not in warehouse.silent and "cache" in warehouse.silent
