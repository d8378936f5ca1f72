"""A run in a real kernel: every end is kept, and bad input is refused before one starts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from runbook_notebooks import answering, empty_book, ledger, lines, notebook

from tallybook import runbook
from tallybook.errors import BadInput, NotNow
from tallybook.runbook import answers
from tallybook.runbook.kernels import Warm


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]


def until(condition: Any, within_s: float = 20.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def test_a_run_leaves_notebook_report_findings_and_a_ledger_line(
    place: Path, warm: Warm, capfd: pytest.CaptureFixture[str]
) -> None:
    steps = (
        "import os, sys\nprint(name, n, os.environ['TALLYBOOK_BOOK'] == book, sys.prefix)",
        "os.write(2, b'noise'); print(os.getcwd())",
        answering("warning"),
    )
    notebook(place / "runbooks" / "small.ipynb", *steps)
    cells: list[tuple[int, int]] = []
    given = {"name": '007 "</script>{}\\', "n": "12"}
    seen = lambda cell, total: cells.append((cell, total))  # noqa: E731 - one line of a test
    result = runbook.run("small", given, progress=seen, warm=warm)

    assert (result.status, result.exit_code, result.message) == ("findings", 1, "")
    assert result.findings[0]["ids"] == ["a-1", "a-2"]
    assert sorted(path.name for path in result.folder.iterdir()) == [
        "findings.json",
        "notebook.ipynb",
        "report.html",
    ]
    assert {path.stat().st_mode & 0o777 for path in result.folder.iterdir()} == {0o600}
    assert result.folder.parent == Path("tallybook-out/node-7/reports")
    kept = (result.folder / "notebook.ipynb").read_text("utf-8")
    page = result.report.read_text("utf-8")
    said = f"{given['name']} 12 True {sys.prefix}"
    assert json.dumps(said, ensure_ascii=False)[1:-1] in kept
    assert ".partial" not in kept
    assert "&lt;/script&gt;" in page and page.count("</script>") == 1
    (line,) = ledger(place)
    assert line["run"] == result.folder.name
    assert (line["status"], line["exit_code"], line["parameters"]["n"]) == ("findings", 1, 12)
    assert line["duration_s"] > 0 and line["started_at"].endswith("Z")
    assert line["versions"]["papermill"]
    assert line["findings"] == {"problem": 0, "warning": 1, "info": 0}
    (log,) = line["inputs"]["log"]
    assert (log["segment"], log["seq"]) == ("0a1b2c3d-000000000001.ndjson", 1)
    assert cells == [(number, 6) for number in range(1, 7)]
    assert capfd.readouterr() == ("", "")


def test_only_news_is_a_clean_run(place: Path, warm: Warm) -> None:
    path = notebook(place / "small.ipynb", answering("info"))
    assert runbook.run(path, warm=warm).exit_code == 0


def test_incomplete_input_is_worse_than_findings(place: Path, warm: Warm) -> None:
    path = notebook(place / "small.ipynb", answering("problem", incomplete=True))
    result = runbook.run(path, warm=warm)
    assert (result.status, result.exit_code) == ("incomplete", 4)


def test_a_failing_cell_is_named_and_the_report_is_written(place: Path, warm: Warm) -> None:
    path = notebook(place / "small.ipynb", "1", "{}['x']", answering("info"))
    result = runbook.run(path, {"n": "1"}, warm=warm)
    assert (result.status, result.exit_code) == ("failed", 3)
    assert result.message == "runbook small: cell 4 (step-2) failed: KeyError: 'x'"
    assert "KeyError" in result.report.read_text("utf-8")
    assert json.loads((result.folder / "findings.json").read_text("utf-8"))["status"] == "failed"
    assert ledger(place)[0]["status"] == "failed"


@pytest.mark.parametrize(("error", "code"), [("BadInput", 2), ("IncompleteInput", 4)])
def test_a_cell_that_raises_our_own_error_ends_with_its_exit_code(
    place: Path, warm: Warm, error: str, code: int
) -> None:
    source = f"from tallybook.errors import {error}\nraise {error}('no export at x; name one')"
    result = runbook.run(notebook(place / "small.ipynb", source), warm=warm)
    assert result.exit_code == code
    assert result.message == "runbook small: no export at x; name one"


def test_a_killed_kernel_is_a_failure_of_the_cell_that_ran(place: Path) -> None:
    kill = "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"
    result = runbook.run(notebook(place / "small.ipynb", "1", kill, answering("info")))
    assert (result.status, result.exit_code) == ("failed", 3)
    assert "cell 4 (step-2) failed: DeadKernelError: its kernel died" in result.message
    cells = json.loads((result.folder / "notebook.ipynb").read_text("utf-8"))["cells"]
    states = {cell["id"]: cell["metadata"]["papermill"]["status"] for cell in cells}
    assert (states["step-1"], states["step-2"], states["step-3"]) == (
        "completed",
        "failed",
        "pending",
    )


def test_a_notebook_without_an_answer_is_not_called_clean(place: Path, warm: Warm) -> None:
    result = runbook.run(notebook(place / "small.ipynb", "1"), warm=warm)
    assert result.exit_code == 3
    assert result.message == "runbook small: its last cell gives no answer(findings)"


@pytest.mark.parametrize("carried", [None, [], {"status": "fine"}, {"status": "failed"}])
def test_an_answer_of_another_shape_is_none(carried: Any) -> None:
    outputs = [{"data": {answers.MIME: carried}}]
    assert answers.carried_by(outputs) is None


def test_the_kernel_is_this_python_whatever_kernels_a_user_has(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = place / "jupyter" / "kernels" / "python3"
    other.mkdir(parents=True)
    spec = {"argv": ["/bin/false", "{connection_file}"], "display_name": "x", "language": "python"}
    (other / "kernel.json").write_text(json.dumps(spec), "utf-8")
    startup = place / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "00.py").write_text("raise SystemExit('not mine')", "utf-8")
    monkeypatch.setenv("JUPYTER_PATH", str(place / "jupyter"))
    monkeypatch.setenv("IPYTHONDIR", str(place / "ipython"))
    source = f"import sys\nassert sys.executable == {sys.executable!r}"
    path = notebook(place / "small.ipynb", source, answering("info"))
    assert runbook.run(path).status == "clean"


def test_a_kernel_that_dies_at_its_birth_is_born_again(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = (
        "import os, pathlib, sys",
        f"died = pathlib.Path({str(place / 'died')!r})",
        "if 'ipykernel_launcher' in sys.orig_argv and not died.exists():",
        "    died.touch()",
        "    os._exit(1)",
    )
    (place / "sitecustomize.py").write_text("\n".join(once), "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(place))
    assert runbook.run(notebook(place / "small.ipynb", "1", answering("info"))).status == "clean"
    assert (place / "died").exists()


def test_bad_input_is_refused_before_anything_is_written(place: Path) -> None:
    path = notebook(place / "small.ipynb", answering("info"))
    with pytest.raises(BadInput, match=r"runbook small: no parameter nn: did you mean n\?"):
        runbook.run(path, {"nn": "1"})
    with pytest.raises(BadInput, match="parameter n: 'x' is no whole number"):
        runbook.run(path, {"n": "x"})
    bare = json.loads(path.read_text("utf-8"))
    bare["cells"][1]["metadata"] = {}
    (place / "bare.ipynb").write_text(json.dumps(bare), "utf-8")
    with pytest.raises(BadInput, match="runbook bare: it has no cell tagged 'parameters'"):
        runbook.run("bare.ipynb", {"n": "1"})
    with pytest.raises(BadInput, match="no runbook other"):
        runbook.run("other")
    with pytest.raises(BadInput, match="no book at nowhere"):
        runbook.run(path, book="nowhere")
    with pytest.raises(BadInput, match="two books"):
        runbook.run(path, {"book": "book"}, book="elsewhere")
    (place / "file").write_text("x", "utf-8")
    with pytest.raises(BadInput, match="cannot write under file"):
        runbook.run(path, out="file")
    assert not (place / "tallybook-out").exists()


def test_a_node_name_from_a_foreign_log_leads_to_no_other_folder(place: Path, warm: Warm) -> None:
    book = empty_book(place / "foreign", "../../../tmp/x")
    path = notebook(place / "small.ipynb", "1")
    assert runbook.run(path, book=book, warm=warm).folder.parts[:2] == ("tallybook-out", "tmp-x")


SLOW = """\
import os, pathlib, time
pathlib.Path("pid.new").write_text(str(os.getpid()))
os.rename("pid.new", "pid")
time.sleep(600)"""
DRIVER = "from tallybook import runbook; runbook.run('small.ipynb')"


@pytest.fixture
def slow(place: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A process that runs a slow runbook, and its kernel; it is gone at the end."""
    notebook(place / "small.ipynb", SLOW)
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as runner:
        try:
            until(lambda: (place / "pid").exists())
            yield runner, int((place / "pid").read_text("utf-8"))
        finally:
            runner.kill()


def test_ctrl_c_leaves_no_kernel_and_no_folder_and_one_line_in_the_ledger(
    place: Path, slow: tuple[subprocess.Popen[bytes], int]
) -> None:
    runner, kernel = slow
    runner.send_signal(signal.SIGINT)
    assert runner.wait(20) != 0
    until(lambda: not alive(kernel))
    assert not list((place / "tallybook-out" / "node-7" / "reports").iterdir())
    assert [(line["status"], line["exit_code"]) for line in ledger(place)] == [("interrupted", 130)]


def test_a_second_run_waits_for_its_turn_and_a_killed_one_blocks_nobody_and_is_told(
    place: Path, warm: Warm, slow: tuple[subprocess.Popen[bytes], int]
) -> None:
    runner, kernel = slow
    path = place / "small.ipynb"
    with pytest.raises(NotNow, match=rf"small: a run of it on .*book is under way .*{runner.pid}"):
        runbook.run(path, warm=warm)
    assert [run["status"] for run in runbook.history().runs] == ["running"]
    other = notebook(place / "other.ipynb", "print(n)", answering("info"))
    assert runbook.run(other, {"n": "9"}, warm=warm).status == "clean"

    runner.kill()
    runner.wait(20)
    until(lambda: not alive(kernel))
    (left,) = (place / "tallybook-out" / "node-7" / "reports").glob("*.partial")
    first = runbook.history().runs[0]
    assert (first["run"], first["status"]) == (left.name.removesuffix(".partial"), "interrupted")
    assert len(lines(place)) == 3

    notebook(place / "small.ipynb", "print(n)", answering("info"))
    assert runbook.run(path, warm=warm).status == "clean"
    told = [(line["runbook"], line["status"], line.get("message")) for line in lines(place)]
    assert told == [
        ("small", "running", None),
        ("other", "running", None),
        ("other", "clean", ""),
        (
            "small",
            "interrupted",
            "its process ended without a word: killed, or the machine stopped",
        ),
        ("small", "running", None),
        ("small", "clean", ""),
    ]
    assert left.is_dir()


def test_two_runbooks_at_once_do_not_meet(place: Path) -> None:
    results: dict[str, runbook.RunResult] = {}

    def one(n: str) -> None:
        path = notebook(place / f"small{n}.ipynb", "print(n)", answering("info"))
        results[n] = runbook.run(path, {"n": n})

    threads = [threading.Thread(target=one, args=(n,)) for n in ("1", "2")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n, result in results.items():
        assert result.status == "clean"
        assert f"<pre>{n}\n</pre>" in result.report.read_text("utf-8")
    assert len(ledger(place)) == 2


def test_importing_papermill_does_not_build_the_grammar_and_formats_are_still_checked() -> None:
    source = (
        "import sys\n"
        "from tallybook.imports import late_grammar\n"
        "with late_grammar():\n    import papermill\n"
        "assert 'lark' not in sys.modules\n"
        "from jsonschema import FormatChecker\n"
        "assert FormatChecker().conforms('http://exämple.org/ü', 'iri')\n"
        "assert not FormatChecker().conforms('ht tp://a b', 'iri')\n"
        "import rfc3987_syntax\nassert rfc3987_syntax.parse\n"
    )
    subprocess.run([sys.executable, "-c", source], check=True)


def test_naming_and_listing_runbooks_loads_no_jupyter() -> None:
    source = (
        "import sys\nfrom tallybook import runbook\nrunbook.listed()\n"
        "heavy = {'papermill', 'nbformat', 'duckdb', 'polars', 'altair', 'IPython', 'mistune'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", source], check=True)
