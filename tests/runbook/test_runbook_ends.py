"""Runs that do not end as they should: deadlines, floods, a full disk, an end without a word."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from runbook_notebooks import answering, ledger, lines, notebook

from tallybook import layout, runbook
from tallybook.errors import BadInput, NotNow
from tallybook.runbook import keeping
from tallybook.runbook.kernels import MOST_PRINTED, MOST_SHOWN, Allowance, Deadline, Warm
from tallybook.runbook.ledger import Ledger
from tallybook.runbook.limits import Limits
from tallybook.runbook.settings import load
from tallybook.runbook.turns import Turn

HANGS = "import time\ntime.sleep(600)  # here it hangs"


def test_a_cell_that_hangs_ends_at_its_deadline_the_report_shows_where_and_the_next_run_works(
    place: Path, warm: Warm
) -> None:
    path = notebook(place / "small.ipynb", HANGS, answering("info"))
    result = runbook.run(path, warm=warm, limits={"cell_deadline_s": 1})
    assert result.exit_code == 3
    why = "deadline: it took longer than 1 s; see --cell-deadline"
    assert result.message == f"runbook small: cell 3 (step-1) failed: {why}"
    page = result.report.read_text("utf-8")
    assert "KeyboardInterrupt" in page and "here it hangs" in page
    assert ledger(place)[0]["message"] == result.message
    path = notebook(place / "small.ipynb", answering("info"))
    assert runbook.run(path, warm=warm).status == "clean"


def test_a_cell_may_take_what_is_left_of_the_run_and_no_more_than_a_cell_may() -> None:
    assert Deadline.of(0, 0).left() is None
    assert Deadline.of(0, 5).left() == 5
    assert 0 < (Deadline.of(3, 5).left() or 0) <= 3
    over = Deadline.of(3, 5)
    over.until -= 4
    assert 0 < (over.left() or 0) < 0.1
    assert over.said == "the run took longer than 3 s; see --deadline"


def test_a_cell_that_prints_100_mb_is_cut_and_says_so(place: Path, warm: Warm) -> None:
    flood = "print('x' * 100_000_000)\nprint('the', 'end')"
    path = notebook(place / "small.ipynb", flood, "print('next')", answering("info"))
    result = runbook.run(path, warm=warm)
    assert result.status == "clean"
    page = result.report.read_text("utf-8")
    assert "[cut: this cell printed 100,000,009 characters; the first 1,000,000 are kept]" in page
    assert "the end" not in page and "<pre>next\n</pre>" in page
    assert sum(path.stat().st_size for path in result.folder.iterdir()) < 4 * MOST_PRINTED


def test_what_a_cell_shows_past_its_allowance_is_counted_and_said() -> None:
    allowance = Allowance()
    message = {"msg_type": "display_data", "content": {"data": {"text/html": "x" * MOST_SHOWN}}}
    assert allowance.takes(message) and not allowance.takes(message)
    cell: dict[str, Any] = {"outputs": []}
    allowance.end(cell)
    said = f"showed {2 * MOST_SHOWN:,} characters; {MOST_SHOWN:,} are kept"
    assert said in cell["outputs"][0]["text"]
    assert allowance.takes(message)


FULL = """
import resource, sys
from tallybook.cli.main import main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
sys.exit(main(["runbook", "run", "small.ipynb"]))
"""


def test_a_full_disk_is_one_line_and_the_ledger_is_honest(place: Path) -> None:
    notebook(place / "small.ipynb", "print('x' * 500_000)", answering("info"))
    command = [sys.executable, "-c", FULL, "100000"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 3
    assert ended.stderr.startswith("tallybook: runbook small: no room under ")
    assert ended.stderr.count("\n") == 1
    assert [line["status"] for line in lines(place)] == ["running", "failed"]
    assert not list((place / "tallybook-out" / "node-7" / "reports").iterdir())


def test_a_ledger_that_takes_no_line_keeps_its_lines_whole(tmp_path: Path) -> None:
    book = Ledger(tmp_path)
    book.append({"run": "a", "runbook": "r", "status": "clean"})
    size = book.path.stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, before[1]))
    try:
        with pytest.raises(OSError, match=r"File too large|No space left"):
            book.append({"run": "b", "runbook": "r", "status": "clean"})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert book.path.stat().st_size == size
    book.append({"run": "c", "runbook": "r", "status": "failed"})
    assert [run["run"] for run in book.runs()] == ["a", "c"]


def test_a_torn_line_of_the_ledger_is_counted_and_the_next_stands_on_its_own(
    tmp_path: Path,
) -> None:
    book = Ledger(tmp_path)
    book.path.write_text('{"run": "a", "runbook": "r", "status": "clean"}\n{"run": "b", "ru')
    book.append({"run": "c", "runbook": "r", "status": "clean"})
    assert [run["run"] for run in book.runs()] == ["a", "c"]
    assert book.unreadable() == 1


def test_the_turn_of_a_dead_holder_is_free_and_that_of_a_living_one_is_seen(tmp_path: Path) -> None:
    turn = Turn(tmp_path, "r", "book")
    assert not turn.has("one")
    with turn.taken({"run": "one", "pid": os.getpid()}):
        assert turn.has("one") and not turn.has("another")
        with Turn(tmp_path, "r", "elsewhere").taken({}), Turn(tmp_path, "s", "book").taken({}):
            pass
    assert turn.path.exists() and not turn.has("one")
    with turn.taken({}):
        assert not turn.has("one")


def test_a_book_has_one_run_of_a_runbook_whatever_its_path_and_wherever_the_runs_lie(
    tmp_path: Path,
) -> None:
    book, link = tmp_path / "book", tmp_path / "link"
    book.mkdir()
    link.symlink_to(book)
    one, other = tmp_path / "one", tmp_path / "other"
    said = rf"a run of it on .*link is under way with another --out \(pid {os.getpid()}\)"
    with Turn(one, "r", str(book)).taken({"run": "a"}):
        for _ in range(3):
            with pytest.raises(NotNow, match=said), Turn(other, "r", str(link)).taken({}):
                pytest.fail("two have the turn")
        assert not Turn(other, "r", str(link)).has("a")
        with Turn(other, "s", str(book)).taken({}):
            pass
    with Turn(other, "r", str(link)).taken({}):
        assert list(book.iterdir()) == []


def test_the_sample_book_can_be_looked_at_by_many_at_once(tmp_path: Path) -> None:
    sample = str(layout.carried("data-samples") / "book")
    with Turn(tmp_path / "1", "r", sample).taken({}), Turn(tmp_path / "2", "r", sample).taken({}):
        pass


def run_of(out: Path, name: str, days: float, *, partial: bool = False) -> None:
    """A run of the past, as its ledger and its folder have it."""
    began = datetime(2026, 11, 29, tzinfo=UTC) - timedelta(days=days)
    status = "running" if partial else "clean"
    told = {"run": name, "runbook": "r", "status": status, "started_at": began.isoformat()}
    Ledger(out).append(told)
    (out / "reports" / f"{name}{'.partial' * partial}").mkdir(parents=True)


@pytest.mark.parametrize(
    ("limits", "left"),
    [
        (Limits(), ["a", "b.partial", "c", "d"]),
        (Limits(keep=2), ["c", "d"]),
        (Limits(keep_days=3), ["b.partial", "c", "d"]),
        (Limits(keep=3, keep_days=1.5), ["c", "d"]),
        (Limits(keep_days=0.1), ["d"]),
    ],
)
def test_runs_are_kept_by_count_and_age_and_their_lines_stay(
    tmp_path: Path, limits: Limits, left: list[str]
) -> None:
    run_of(tmp_path, "a", 4)
    run_of(tmp_path, "b", 2, partial=True)
    run_of(tmp_path, "c", 1)
    run_of(tmp_path, "d", 0.5)
    keeping.remove_old(tmp_path, "r", "d", limits, datetime(2026, 11, 29, tzinfo=UTC))
    assert sorted(path.name for path in (tmp_path / "reports").iterdir()) == left
    assert [run["run"] for run in Ledger(tmp_path).runs()] == ["a", "b", "c", "d"]


def test_other_runbooks_and_runs_under_way_are_not_removed(tmp_path: Path) -> None:
    run_of(tmp_path, "a", 4, partial=True)
    run_of(tmp_path, "b", 1)
    now = datetime(2026, 11, 29, tzinfo=UTC)
    with Turn(tmp_path, "r", "None").taken({"run": "a"}):
        assert keeping.remove_old(tmp_path, "r", "b", Limits(keep=1), now) == []
    assert keeping.remove_old(tmp_path, "s", "b", Limits(keep=1), now) == []
    assert keeping.remove_old(tmp_path, "r", "b", Limits(keep=1), now) == ["a"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[runs]\nkeep = '5'", r"line 2: \[runs\] keep: write a whole number, not '5'"),
        ("[runs]\nkeep = 1.5", r"\[runs\] keep: write a whole number, not 1.5"),
        ("[runs]\nkeep_days = -1", r"line 2: \[runs\] keep_days: -1 is not in 0 to"),
        ("[runs]\ndeadline = 5", r"\[runs\] deadline: no such setting; did you mean deadline_s\?"),
        ("runs = 5", r"line 1: \[runs\]: runs must be a table"),
        ("[runs", "not valid TOML"),
    ],
)
def test_limits_of_a_wrong_type_name_their_place(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "runbooks.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(BadInput, match=said):
        load(path)


def test_an_option_stands_in_for_what_the_file_says(tmp_path: Path) -> None:
    path = tmp_path / "runbooks.toml"
    assert load(path).runs == Limits()
    path.write_text("[runs]\ndeadline_s = 60\nkeep = 7\n", "utf-8")
    assert load(path).runs.asked(keep=0, keep_days=None) == Limits(deadline_s=60, keep=0)
    with pytest.raises(BadInput, match="deadline_s: -1 is not"):
        load(path).runs.asked(deadline_s=-1)


def test_a_lone_surrogate_in_an_output_stays_in_the_notebook(place: Path, warm: Warm) -> None:
    path = notebook(place / "small.ipynb", r"print('a\udcffb')", answering("info"))
    result = runbook.run(path, warm=warm)
    assert json.loads((result.folder / "notebook.ipynb").read_text("utf-8"))["cells"]
    assert result.status == "clean"
