"""Reads of a cache of 1,000 keys with a TTL, a second: ours through the book, and peers."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.benchmarks.stages import PAYLOAD

from tallybook import Book

KEYS = 1_000
TTL_S = 3600


def ours_sqlite(jobs: int, durability: str, folder: Path, kind: str) -> float:
    """Reads through a book whose cache is in state.db."""
    return _ours(jobs, durability, folder, kind, "sqlite")


def ours_json(jobs: int, durability: str, folder: Path, kind: str) -> float:
    """Reads through a book whose cache is in memory and cache.json."""
    return _ours(jobs, durability, folder, kind, "json")


def diskcache(jobs: int, durability: str, folder: Path, kind: str) -> float:
    """Reads of diskcache, with its SQLite synced as ours."""
    from diskcache import Cache, JSONDisk

    with Cache(str(folder), disk=JSONDisk, sqlite_synchronous=_level(durability)) as cache:
        for number in range(KEYS):
            cache.set(f"key/{number}", PAYLOAD, expire=TTL_S)
        return _reads(jobs, kind, cache.get)


def cachelib(jobs: int, durability: str, folder: Path, kind: str) -> float:
    """Reads of cachelib's FileSystemCache; it has no durability to choose, it never syncs."""
    from cachelib import FileSystemCache

    cache = FileSystemCache(str(folder), threshold=0, default_timeout=TTL_S)
    for number in range(KEYS):
        cache.set(f"key/{number}", PAYLOAD)
    return _reads(jobs, kind, cache.get)


def _level(durability: str) -> int:
    return 2 if durability == "full" else 1


def _ours(jobs: int, durability: str, folder: Path, kind: str, store: str) -> float:
    settings = {"log": {"durability": durability}, "cache": {"store": store}}
    lines = [
        f"[{table}]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in part.items())
        for table, part in settings.items()
    ]
    (folder / "book.toml").write_text("".join(lines), "utf-8")
    with Book.open(folder) as book:
        for number in range(KEYS):
            book.put_entry(f"key/{number}", PAYLOAD, ttl_s=TTL_S)
        return _reads(jobs, kind, lambda key: book.read_entry(key).value)


def _reads(jobs: int, kind: str, read: Callable[[str], Any]) -> float:
    """Reads a second; each is checked, so that none can be of nothing."""
    wanted, prefix = (PAYLOAD, "key") if kind == "hit" else (None, "none")
    keys = [f"{prefix}/{number * 7919 % KEYS}" for number in range(jobs)]
    if read(keys[0]) != wanted:
        raise AssertionError(f"a {kind} gave {read(keys[0])!r}")
    began = time.perf_counter()
    for key in keys:
        read(key)
    return jobs / (time.perf_counter() - began)
