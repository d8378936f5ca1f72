"""Logs written by hand, with a true chain, to be damaged: quicker than a book that syncs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tallybook.clock import Moment, from_text
from tallybook.event import Event, encode, opened
from tallybook.layout import Layout
from tallybook.log.chain import NO_HASH, link

BOOT = "01234567-boot"
Op = tuple[str, str, int]
"""(put, drop, enqueue, roll or writer; a key; a value)"""


@dataclass
class HandLog:
    """A log folder that is written line by line, and what its cache truly is at the end."""

    root: Path
    truth: dict[str, Any] = field(default_factory=dict)
    values: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    writers: int = 0
    writer: str = ""
    seq: int = 0
    hash: bytes = NO_HASH
    ticks: int = 0
    path: Path = Path()

    def __post_init__(self) -> None:
        (self.root / "log").mkdir(parents=True)
        (self.root / "metrics").mkdir()
        self.renew()

    @property
    def at(self) -> str:
        """When the last event happened: a second after the one before."""
        return f"2026-03-01T{self.ticks // 3600:02d}:{self.ticks // 60 % 60:02d}:" + (
            f"{self.ticks % 60:02d}.000000Z"
        )

    def renew(self) -> None:
        """Another writer goes on."""
        before = {"previous_hash": self.hash.hex()}
        if self.writer:
            before |= {"previous_writer": self.writer, "previous_seq": self.seq}  # type: ignore[dict-item]
        self.writers += 1
        self.writer, self.seq, self.hash = f"{self.writers:08x}" + "a" * 24, 0, NO_HASH
        self._open(before)

    def roll(self) -> None:
        """Another segment of the same writer."""
        self._open({"previous_hash": self.hash.hex()})

    def _open(self, before: dict[str, Any]) -> None:
        self.path = Layout(self.root).segment(self.writer, self.seq + 1)
        moment = Moment(from_text(self.at), self.ticks, BOOT)
        event = opened(
            moment, writer=self.writer, node_id="n", host="h", pid=1, versions={}, previous=before
        )
        self.append(event)

    def append(self, event: Event) -> None:
        """One more line."""
        self.ticks += 1
        self.seq += 1
        line = encode(event.stamped(self.seq, self.writer, self.at, self.ticks, BOOT))
        self.hash = link(self.hash, line)
        with self.path.open("ab") as file:
            file.write(line + b"\n")

    def put(self, key: str, value: Any, **fields: Any) -> None:
        """A write of the cache."""
        self.append(Event("cache.put", {"key": key, "value": value, "version": 1} | fields))
        self.truth[key] = value
        self.values.append((self.at, dict(self.truth)))

    def drop(self, key: str) -> None:
        """An entry is forgotten."""
        self.append(Event("cache.invalidated", {"key": key, "reason": "test"}))
        self.truth.pop(key, None)
        self.values.append((self.at, dict(self.truth)))

    def enqueue(self, name: str) -> None:
        """A job, which is named by its place."""
        fields = {"job_id": f"{name}-{self.ticks}", "topic": "t", "payload": name}
        self.append(Event("job.enqueued", fields | {"idempotency_key": f"{name}-{self.ticks}"}))

    def live(self, ops: Iterable[Op]) -> None:
        """Do what ``ops`` say."""
        for name, key, value in ops:
            if name == "put":
                self.put(key, value)
            elif name == "drop":
                self.drop(key)
            elif name == "enqueue":
                self.enqueue(key)
            elif name == "roll":
                self.roll()
            else:
                self.renew()

    def mark(self) -> None:
        """Let metrics/latest.json say how far the log came."""
        seen = {"writer": self.writer, "seq": self.seq, "hash": self.hash.hex()}
        Layout(self.root).latest.write_text(json.dumps(seen))


def lines(path: Path) -> list[bytes]:
    """The lines of a segment, each with its end."""
    return path.read_bytes().splitlines(keepends=True)


def write(path: Path, of: Sequence[bytes]) -> None:
    """Make ``of`` the lines of a segment."""
    path.write_bytes(b"".join(of))
