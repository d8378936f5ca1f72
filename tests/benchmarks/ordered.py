"""Stages of ordering keys, resources and limits: what a claim costs with them, and among many."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tests.benchmarks.ours import drained, opened
from tests.benchmarks.stages import PAYLOAD

from tallybook import Book
from tallybook.book import New, Want

LIMITS = "[topics.a]\nmax_running = 100000\nrate_per_s = 1000000\nrate_burst = 1000000\n"


def work(folder: Path, jobs: int, durability: str, limit: int, feature: str) -> float:
    """Jobs a second, claimed and settled ``limit`` at a time, each with an ordering key or a
    resource of its own, or of a limited topic, or with nothing."""
    if feature == "limits":
        _limit(folder, durability)
    with opened(folder, durability) as book:
        fill(book, jobs, "a", feature)
        began = time.perf_counter()
        done = drained(book, limit)
        return done / (time.perf_counter() - began)


def among(folder: Path, jobs: int, durability: str, feature: str) -> float:
    """Plain jobs a second, one at a time, where ``jobs`` of their topic wait behind a leased one of
    their key or resource, and as many others have keys of their own and are leased."""
    with opened(folder, durability) as book:
        if feature:
            fill(book, jobs, "held", feature)
            while book.turn((), Want("w", ("held",), 3600, 1000)).jobs:
                pass
            fill(book, jobs, "a", feature, one=True)
            book.turn((), Want("w", ("a",), 3600, 1))
        fill(book, 1000, "a", "")
        began = time.perf_counter()
        done = drained(book, 1, 1000)
        return done / (time.perf_counter() - began)


def fill(book: Book, jobs: int, topic: str, feature: str, *, one: bool = False) -> None:
    """Enqueue many jobs, with keys of their own or all with one."""
    for start in range(0, jobs, 1000):
        numbers = range(start, min(start + 1000, jobs))
        book.enqueue_many([New(topic, PAYLOAD, **_wish(feature, one, n)) for n in numbers])


def _wish(feature: str, one: bool, number: int) -> dict[str, Any]:
    named = feature in ("ordering_key", "resource")
    return {feature: "one" if one else f"k{number}"} if named else {}


def _limit(folder: Path, durability: str) -> None:
    root = folder / "book"
    root.mkdir()
    (root / "book.toml").write_text(f'[log]\ndurability = "{durability}"\n{LIMITS}', "utf-8")
