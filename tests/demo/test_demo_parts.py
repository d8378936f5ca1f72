"""Parts of the demo that need no run of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tallybook.demo import folder
from tallybook.demo.airports import airports
from tallybook.demo.children import Children, wait_for
from tallybook.demo.tampering import tampering
from tallybook.errors import BadInput, TallybookError


def test_records_are_chosen_by_the_seed_alone():
    assert airports(50, 1) == airports(50, 1)
    assert airports(50, 1) != airports(50, 2)
    assert len({airport.icao for airport in airports(None, 1)}) > 28_000


@pytest.mark.parametrize("jobs", [0, 19, 10**6])
def test_a_number_of_jobs_that_cannot_be_had_is_bad_input(jobs):
    with pytest.raises(BadInput, match="write 20 to"):
        airports(jobs, 1)


def test_tampering_takes_each_row_once_and_adds_only_new_codes():
    rows = {airport.icao: airport.row for airport in airports(500, 1)}
    for seed in range(10):
        order = tampering(seed, rows, [*rows, "ZZ0001"])
        taken = Counter([row["icao"] for row in order["change"]] + order["delete"])
        assert set(taken.values()) == {1}
        assert not {row["icao"] for row in order["add"]} & {*rows, "ZZ0001"}
        assert [len(order[part]) for part in ("change", "delete", "add")] == [5, 5, 5]
        for change in order["change"]:
            assert any(rows[change["icao"]][name] != value for name, value in change.items())


def refused(root: Path, word: str) -> None:
    with pytest.raises(BadInput, match=word), folder.fresh(root, {}):
        pass


def test_a_folder_of_somebody_else_is_never_replaced(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    refused(tmp_path, "not empty")
    assert (tmp_path / "thesis.txt").read_text() == "mine"


def test_a_link_as_a_mark_is_no_mark(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    (tmp_path / folder.MARK).symlink_to(tmp_path / "thesis.txt")
    refused(tmp_path, "not empty")


def test_an_earlier_demo_is_replaced(tmp_path):
    with folder.fresh(tmp_path / "demo", {"seed": 1}) as place:
        (place.book / "log").mkdir(parents=True)
        place.planted.write_text("{}")
    with folder.fresh(tmp_path / "demo", {"seed": 2}) as again:
        assert not again.book.exists()
        assert not again.planted.exists()


def test_a_demo_that_is_running_is_not_replaced(tmp_path):
    with folder.fresh(tmp_path / "demo", {}) as place:
        place.planted.write_text("{}")
        refused(tmp_path / "demo", "is running")
        assert place.planted.exists()


def test_a_file_where_the_folder_goes_is_bad_input(tmp_path):
    (tmp_path / "demo").touch()
    refused(tmp_path / "demo", "is a file")
    refused(tmp_path / "demo" / "inside", "cannot be made")


def _group_is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_no_child_outlives_its_owner_not_even_a_stopped_or_deaf_one(tmp_path):
    sleeps = "import time; print(1, flush=True); time.sleep(99)"
    deaf = f"import signal; signal.signal(2, signal.SIG_IGN); {sleeps}"
    leaves = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {deaf!r}])"
    with pytest.raises(RuntimeError), Children(tmp_path, grace_s=0.2) as children:
        scripts = {"deaf": deaf, "leaves": leaves, "stopped": sleeps}
        started = {
            name: children.start(name, ["-c", code], gentle=True) for name, code in scripts.items()
        }
        wait_for(lambda: all(map(children.printed, scripts)), "a start", 20)
        os.kill(started["stopped"].pid, signal.SIGSTOP)
        raise RuntimeError
    for child in started.values():
        wait_for(lambda: not _group_is_alive(child.pid), "the end of a group", 5)  # noqa: B023


def test_a_child_that_fails_is_named_with_what_it_said(tmp_path):
    with Children(tmp_path) as children:
        children.start("worker-1", ["-c", "import sys; sys.exit('no such book')"])
        wait_for(lambda: children.ended("worker-1"), "its end", 20)
        with pytest.raises(TallybookError, match=r"worker-1 ended with 1: no such book \(see "):
            children.check()
        children.check("worker-1")


def test_the_cloud_ends_when_its_owner_does(tmp_path):
    cloud = subprocess.Popen(
        [sys.executable, "-m", "tallybook.demo.cloud", "--folder", str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    records = '["' + '","'.join(f"R{n}" for n in range(20)) + '"]'
    order = f'{{"seed": 1, "timeout_s": 2, "records": {records}, "token": "t"}}\n'
    cloud.stdin.write(order)
    cloud.stdin.flush()
    assert "port" in cloud.stdout.readline()
    cloud.stdin.close()
    assert cloud.wait(20) == 0
    cloud.stdout.close()


def test_waiting_ends_with_what_did_not_come():
    began = time.monotonic()
    with pytest.raises(TallybookError, match="the moon did not happen within"):
        wait_for(lambda: False, "the moon", 0.1)
    assert time.monotonic() - began < 5
