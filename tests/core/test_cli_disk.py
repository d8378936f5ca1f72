"""Files that may not be read, disks that are full, names that would steer a terminal: one line."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tallybook import Book
from tallybook.book import aside
from tallybook.cli import output
from tallybook.cli.main import main
from tallybook.errors import BadInput, TallybookError
from tallybook.payload import visible
from tallybook.recover import rebuild
from tallybook.worker.handlers import registered
from tallybook.worker.loop import Worker

STEERING = "a\x1b[31m\nb\u202ec"
SHOWN = "a\\x1b[31m\\nb\\u202ec"


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    with Book.open(tmp_path / "book") as book:
        book.enqueue("a", 1, idempotency_key=STEERING)
    yield tmp_path / "book"


@pytest.mark.parametrize("command", [["status"], ["jobs", "list"], ["enqueue", "a", "1"]])
def test_a_state_db_that_may_not_be_read_is_named_with_code_2(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: list[str],
) -> None:
    whole = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: Path(path).name != "state.db" and whole(path, mode)
    )
    assert main([*command, "--book", str(root)]) == 2
    told = capsys.readouterr().err
    assert f"{root}/state.db: Permission denied" in told
    assert told.count("\n") == 1 and "unexpected" not in told


def test_a_full_disk_in_a_rebuild_is_told_as_in_an_enqueue_and_leaves_nothing_aside(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (root / "state.db").read_bytes()

    def full(_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(root / "state.db"))

    monkeypatch.setattr(aside, "finish_aside", full)
    assert main(["rebuild", "--book", str(root)]) == 3
    assert "No space left on device; nothing was changed" in capsys.readouterr().err
    assert list(root.glob(".state.db*")) == []
    assert (root / "state.db").read_bytes() == before


def test_an_interrupted_rebuild_leaves_nothing_aside_and_what_a_kill_left_goes_at_the_next_open(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(aside, "finish_aside", interrupted)
        rebuild(root)
    assert list(root.glob(".state.db*")) == []
    (root / ".state.db.99999.new").touch()
    Book.open(root).close()
    assert list(root.glob(".state.db*")) == []


class _Full:
    """A standard output that takes nothing."""

    def write(self, _: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def flush(self) -> None:
        pass


def test_a_standard_output_that_is_full_or_closed_gets_one_line(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for stdout, words in (
        (_Full(), "standard output: No space left on device"),
        (None, "standard output is closed"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", stdout)
            assert main(["status", "--book", str(root)]) == 3
        told = capsys.readouterr().err
        assert words in told and told.count("\n") == 1


def test_names_that_would_steer_a_terminal_are_shown_escaped_on_one_line(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert visible(STEERING) == SHOWN
    for words in (["jobs", "list"], ["trace", STEERING]):
        assert main([*words, "--book", str(root)]) == 0
        told = capsys.readouterr().out
        assert SHOWN in told and "\x1b" not in told and "\u202e" not in told
        assert told.count("\n") <= 3
    assert main(["enqueue", "a", "2", "--key", STEERING, "--book", str(root)]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "\x1b" not in told
    assert output.plain("a\tb\nc\x07") == "a\tb\nc\\x07"


def test_a_worker_name_with_control_characters_is_refused(root: Path) -> None:
    handlers = {"a": registered(lambda _: None)}
    with pytest.raises(BadInput, match=r"--name n\\x1b: use no control characters"):
        Worker(root, handlers, name="n\x1b")


def test_a_book_that_is_removed_under_a_worker_ends_it_with_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strays: list[object] = []
    monkeypatch.setattr(threading, "excepthook", strays.append)
    root = tmp_path / "book"
    Book.open(root).close()
    begun = threading.Event()
    worker = Worker(root, {"a": registered(lambda _: begun.set())}, threads=2)
    raised: list[BaseException] = []

    def work() -> None:
        try:
            worker.run()
        except TallybookError as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    with Book.open(root) as book:
        book.enqueue("a", 1)
        assert begun.wait(10)
    shutil.rmtree(root)
    thread.join(10)
    assert not thread.is_alive()
    assert [type(error) for error in raised] == [TallybookError]
    assert "is gone" in str(raised[0])
    assert strays == [] and not root.exists()
