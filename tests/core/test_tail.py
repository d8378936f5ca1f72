"""log tail: the newest events, and those that come, across rolls and compression."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from core_steps import events, segments

from tallybook import Book
from tallybook.book.pruning import prune
from tallybook.cli.main import main
from tallybook.event import Event
from tallybook.layout import Layout
from tallybook.log.compress import compress_closed
from tallybook.log.tail import Tail


def settled(root: Path) -> Path:
    """A folder whose book will have small segments."""
    root.mkdir()
    (root / "book.toml").write_text("[log]\nsegment_bytes = 2000\n")
    return root


def test_tail_prints_the_newest_events_as_trace_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = settled(tmp_path / "b")
    with Book.open(root) as book:
        for number in range(30):
            book.enqueue("a", number, correlation_id="c")
    compress_closed(Layout(root))
    assert main(["log", "tail", "-n", "3", "--book", str(root)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert main(["trace", "c", "--book", str(root)]) == 0
    assert shown == capsys.readouterr().out.splitlines()[-3:]


def test_tail_reaches_back_over_compressed_segments_and_gives_one_object_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = settled(tmp_path / "b")
    with Book.open(root) as book:
        for number in range(30):
            book.enqueue("a", number)
    whole = [line["seq"] for line in events(root)]
    compress_closed(Layout(root))
    for limit in (0, 1, 25, 10_000):
        assert main(["log", "tail", "-n", str(limit), "--json", "--book", str(root)]) == 0
        found = [json.loads(line)["seq"] for line in capsys.readouterr().out.splitlines()]
        assert found == whole[len(whole) - min(limit, len(whole)) :]
    assert main(["log", "tail", "-n", "-1", "--book", str(root)]) == 2


def test_following_loses_and_repeats_nothing_while_the_log_rolls_is_compressed_and_pruned(
    tmp_path: Path,
) -> None:
    root = settled(tmp_path / "b")
    seen: list[Event] = []
    with Book.open(root) as book:
        book.enqueue("a", 0)
        tail = Tail(book.layout)
        first = tail.newest(1)
        thread = threading.Thread(target=lambda: seen.extend(follow(tail, 100)), daemon=True)
        thread.start()
        for number in range(1, 101):
            book.enqueue("a", number)
            if number % 10 == 0:
                compress_closed(book.layout)
        thread.join(30)
        assert not thread.is_alive()
        prune(book)
        book.enqueue("a", 101)
        (after,) = follow(tail, 1)
    numbers = [event.get("payload", 0) for event in [*first, *seen, after]]
    assert numbers == list(range(102))


def follow(tail: Tail, count: int) -> list[Event]:
    """The next ``count`` enqueues."""
    found: list[Event] = []
    for event in tail.coming():
        found += [event] if event.name == "job.enqueued" else []
        if len(found) == count:
            break
    return found


def test_a_line_that_is_only_half_there_waits_until_it_is_whole(tmp_path: Path) -> None:
    root = settled(tmp_path / "b")
    pauses: list[float] = []
    with Book.open(root) as book:
        book.enqueue("a", 1)
        book.enqueue("a", 2)
    (path,) = segments(root)
    text = path.read_bytes()
    path.write_bytes(text[:-20])

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        path.write_bytes(text)

    tail = Tail(Layout(root), pause)
    assert [event.name for event in tail.newest(5)] == ["log.opened", "job.enqueued"]
    assert next(tail.coming())["payload"] == 2
    assert pauses


def test_ctrl_c_ends_a_following_tail_with_130_and_one_word(tmp_path: Path) -> None:
    root = settled(tmp_path / "b")
    with Book.open(root) as book:
        book.enqueue("a", 1)
        command = [sys.executable, "-m", "tallybook", "log", "tail", "-f", "--json", "--book", root]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stderr is not None
        assert [json.loads(process.stdout.readline())["seq"] for _ in range(2)] == [1, 2]
        book.enqueue("a", 2)
        assert json.loads(process.stdout.readline())["payload"] == 2
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130
        assert process.stderr.read() == "tallybook: interrupted\n"
