"""What the recorded process does to a book; each acknowledgement is a line on standard output.

So is the name of each sync, right before it.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from pathlib import Path

from tallybook import Book
from tallybook.book import New
from tallybook.book.folding import fold_anew
from tallybook.book.pruning import prune
from tallybook.clock import to_text
from tallybook.entry import Put
from tallybook.job import Job
from tallybook.log import durable, faults
from tallybook.log.compress import compress_closed
from tallybook.log.durable import make_folder, replace_file
from tallybook.log.faults import Fault
from tallybook.outcome import Outcome
from tallybook.testing import FakeClock

SYNCING = "syncing"
PLANNED = faults.from_environment(os.environ)


def say(*words: object) -> None:
    """Acknowledge: whoever reads this may act on it."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def name_syncs(kind: str, name: str) -> Fault | None:
    """The faults that the environment asks for; on its way each sync is named."""
    if kind == "sync":
        say(SYNCING, name)
    return PLANNED(kind, name) if PLANNED else None


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
    book.settle(done, [Put(f"key-{job.job_id}", {"by": job.job_id, "words": "z" * 3000})])
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
        say("compressing")
        compress_closed(book.layout)
        say("compressed")
        fill(book)
        say("filled")
    with Book.open(root) as book:
        for _ in range(6):
            settle(book, claim(book))
        say("swapping")
        swap(book)
        say("swapped")
        reader = look(root)
        enqueue(book, "while another program reads")
        settle(book, claim(book))
        say("pruning")
        prune(book)
        say("pruned")
        settle(book, claim(book))
        say("losing")
        lose_state(root)
        enqueue(book, "after a loss of the state")
    reader.close()


def withhold(root: Path) -> None:
    """Enqueue payloads that the log is not to have."""
    make_folder(root, 0o700)
    replace_file(root / "book.toml", b'[log]\npayload = "digest"\n', "settings")
    with Book.open(root) as book:
        enqueue(book, "first")
        say("begun")
        for number in range(3):
            enqueue(book, [number] * 2000)


def fill(book: Book) -> None:
    """Some pages of jobs that a fold lays out in another way than changes do."""
    for batch in range(4):
        made = book.enqueue_many([New("b", "y" * (60 * n + 7), priority=n) for n in range(20)])
        say("enqueued", made[batch].job_id)
        settle(book, claim(book))


def swap(book: Book) -> None:
    """Fold the state anew beside a WAL that is full."""
    with book.hold():
        fold_anew(book.layout).connection.close()


def look(root: Path) -> sqlite3.Connection:
    """Read as any program may: this one makes the WAL of the new state."""
    reader = sqlite3.connect(root / "state.db")
    reader.execute("select count(*) from jobs").fetchone()
    return reader


def lose_state(root: Path) -> None:
    for path in root.glob("state.db*"):
        path.unlink()


if __name__ == "__main__":
    does = {"live": main, "withhold": withhold, "look": lambda root: Book.open(root).close()}
    with durable.hooked(name_syncs):
        does[sys.argv[2]](Path(sys.argv[1]))
