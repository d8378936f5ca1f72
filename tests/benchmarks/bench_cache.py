"""Reads of the cache, hits and misses, beside diskcache and cachelib's FileSystemCache."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from tests.benchmarks.measuring import Row, interleaved, stage

TARGET = 1.0
PEERS = ("diskcache", "cachelib")
STORES = ("sqlite", "json")


def measure(full: bool) -> Iterator[Row]:
    """A row for each store, peer and kind of read; the peers sync nothing at a read either."""
    reads = 50_000 if full else 10_000
    for kind in ("hit", "miss"):
        ran = {
            name: stage(f"caches.{name}", reads, kind=kind)
            for name in (*(f"ours_{store}" for store in STORES), *PEERS)
        }
        got = interleaved(ran, 5 if full else 3)
        for store, peer in product(STORES, PEERS):
            name = f"cache read, {kind}, {store}, 1,000 keys"
            yield Row.beside(name, got[f"ours_{store}"], got[peer], peer, "1/s", TARGET)
