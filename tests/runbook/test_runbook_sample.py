"""The notebooks on the sample book: by papermill alone from two folders, and by the runner."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tallybook import runbook
from tallybook.runbook import answers, engine

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "data-samples"
NAMES = ("cache_rebuild", "reconcile", "stuck_leases", "throughput_latency")


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
import sys
from tallybook.imports import late_grammar
with late_grammar():
    import papermill
out, *paths = sys.argv[1:]
for path in paths:
    papermill.execute_notebook(path, f"{out}/{path}", progress_bar=False)
"""


def plain(cwd: Path, out: Path, *names: str) -> None:
    """Run notebooks of the folder ``cwd`` by papermill alone, with no book named."""
    environment = {name: text for name, text in os.environ.items() if name != "TALLYBOOK_BOOK"}
    command = [sys.executable, "-c", PLAIN, str(out), *names]
    ended = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-2000:]


def test_each_notebook_runs_by_papermill_alone_with_its_defaults(tmp_path: Path) -> None:
    from_root = [f"runbooks/{name}.ipynb" for name in NAMES[:3]]
    (tmp_path / "runbooks").mkdir()
    with ThreadPoolExecutor(2) as pool:
        runs = [
            pool.submit(plain, ROOT, tmp_path, *from_root),
            pool.submit(plain, ROOT / "runbooks", tmp_path, f"{NAMES[3]}.ipynb"),
        ]
    assert not [run.exception() for run in runs if run.exception()]
    written = sorted(tmp_path.rglob("*.ipynb"))
    assert sorted(path.stem for path in written) == list(NAMES)
    for path in written:
        cells = (engine.loaded(path) or {})["cells"]
        outputs = [output for cell in cells for output in cell.get("outputs", ())]
        answer = answers.carried_by(outputs)
        assert answer and answer.findings
        drawn = [output for output in outputs if "image/svg+xml" in output.get("data", {})]
        assert len(drawn) >= 2


def test_a_lost_state_is_found_and_with_dry_run_off_it_is_rebuilt(tmp_path: Path) -> None:
    book = tmp_path / "book"
    shutil.copytree(SAMPLES / "book", book)
    (book / "state.db").unlink()
    path = ROOT / "runbooks" / "cache_rebuild.ipynb"

    looked = runbook.run(path, book=book, out=tmp_path)
    assert [found["kind"] for found in looked.findings] == ["cache_lost"]
    assert not (book / "state.db").exists()

    mended = runbook.run(path, {"dry_run": "false"}, book=book, out=tmp_path)
    assert (mended.status, mended.message) == ("clean", "")
    found, seen = mended.findings
    assert (found["kind"], seen["severity"]) == ("rebuilt", "info")
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
    path = ROOT / "runbooks" / "stuck_leases.ipynb"
    result = runbook.run(path, book=book, out=tmp_path)
    assert (result.status, result.exit_code) == ("incomplete", 4)
    kinds = [found["kind"] for found in result.findings]
    assert kinds[0] == "quarantined" and "stuck_lease" in kinds


def test_a_parameter_that_ops_refuses_is_bad_input_in_one_line(tmp_path: Path) -> None:
    path = ROOT / "runbooks" / "throughput_latency.ipynb"
    result = runbook.run(
        path, {"since": "2026-11-29", "until": "2026-11-28"}, book=SAMPLES / "book", out=tmp_path
    )
    assert (result.status, result.exit_code) == ("bad_input", 2)
    assert result.message.startswith("runbook throughput_latency: since 2026-11-29")
