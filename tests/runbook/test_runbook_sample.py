"""The notebooks on the sample book: by papermill alone from two folders, by the runner, and cell by
cell in this process."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tallybook import runbook
from tallybook.errors import BadInput
from tallybook.ops.charts import Drawing
from tallybook.runbook import answers, engine
from tallybook.runbook.kernels import Warm

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "data-samples"


def digests(root: Path) -> dict[Path, str]:
    """Every file under ``root`` and what is in it."""
    files = sorted(path for path in root.rglob("*") if path.is_file())
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module", autouse=True)
def unchanged() -> Iterator[None]:
    """The samples are the same, byte for byte and file for file, after every run."""
    before = digests(SAMPLES)
    yield
    assert digests(SAMPLES) == before


PLAIN = """
import os, sys
from tallybook.imports import late_grammar
with late_grammar():
    import papermill
root, out = sys.argv[1:]
for folder, path in (("", "runbooks/log_health.ipynb"), ("runbooks", "dead_letters.ipynb")):
    os.chdir(os.path.join(root, folder))
    papermill.execute_notebook(path, out + "/" + path, progress_bar=False)
"""


def test_notebooks_run_by_papermill_alone_with_their_defaults_from_two_folders(
    tmp_path: Path,
) -> None:
    (tmp_path / "runbooks").mkdir()
    environment = {name: text for name, text in os.environ.items() if name != "TALLYBOOK_BOOK"}
    command = [sys.executable, "-c", PLAIN, str(ROOT), str(tmp_path)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-2000:]
    written = sorted(tmp_path.rglob("*.ipynb"))
    assert [path.stem for path in written] == ["dead_letters", "log_health"]
    for path in written:
        cells = (engine.loaded(path) or {})["cells"]
        outputs = [output for cell in cells for output in cell.get("outputs", ())]
        answer = answers.carried_by(outputs)
        assert answer and answer.findings and answer.seen
        assert [output for output in outputs if "image/svg+xml" in output.get("data", {})]


@pytest.mark.parametrize("name", ["backlog", "settings_review", "weekly_review", "reconcile"])
def test_the_others_run_cell_by_cell_with_their_defaults(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("TALLYBOOK_BOOK", raising=False)
    tried = runbook.trial(ROOT / "runbooks" / f"{name}.ipynb")
    drawn = [shown for shown in tried.shown.values() if isinstance(shown, Drawing)]
    assert tried.answer.findings and drawn


def test_a_lost_state_is_found_and_with_dry_run_off_it_is_rebuilt(
    tmp_path: Path, warm: Warm
) -> None:
    book = tmp_path / "book"
    shutil.copytree(SAMPLES / "book", book)
    (book / "state.db").unlink()
    path = ROOT / "runbooks" / "cache_rebuild.ipynb"

    looked = runbook.trial(path, book=str(book)).answer
    assert [found["kind"] for found in looked.findings] == ["cache_lost"]
    assert not (book / "state.db").exists()

    mended = runbook.run(path, {"dry_run": "false"}, book=book, out=tmp_path, warm=warm)
    assert (mended.status, mended.message) == ("clean", "")
    found = mended.findings[0]
    assert found["kind"] == "rebuilt"
    assert found["ids"] == looked.findings[0]["ids"]


def test_a_log_with_a_torn_line_in_its_middle_is_incomplete_and_still_answered(
    tmp_path: Path,
) -> None:
    book = tmp_path / "book"
    shutil.copytree(SAMPLES / "book", book)
    segment = max((book / "log").glob("*.ndjson"))
    lines = segment.read_bytes().splitlines(keepends=True)
    middle = len(lines) // 2
    lines[middle] = lines[middle][: len(lines[middle]) // 2] + b"\n"
    segment.write_bytes(b"".join(lines))
    tried = runbook.trial(ROOT / "runbooks" / "stuck_leases.ipynb", book=str(book))
    assert tried.answer.status == "incomplete"
    kinds = [found["kind"] for found in tried.answer.findings]
    assert kinds[0] == "quarantined" and "stuck_lease" in kinds


def test_a_parameter_that_ops_refuses_is_bad_input_in_one_line() -> None:
    path = ROOT / "runbooks" / "throughput_latency.ipynb"
    with pytest.raises(BadInput, match="no time zone 'Mars/Olympus'"):
        runbook.trial(path, zone="Mars/Olympus", book=str(SAMPLES / "book"))
