"""Bad input gets one clear line that says what to do, exit code 2, and changes nothing."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tallybook import Book
from tallybook.layout import Layout
from tallybook.log.reader import history

TWO = """
from tallybook import handler

@handler("a")
def one(job):
    pass

@handler("a")
def two(job):
    pass
"""


def run(cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "TALLYBOOK_BOOK"}
    command = [sys.executable, "-m", "tallybook", *words]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=60)


def refused(done: subprocess.CompletedProcess[str], words: str, code: int = 2) -> None:
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("nowhere", "no module 'nowhere'"),
        ("two", "two handlers for topic a: two.one line 4 and two.two line 8; keep one"),
    ],
)
def test_a_module_that_cannot_serve_is_named(tmp_path: Path, module: str, words: str) -> None:
    (tmp_path / "two.py").write_text(TWO)
    with Book.open(tmp_path / "book") as book:
        book.enqueue("a", 1)
    refused(run(tmp_path, "worker", module), words)


@pytest.mark.parametrize("payload", ["{", "NaN", '"\\ud800"', "9007199254740993", "[1,]", ""])
def test_a_payload_that_is_no_json_is_refused_and_nothing_is_enqueued(
    tmp_path: Path, payload: str
) -> None:
    done = run(tmp_path, "enqueue", "a", payload)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "Traceback" not in done.stderr
    assert not (tmp_path / "book" / "log").exists() or not list(
        Layout(tmp_path / "book").segments()
    )


def test_a_key_of_10_kb_is_refused_with_its_length(tmp_path: Path) -> None:
    refused(run(tmp_path, "enqueue", "a", "1", "--key", "k" * 10_000), "10000 bytes")


def test_a_database_of_another_program_in_the_way_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "book" / "log").mkdir(parents=True)
    other = sqlite3.connect(tmp_path / "book" / "state.db")
    other.execute("create table notes (words)")
    other.commit()
    other.close()
    before = (tmp_path / "book" / "state.db").read_bytes()
    refused(run(tmp_path, "enqueue", "a", "1"), "a database of another program; move it")
    assert (tmp_path / "book" / "state.db").read_bytes() == before


def test_a_log_that_is_a_symbolic_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "log").symlink_to(tmp_path / "elsewhere")
    refused(run(tmp_path, "enqueue", "a", "1"), "is a symbolic link")


def test_a_line_of_a_newer_version_is_named_and_not_guessed_at(tmp_path: Path) -> None:
    with Book.open(tmp_path / "book") as book:
        book.enqueue("a", 1)
    (segment,) = Layout(tmp_path / "book").segments()
    lines = segment.read_bytes().splitlines(keepends=True)
    newer = json.loads(lines[-1]) | {"v": 2, "seq": len(lines) + 1}
    segment.write_bytes(b"".join(lines) + json.dumps(newer).encode() + b"\n")
    done = run(tmp_path, "enqueue", "a", "2")
    assert done.returncode in (2, 3, 4)
    assert "version 2" in done.stderr or "v is 2" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_book_of_another_machine_goes_on_as_another_writer(tmp_path: Path) -> None:
    root = tmp_path / "book"
    with Book.open(root) as book:
        book.enqueue("a", 1)
    told = json.loads((root / "log" / "writer.json").read_bytes())
    (root / "log" / "writer.json").write_text(json.dumps(told | {"machine": "0" * 32}))
    assert run(tmp_path, "enqueue", "a", "2").returncode == 0
    events = [event for event, _ in history(Layout(root))]
    assert len({event.writer for event in events}) == 2
    assert [e["reason"] for e in events if e.name == "log.repaired"] == ["copied"]
