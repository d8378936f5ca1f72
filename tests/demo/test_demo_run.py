"""The whole demo, run from the command line on real records."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tallybook.demo.children import wait_for
from tallybook.demo.tally import KINDS


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_runbooks_find_all_that_was_planted_and_nothing_else(recorded, seed):
    run = recorded(seed)
    assert (run.code, run.complaints) == (0, "")
    assert [row["kind"] for row in run.answer["faults"]] == list(KINDS)
    for row in run.answer["faults"]:
        assert row["planted"] == row["found"]
        assert row["planted"]
    assert Path(run.answer["report"]).is_file()


def test_the_planted_side_is_kept_and_covers_every_kind_of_fault(recorded):
    planted = json.loads(recorded(1).place.planted.read_text())
    assert set(planted) == set(KINDS)
    assert len(planted["stuck_lease"]) == 2
    assert set(planted["late_settle_refused"]) < set(planted["stuck_lease"])
    assert set(planted["answer_lost"]) <= set(planted["retried"])
    assert not set(planted["dead"]) & set(planted["rebuilt"])
    assert len(planted["dead"]) + len(planted["rebuilt"]) == 500


def test_the_page_leads_to_four_reports(recorded):
    place = recorded(1).place
    reports = sorted(place.out.glob("reports/*/report.html"))
    assert len(reports) == 4
    page = place.report.read_text("utf-8")
    assert all(f'href="{report.relative_to(place.root)}"' in page for report in reports)


def _processes_of(folder: Path) -> list[int]:
    """Processes that name the folder on their command line or work in it."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            told = (entry / "cmdline").read_bytes() + bytes((entry / "cwd").readlink())
        except OSError:
            continue
        if str(folder).encode() in told:
            found.append(int(entry.name))
    return found


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -9)]
)
def test_no_process_is_left_when_the_demo_is_ended(tmp_path, number, code):
    root = tmp_path / "work"
    demo = subprocess.Popen(
        [sys.executable, "-m", "tallybook", "demo", "--jobs", "500", "--dir", str(root)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for((root / "processes" / "stopped.json").exists, "the victims", 60)
    demo.send_signal(number)
    _, complaints = demo.communicate(timeout=60)
    assert demo.returncode == code
    assert "Traceback" not in complaints
    wait_for(lambda: not _processes_of(root), "the end of all processes", 20)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--jobs", "7"], "--jobs 7"),
        (["--jobs", "many"], "--jobs many"),
        (["--jobs", "-5"], "--jobs"),
        (["--dir", "/dev/null"], "is a file"),
    ],
)
def test_what_cannot_be_used_is_one_line_with_exit_code_2(tmp_path, options, word):
    run = subprocess.run(
        [sys.executable, "-m", "tallybook", "demo", *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stdout) == (2, "")
    assert word in run.stderr
    assert run.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_missing_package_of_the_extra_is_named_with_what_to_type(tmp_path, monkeypatch):
    from tallybook.demo import run
    from tallybook.errors import BadInput

    monkeypatch.setattr(run, "NEEDED", ("no_such_package",))
    with pytest.raises(BadInput, match=r"pip install 'tallybook\[demo\]'"):
        run.run(run.Settings(folder=tmp_path / "work"), lambda *_: None)
    assert not list(tmp_path.iterdir())
