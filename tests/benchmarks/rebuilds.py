"""Folding a cache from a log, ours beside a query by hand: stages in a process of their own.

The log is written once for all rounds, as workers leave it: closed segments compressed, with a
manifest each, by a seed.
"""

from __future__ import annotations

import hashlib
import json
import random
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from tallybook.layout import Layout
from tallybook.log.compress import compress_closed

WRITER = "0190bbbb" + "0" * 24
SEGMENT_BYTES, OF_EVENTS = 64 * 1024 * 1024, 20_000_000
_OPENED = (
    '"event":"log.opened","occurred_at":"%s","boot_us":1,"writer":"%s","node_id":"n","host":"h",'
    '"pid":1,"boot_id":"b-1","versions":{},"previous_hash":"%s"}'
)
_PUT = (
    '"event":"cache.put","occurred_at":"%s","boot_us":%d,"key":"user/%d",'
    '"value":{"id":%d,"name":"name %d","score":%d.5},"version":%d,"origin":"local"}'
)
_GONE = '"event":"cache.invalidated","occurred_at":"%s","boot_us":%d,"key":"user/%d"}'
_BY_HAND = """
    copy (
        select key, arg_max(value, seq) as value, arg_max(version, seq) as version
        from read_json($files, columns = $columns, format = 'newline_delimited')
        where event in ('cache.put', 'cache.invalidated')
        group by key
        having arg_max(event, seq) = 'cache.put'
        order by key
    ) to '{out}' (format json)
"""
_COLUMNS = {
    "seq": "BIGINT", "event": "VARCHAR", "key": "VARCHAR", "value": "JSON", "version": "BIGINT",
}  # fmt: skip


class _Writer:
    """Lines with a true chain, in segments as the runtime cuts them."""

    def __init__(self, layout: Layout, segment_bytes: int) -> None:
        self._layout = layout
        self._segment_bytes = segment_bytes
        self._file: BinaryIO | None = None
        self._size = 0
        self.seq = 0
        self.hash = bytes(32)

    def line(self, rest: str) -> None:
        """One event, in a new segment where this one is full."""
        if self._file is None or self._size >= self._segment_bytes:
            self.close()
            self._file = self._layout.segment(WRITER, self.seq + 1).open("wb")
            self._size = 0
            self._write(_OPENED % (_at(self.seq), WRITER, self.hash.hex()))
        self._write(rest)

    def _write(self, rest: str) -> None:
        self.seq += 1
        line = b'{"v":1,"seq":%d,%b' % (self.seq, rest.encode())
        self.hash = hashlib.blake2b(self.hash + line, digest_size=32).digest()
        self._size += len(line) + 1
        if self._file:
            self._file.write(line + b"\n")

    def close(self) -> None:
        """End the open segment."""
        if self._file:
            self._file.close()


def _at(seq: int) -> str:
    second, rest = divmod(seq * 500, 1_000_000)
    hour, second = divmod(second, 3600)
    return f"2026-11-29T{10 + hour:02d}:{second // 60:02d}:{second % 60:02d}.{rest:06d}Z"


def log_of(folder: Path, events: int, keys: int) -> Path:
    """A book whose log has that many writes of that many keys; made once."""
    book = folder / f"rebuild-{events}"
    if (book / "metrics" / "latest.json").exists():
        return book
    layout, dice = Layout(book), random.Random(1)  # noqa: S311 - by a seed
    layout.log.mkdir(parents=True)
    layout.metrics.mkdir()
    # as many segments as the long form has, so that the open one is as small a part
    writer = _Writer(layout, SEGMENT_BYTES * events // OF_EVENTS)
    while writer.seq < events:
        key, seq, at = dice.randrange(keys), writer.seq, _at(writer.seq)
        gone = dice.random() < 0.03
        put = (at, seq, key, key, seq, key, seq)
        writer.line(_GONE % (at, seq, key) if gone else _PUT % put)
    writer.close()
    compress_closed(layout)
    mark = {"writer": WRITER, "seq": writer.seq, "hash": writer.hash.hex()}
    layout.latest.write_text(json.dumps(mark))
    return book


def _timed(act: Callable[[], None], memory: bool) -> float:
    begun = time.perf_counter()
    act()
    took = time.perf_counter() - begun
    peak_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    return peak_gb if memory else took


def by_hand(jobs: int, durability: str, folder: Path, book: str, memory: bool = False) -> float:
    """Seconds of the query that a person writes: no check of anything."""
    del jobs, durability
    import duckdb

    files = sorted(str(path) for path in Layout(Path(book)).segments())
    query = _BY_HAND.replace("{out}", str(folder / "cache.ndjson"))
    with duckdb.connect() as connection:
        connection.execute("set memory_limit = '1200MB'; set preserve_insertion_order = false")
        connection.execute(f"set temp_directory = '{folder}'")
        given = {"files": files, "columns": _COLUMNS}
        return _timed(lambda: connection.execute(query, given) and None, memory)


def folded(jobs: int, durability: str, folder: Path, book: str, memory: bool = False) -> float:
    """Seconds of our bulk fold, written out, on a log that was surveyed."""
    del jobs, durability
    from tallybook.recover.bulk import BulkFold
    from tallybook.recover.survey import survey

    found = survey(Layout(Path(book)), deep=False)
    with BulkFold(found, folder) as bulk:

        def act() -> None:
            bulk.fold(lambda _: None)
            bulk.write(folder / "cache.ndjson")

        return _timed(act, memory)


def certified(jobs: int, durability: str, folder: Path, book: str, memory: bool = False) -> float:
    """Seconds of ``cache rebuild --out`` as a whole, survey and certificate included; or GB."""
    del jobs, durability
    from tallybook.recover.caching import Wish, rebuild_cache

    return _timed(lambda: rebuild_cache(Path(book), Wish(out=folder)) and None, memory)
