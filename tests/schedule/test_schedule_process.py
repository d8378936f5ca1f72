"""The schedule as a process: signals, a kill in mid-run, two on one book, the command itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from schedule_steps import WAIT_S

from tallybook.cli.main import main
from tallybook.runbook.schedule import diary
from tallybook.runbook.schedule.holding import held, holder

DUE = datetime(2026, 6, 1, 2, tzinfo=UTC)
KEEP = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from schedule_steps import Told, entry
from tallybook.runbook.schedule import keep
place = Path(sys.argv[2])
sys.exit(keep([entry()], place, place / "schedule", lambda _: ["sh", "-c", sys.argv[3]], Told()))
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a diary in which a time has been missed, so that a run begins at once."""
    page = diary.Page("0 2 * * * UTC", DUE - timedelta(hours=1))
    diary.write(tmp_path / "schedule" / diary.FILE, diary.Diary({"night": page}))
    return tmp_path


@pytest.fixture
def start(place: Path) -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    """Starts a schedule whose runs are the given shell command."""
    made: list[subprocess.Popen[bytes]] = []

    def begin(does: str) -> subprocess.Popen[bytes]:
        here = str(Path(__file__).parent)
        command = [sys.executable, "-c", KEEP, here, str(place), does]
        made.append(subprocess.Popen(command, stderr=subprocess.PIPE))
        return made[-1]

    yield begin
    for process in made:
        process.kill()
        process.communicate()


def page(place: Path) -> diary.Page:
    """What the diary says of the entry."""
    return diary.read(place / "schedule" / diary.FILE).pages["night"]


def wait(is_so: Callable[[], bool]) -> None:
    """Wait until ``is_so``."""
    end = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_tells_the_run_under_way_and_waits_for_it(
    place: Path, start: Callable[[str], subprocess.Popen[bytes]], number: int, code: int
) -> None:
    says = f"trap 'sleep 0.05; touch {place}/told; exit 130' INT; touch {place}/on"
    process = start(f"{says}; for _ in $(seq 6000); do sleep 0.01; done")
    wait((place / "on").exists)
    process.send_signal(number)
    assert process.wait(WAIT_S) == code
    assert (place / "told").exists() and page(place).running is None
    assert page(place).waiting, "the run that was stopped is run at the next start"


def test_killed_in_mid_run_the_next_schedule_waits_for_that_run_and_runs_it_once(
    place: Path, start: Callable[[str], subprocess.Popen[bytes]]
) -> None:
    done = json.dumps({"status": "findings", "exit_code": 1})
    waits = f"for _ in $(seq 6000); do [ -e {place}/go ] && break; sleep 0.01; done"
    does = f"echo run >> {place}/on; {waits}; echo '{done}'"
    first = start(does)
    wait((place / "on").exists)
    first.kill()
    first.wait(WAIT_S)
    second = start(does)
    wait(lambda: diary.read(place / "schedule" / diary.FILE).holder.get("pid") == second.pid)
    (place / "go").touch()
    wait(lambda: page(place).last is not None)
    second.terminate()
    assert second.wait(WAIT_S) == 0
    last = page(place).last
    assert last is not None and (last.status, last.exit_code) == ("findings", 1)
    assert (place / "on").read_text() == "run\n"


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a book and a runbook that is scheduled."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TALLYBOOK_BOOK", raising=False)
    (tmp_path / "book" / "log").mkdir(parents=True)
    (tmp_path / "runbooks").mkdir()
    parameters = {"cell_type": "code", "metadata": {"tags": ["parameters"]}, "outputs": []}
    cells = [{**parameters, "source": "n = 3", "execution_count": None, "id": "parameters"}]
    answering = "from tallybook.runbook import answer\nanswer([])"
    cells.append({**cells[0], "metadata": {}, "source": answering, "id": "answer"})
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "runbooks" / "small.ipynb").write_text(json.dumps(notebook), "utf-8")
    write(tmp_path)
    return tmp_path / "book"


def write(folder: Path, **fields: str) -> None:
    """A schedule of one entry."""
    known = {"runbook": "small", "cron": "30 2 * * *", "zone": "Europe/Berlin", **fields}
    lines = [f'{name} = "{value}"' for name, value in known.items()]
    (folder / "runbooks" / "runbooks.toml").write_text("\n".join(["[[schedule]]", *lines]), "utf-8")


def test_the_second_schedule_of_a_book_says_who_holds_it(
    book: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = book.parent / "tallybook-out" / "node" / "schedule"
    known = holder("2026-06-01T00:00:00Z")
    diary.write(place / diary.FILE, replace(diary.Diary(), holder=known))
    with held(book, {}):
        assert main(["runbook", "schedule"]) == 3
        assert main(["runbook", "schedule", "--out", "other"]) == 3
    first, second = capsys.readouterr().err.splitlines()
    assert first.endswith(
        f"another schedule of {book} is at work: process {os.getpid()} on {known['host']} "
        "since 2026-06-01T00:00:00Z; stop that one first"
    )
    assert "a process that writes under another --out" in second


def test_an_entry_is_run_now_with_the_exit_code_and_report_of_the_run(
    book: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["runbook", "schedule", "--now", "small"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert "small: begun" in lines[0] and "small: clean; report: /" in lines[1]
    assert Path(lines[1].partition("report: ")[2]).is_file()


def test_the_next_times_are_told_in_utc_and_on_the_clock_of_the_zone(
    book: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runbook", "schedule", "--next", "2", "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)["times"]
    assert (first["name"], first["runbook"], first["zone"]) == ("small", "small", "Europe/Berlin")
    assert first["due_at"] < second["due_at"] and "T02:30+0" in first["local"]


@pytest.mark.parametrize(
    ("fields", "arguments", "said"),
    [
        ({"cron": "30 25 * * *"}, [], "[[schedule]] small: cron: the field hour is '25'"),
        ({"zone": "Europe/Berln"}, [], "zone: no time zone 'Europe/Berln': did you mean Europe/Be"),
        ({"runbook": "smal"}, [], "no runbook smal: did you mean small?"),
        ({"parameters.m": "1"}, [], "[[schedule]] small: no parameter m: known: n"),
        ({"parameters.n": "x"}, [], "parameter n: 'x' is no whole number"),
        ({}, ["--now", "smal"], "no entry smal in the schedule: did you mean small?"),
        ({}, ["--next", "0"], "--next 0: write 1 to 1000"),
        ({}, ["--parallel", "0"], "--parallel: write 1 or more"),
        ({}, ["--book", "none"], "no book at none"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    book: Path,
    fields: dict[str, str],
    arguments: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(book.parent, **fields)
    assert main(["runbook", "schedule", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and said in printed.err and printed.err.count("\n") == 1


def test_without_a_schedule_it_says_which_file_has_none(
    book: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (book.parent / "runbooks" / "runbooks.toml").unlink()
    assert main(["runbook", "schedule"]) == 2
    assert "runbooks/runbooks.toml has no [[schedule]]" in capsys.readouterr().err


def test_a_target_that_cannot_be_used_is_told_where_nothing_is_scheduled_yet(
    book: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = book.parent / "runbooks" / "runbooks.toml"
    file.write_text('[alerts.night]\ntargets = ["env:NO_SUCH_URL"]\n')
    assert main(["runbook", "schedule"]) == 2
    said = "runbooks.toml line 1: [alerts.night] targets: the secret env:NO_SUCH_URL"
    assert said in capsys.readouterr().err
