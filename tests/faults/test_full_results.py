"""Results on a full disk: exit code 3, and no file that is cut has the name of a whole one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from fault_steps import largest_file

from tallybook import Book, whole
from tallybook.cli.main import main
from tallybook.ops.reconciling import ledger


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A book, an export that differs from its cache in each row, and a change log."""
    root = tmp_path_factory.mktemp("full")
    rows = [{"id": f"key-{n}", "x": n, "text": "ab" * 40} for n in range(60)]
    with Book.open(root / "book") as book:
        for row in rows:
            book.put_entry(row["id"], row)
            book.enqueue("other", row["text"])
    (root / "cloud.csv").write_text(
        "id,text\n" + "".join(f"{row['id']},{row['text']}\n" for row in rows)
    )
    (root / "local.csv").write_text("id,text\n" + "".join(f"{row['id']},a\n" for row in rows))
    changes = [{"database": "d", "table": "t", "type": "insert", "ts": 1_700_000_000, "data": row,
                "primary_key_columns": ["id"]} for row in rows]  # fmt: skip
    (root / "changes").write_text("".join(json.dumps(one) + "\n" for one in changes))
    return root


COMPARED = ("reconcile", "cloud.csv", "--key", "id", "--local", "local.csv", "--out", "out")
OF_BOOK = ("reconcile", "cloud.csv", "--key", "id", "--book", "book", "--out", "out")
CACHE = ("cache", "rebuild", "--book", "book", "--out", "out")
RESULTS = {
    "reconcile csv": (COMPARED, "differences.csv"),
    "reconcile parquet": ((*COMPARED, "--format", "parquet"), "differences.parquet"),
    "reconcile ndjson": ((*COMPARED, "--format", "ndjson"), "differences.ndjson"),
    "reconcile page": (COMPARED, "report.html"),
    "profile": (("reconcile", "cloud.csv", "--inspect", "--out", "out"), "profile.toml"),
    "plan": ((*OF_BOOK, "--plan", "server"), "plan-*.ndjson"),
    "cache": (CACHE, "cache.ndjson"),
    "cache parquet": ((*CACHE, "--format", "parquet"), "cache.parquet"),
    "changes": (
        ("cache", "rebuild", "--from", "changes", "--profile", "maxwell", "--out", "out"),
        "cache.ndjson",
    ),
    "jobs": (("jobs", "export", "out/jobs.csv", "--book", "book"), "jobs.csv"),
}


@pytest.mark.parametrize("what", RESULTS)
def test_a_result_that_the_disk_does_not_take_leaves_what_was_there(
    place: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    what: str,
) -> None:
    words, name = RESULTS[what]
    monkeypatch.chdir(place)
    whole_run, cut_run = tmp_path / "whole", tmp_path / "cut"
    made = run(words, whole_run).glob(name)
    size = max(path.stat().st_size for path in made)
    old = cut_run / name
    cut_run.mkdir()
    if what not in ("plan", "profile", "jobs"):  # of those only new files are written
        old.write_text("old")
    capsys.readouterr()
    with largest_file(size - 1):
        run(words, cut_run, 3)
    said = capsys.readouterr().err
    assert re.search("make room|File too large; nothing was changed", said)
    assert said.count("\n") == 1
    assert [path.read_text() for path in cut_run.glob(name)] == ["old"] * old.exists()
    assert not [path for path in cut_run.iterdir() if path.name.startswith((".", "tmp_"))]


def run(words: tuple[str, ...], out: Path, code: int | None = None) -> Path:
    """Run a command with its results in ``out``, which is then there."""
    out.mkdir(exist_ok=True)
    given = [
        str(out / word.removeprefix("out/")) if word.startswith("out/") else word for word in words
    ]
    told = main([str(out) if word == "out" else word for word in given])
    assert code in (None, told)
    return out


def test_a_file_that_cannot_be_finished_is_as_it_was_and_its_name_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    whole.put(path, b"old")
    with largest_file(10), pytest.raises(OSError, match=r"too large.*a\.json"):
        whole.put(path, b"new" * 10)
    with pytest.raises(ZeroDivisionError), whole.written(path) as aside:
        aside.write_bytes(b"half")
        raise ZeroDivisionError
    assert (path.read_bytes(), list(tmp_path.iterdir())) == (b"old", [path])
    assert whole.put(path, b"new").read_bytes() == b"new"


def test_a_line_that_the_disk_does_not_take_is_taken_back_from_the_ledger(tmp_path: Path) -> None:
    path = tmp_path / "reconciliations.ndjson"
    ledger._append(path, {"first": 1})
    before = path.read_bytes()
    with largest_file(len(before) + 5), pytest.raises(OSError, match="No space left"):
        ledger._append(path, {"second": 2})
    assert path.read_bytes() == before
