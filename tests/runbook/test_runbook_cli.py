"""``tallybook runbook`` and ``tallybook lab``: one clear line, one JSON object, the exit code."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path

import pytest
from runbook_notebooks import answering, empty_book, notebook

from tallybook.cli.main import main
from tallybook.runbook.ledger import Ledger


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a book and one runbook."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TALLYBOOK_BOOK", raising=False)
    empty_book(tmp_path / "book")
    notebook(tmp_path / "runbooks" / "small.ipynb", "1 / n", answering("problem"))
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["run", "smal"], "no runbook smal: did you mean small?"),
        (["run", "small", "-p", "nam=1"], "runbook small: no parameter nam: did you mean name?"),
        (["run", "small", "-p", "n=x"], "runbook small: parameter n: 'x' is no whole number"),
        (["run", "small", "-p", "n"], "-p n: write -p key=value"),
        (["run", "small", "-p", "n=1", "-p", "n=2"], "-p n is given twice"),
        (["run", "small", "--book", "none"], "no book at none"),
        (["run", "book/log"], "cannot read the runbook book/log"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runbook", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"tallybook: {line}") and printed.err.count("\n") == 1


def test_a_log_that_cannot_be_listed_is_an_error_with_its_path(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", refused)
    assert main(["runbook", "run", "small"]) == 3
    assert capsys.readouterr().err.endswith("book/log: Permission denied\n")


def test_without_any_book_a_run_that_changes_something_is_refused(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "elsewhere").mkdir()
    monkeypatch.chdir(place / "elsewhere")
    path = str(place / "runbooks" / "small.ipynb")
    assert main(["runbook", "run", path, "-p", "dry_run=false"]) == 2
    assert "name it with --book DIR" in capsys.readouterr().err


def test_without_any_book_the_sample_is_read_and_named_on_terminal_and_page(
    place: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (place / "elsewhere").mkdir()
    monkeypatch.chdir(place / "elsewhere")
    path = notebook(place / "one.ipynb", answering("info"))
    assert main(["runbook", "run", str(path), "--json"]) == 0
    out, err = capfd.readouterr()
    said = "tallybook: no book is named and none is at ./book: this is the sample book "
    assert err.startswith(said) and err.count("\n") == 1
    assert "(the sample: none was named)" in Path(json.loads(out)["report"]).read_text("utf-8")


def test_a_run_with_json_prints_one_object_and_nothing_else(
    capfd: pytest.CaptureFixture[str],
) -> None:
    code = main(["runbook", "run", "small", "-p", "n=2", "--json", "--out", "kept"])
    out, err = capfd.readouterr()
    answer = json.loads(out)
    assert (code, err) == (1, "")
    assert (answer["runbook"], answer["status"], answer["exit_code"]) == ("small", "findings", 1)
    assert Path(answer["report"]).parent.parent == Path("kept/reports")
    assert answer["findings"][0]["ids"] == ["a-1", "a-2"]


def test_a_failed_run_says_one_line_and_where_the_report_is(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert main(["runbook", "run", "small", "-p", "n=0"]) == 3
    out, err = capfd.readouterr()
    reason = "cell 3 (step-1) failed: ZeroDivisionError: division by zero"
    assert err == f"tallybook: runbook small: {reason}\n"
    assert "status: failed\nreport: tallybook-out/node-7/reports/small-" in out


def test_the_list_has_questions_and_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runbook", "list"]) == 0
    assert "-p n=3  [0..99] how many" in capsys.readouterr().out
    assert main(["runbook", "list", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["runbooks"]
    (one,) = [runbook for runbook in shown if runbook["name"] == "small"]
    assert one["parameters"][1] == {
        "name": "n",
        "kind": "whole number",
        "bounds": "0..99",
        "required": False,
        "default": 3,
        "meaning": "how many",
    }


def test_several_are_checked_first_then_run_on_one_kernel_and_the_worst_exit_code_is_theirs(
    place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pid = "import os\nassert 'left' not in globals()\nleft = 1\nprint('pid', os.getpid())"
    notebook(place / "runbooks" / "one.ipynb", pid, answering("info"))
    notebook(place / "runbooks" / "two.ipynb", pid, "1 / n", answering("problem"))
    assert main(["runbook", "run", "one", "three", "-p", "n=0"]) == 2
    assert not (place / "tallybook-out").exists()
    capfd.readouterr()

    assert main(["runbook", "run", "one", "two", "one", "-p", "n=0", "--json"]) == 3
    out, err = capfd.readouterr()
    told = json.loads(out)
    assert [run["status"] for run in told["runs"]] == ["clean", "failed", "clean"]
    assert told["exit_code"] == 3 and err.count("\n") == 1 and "ZeroDivisionError" in err
    pages = [Path(run["report"]).read_text("utf-8") for run in told["runs"]]
    assert len({re.search(r"pid \d+", page)[0] for page in pages}) == 1  # type: ignore[index]

    assert main(["runbook", "history", "two", "--status", "failed"]) == 0
    table = capfd.readouterr().out
    assert re.search(r"^20\d\d-.* two +failed +0 +0 +0 +\d+\.\d+ +two-", table, re.MULTILINE)
    assert table.count("\n") == 3


def test_the_history_of_a_folder_without_runs_and_of_a_torn_ledger_is_told(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runbook", "history"]) == 2
    assert "no runs under tallybook-out/node-7; name the folder" in capsys.readouterr().err
    out = place / "kept"
    out.mkdir()
    assert main(["runbook", "history", "--out", "kept"]) == 0
    assert capsys.readouterr().out == "no runs\n"
    for number in range(3):
        Ledger(out).append({"run": f"r-{number}", "runbook": "r", "status": "clean"})
    with (out / "runs.ndjson").open("a") as ledger:
        ledger.write('{"run": "torn')
    assert main(["runbook", "history", "--out", "kept", "--limit", "2"]) == 0
    printed = capsys.readouterr()
    assert printed.err == "tallybook: kept/runs.ndjson: 1 line cannot be read\n"
    assert "r-2" in printed.out and "r-0" not in printed.out and "and more: see" in printed.out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--deadline", "-1"], "deadline_s: -1.0 is not 0 to"),
        (["--keep", "1.5"], "argument --keep: invalid int value"),
        (["--out", "/proc/nowhere"], "cannot write under /proc/nowhere"),
    ],
)
def test_limits_and_folders_that_cannot_be_are_refused(
    options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(["runbook", "run", "small", *options])
    except SystemExit as ended:
        code = int(str(ended.code))
    assert code == 2 and said in capsys.readouterr().err


def test_lab_on_a_taken_port_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        assert main(["lab", "--port", str(port), "--no-browser"]) == 2
    assert capsys.readouterr().err == (
        f"tallybook: port {port} is in use on 127.0.0.1: choose another with --port\n"
    )
