"""Named faults of rotation; the others are listed in README.md."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from fault_steps import started

from tallybook import Book
from tallybook.layout import Layout
from tallybook.log.compress import compress_closed
from tallybook.log.reader import history, segments
from tallybook.log.verify import verify
from tallybook.testing import FakeClock, audit

ENQUEUE = """
import sys
from tallybook import Book
with Book.open(sys.argv[1]) as book:
    for number in range(60):
        book.enqueue("a", {"by": sys.argv[2], "n": number})
"""


def test_ten_processes_and_tiny_segments_count_in_equals_count_out(tmp_path: Path) -> None:
    """F24, F25: no line is lost or mixed where several processes roll the log."""
    root = tmp_path / "b"
    root.mkdir()
    (root / "book.toml").write_text("[log]\nsegment_bytes = 2048\n")
    processes = [started(ENQUEUE, root, str(number)) for number in range(10)]
    assert [one.wait() for one in processes] == [0] * 10
    layout = Layout(root)
    compress_closed(layout)
    assert len(segments(layout)) > 50
    told = Counter(
        (event["payload"]["by"], event["payload"]["n"])
        for event, _ in history(layout)
        if event.name == "job.enqueued"
    )
    assert told == Counter((str(by), n) for by in range(10) for n in range(60))
    assert audit(root) == []


def test_a_segment_that_was_copied_and_truncated_shows_as_a_hole(tmp_path: Path) -> None:
    """F26, F27: lines are known by writer and seq, so what is gone or there twice shows."""
    root, clock = tmp_path / "b", FakeClock()
    with Book.open(root, clock=clock) as book:
        for number in range(3):
            book.enqueue("a", number)
        clock.reboot()
        book.enqueue("a", 3)
    first, second = segments(Layout(root))
    (root / "log" / f"{first.path.name}.1").write_bytes(first.path.read_bytes())
    with Book.open(root, clock=clock) as book:
        assert len(book.jobs()) == 4
    whole = first.path.read_bytes()
    first.path.write_bytes(b"")
    assert not verify(Layout(root)).complete
    first.path.write_bytes(whole)
    second.path.write_bytes(second.path.read_bytes() * 2)
    assert not verify(Layout(root)).complete
