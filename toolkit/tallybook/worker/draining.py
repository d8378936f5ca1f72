"""When a draining worker is over: nothing of its topics is pending or leased."""

from __future__ import annotations

from collections.abc import Sequence

from tallybook.book import Book
from tallybook.job import Status
from tallybook.worker.patience import Patience


def is_over(book: Book, topics: Sequence[str], patience: Patience) -> bool:
    """Whether nothing of ``topics`` is left; says so where what is left waits for a person."""
    left = _open_topics(book, topics)
    if left and (paused := _paused(book, left)):
        patience.complain("--drain waits for jobs of paused topics: %s", paused)
    return not left


def _open_topics(book: Book, topics: Sequence[str]) -> list[str]:
    """Those of ``topics`` that have pending or leased jobs."""
    return [
        topic
        for topic, counts in book.counts().items()
        if topic in topics and counts.get(Status.PENDING, 0) + counts.get(Status.LEASED, 0)
    ]


def _paused(book: Book, topics: Sequence[str]) -> str:
    """Those of ``topics`` that are paused, with what to type; empty where none is."""
    switches = book.topics()
    paused = [topic for topic in topics if switches.get(topic) == "paused"]
    return ", ".join(f"{topic} (tallybook topic resume {topic})" for topic in paused)
