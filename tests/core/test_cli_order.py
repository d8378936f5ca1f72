"""``tallybook enqueue`` with ordering keys, resources and bounds."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from tallybook import Book
from tallybook.cli.main import main


def fed(monkeypatch: pytest.MonkeyPatch, *lines: object) -> None:
    """Lines on standard input."""
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def test_the_options_of_order_reach_the_job_and_what_was_superseded_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = str(tmp_path / "book")
    words = ["enqueue", "a", "1", "--ordering-key", "k", "--resource", "r", "--book", root]
    assert main([*words, "--json"]) == 0
    (first,) = json.loads(capsys.readouterr().out)["job_ids"]
    assert main([*words, "--keep-latest"]) == 0
    latest, superseded = capsys.readouterr().out.splitlines()
    assert superseded == f"{first}  (superseded)"
    with Book.read(root) as book:
        job = book.job(latest)
    assert job is not None and (job.ordering_key, job.resource) == ("k", "r")


def test_lines_of_standard_input_carry_them_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = {"topic": "a", "payload": 1, "ordering_key": "k", "resource": "r", "keep_latest": True}
    fed(monkeypatch, line, line)
    assert main(["enqueue", "-", "--book", str(tmp_path / "book")]) == 0
    assert capsys.readouterr().out == "2 enqueued, 0 already there, 1 superseded\n"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({"topic": "a", "payload": 1, "keep_latest": True}, "give an ordering key"),
        ({"topic": "a", "payload": 1, "keep_latest": 1}, "keep_latest: 1 is not bool"),
        ({"topic": "a", "payload": 1, "ordering_key": ""}, "ordering key: 0 bytes"),
        ({"topic": "a", "payload": 1, "resource": 7}, "resource: 7 is not str"),
        ({"topic": "a", "payload": 1, "priority": True}, "priority: True is not int"),
    ],
)
def test_a_line_that_asks_for_no_order_there_is_names_its_place(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    line: object,
    words: str,
) -> None:
    fed(monkeypatch, {"topic": "a", "payload": 0}, line)
    assert main(["enqueue", "-", "--book", str(tmp_path / "book")]) == 2
    told = capsys.readouterr().err
    assert "standard input line 2" in told and words in told


def test_a_full_topic_names_the_first_line_that_did_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "book.toml").write_text("[topics.a]\nmax_pending = 2\n")
    fed(monkeypatch, *[{"topic": "a", "payload": n} if n else "" for n in range(5)])
    assert main(["enqueue", "-", "--book", str(tmp_path)]) == 3
    told = capsys.readouterr().err
    assert "standard input line 4: topic a is full: 0 jobs are pending" in told
    assert told.count("\n") == 1 and "0 jobs of the lines before are on disk" in told
    with Book.read(tmp_path) as book:
        assert book.counts() == {}
