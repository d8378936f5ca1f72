"""What the recorded process does to a book; each acknowledgement is a line on standard output."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tallybook import Book
from tallybook.clock import to_text
from tallybook.entry import Put
from tallybook.job import Job, Outcome
from tallybook.layout import Layout
from tallybook.log.compress import compress_closed
from tallybook.recover import rebuild
from tallybook.testing import FakeClock


def say(*words: object) -> None:
    """Acknowledge: whoever reads this may act on it."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def enqueue(book: Book, payload: object) -> None:
    say("enqueued", book.enqueue("a", payload).job_id)


def claim(book: Book) -> Job:
    job = book.claim("w")
    assert job is not None
    say("leased", job.job_id, job.lease_token)
    return job


def settle(book: Book, job: Job) -> None:
    now = to_text(book.moment().now)
    done = Outcome(job.job_id, job.topic, "w", job.lease_token, "done", now, 1.0)
    book.settle(done, [Put(f"key-{job.job_id}", {"by": job.job_id})])
    say("done", job.job_id, job.lease_token)


def main(root: Path) -> None:
    clock = FakeClock()
    with Book.open(root, clock=clock) as book:
        for number in range(3):
            enqueue(book, number)
        settle(book, claim(book))
        clock.reboot()
        enqueue(book, "x" * 20_000)
        clock.reboot()
        enqueue(book, "the third segment")
        compress_closed(Layout(root))
        say("compressed")
    with Book.open(root) as book:
        held = claim(book)
        enqueue(book, "again")
        rebuild(root)
        enqueue(book, "after a rebuild")
        settle(book, held)
        for path in root.glob("state.db*"):
            path.unlink()
        enqueue(book, "after a loss of the state")
        settle(book, claim(book))


main(Path(sys.argv[1]))
