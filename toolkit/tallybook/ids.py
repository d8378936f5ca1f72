"""Ids and digests: who, which, and whether two things are the same."""

from __future__ import annotations

import hashlib
import os
import time
import uuid
from collections.abc import Iterable
from typing import Any

import orjson

_VARIANT = {digit: "89ab"[int(digit, 16) % 4] for digit in "0123456789abcdef"}


def new_job_ids(number: int) -> list[str]:
    """UUIDv7 (RFC 9562, 5.7) as text, in order: they sort by the millisecond they were made in."""
    at = f"{time.time_ns() // 1_000_000:012x}"
    head, dice = f"{at[:8]}-{at[8:]}-7", os.urandom(10 * number).hex()
    drawn = [dice[start : start + 20] for start in range(0, 20 * number, 20)]
    return sorted([f"{head}{d[17:]}-{_VARIANT[d[0]]}{d[1:4]}-{d[4:16]}" for d in drawn])


def new_writer_id() -> str:
    """Name of one life of a log folder: 32 hex digits."""
    return uuid.uuid4().hex


def new_worker_id(host: str) -> str:
    """Name of one life of a worker; never used again, also after a restart with the same pid."""
    return f"{host}-{os.urandom(4).hex()}"


def canonical(value: Any) -> str:
    """JSON text that is equal for equal values: names sorted by code point, 1.0 as 1, other
    numbers in their shortest form, no white space."""
    return _canonical(value).decode()


def _canonical(value: Any) -> bytes:
    text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    if b".0" not in text:  # so ends every float that is a whole number
        return text
    return orjson.dumps(_whole(value), option=orjson.OPT_SORT_KEYS)


def _whole(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) <= 2**53:
        return int(value)
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_whole(item) for item in value]
    return value


def payload_digest(payload: Any) -> str:
    """BLAKE2b (16 bytes, hex) of the canonical JSON of a payload."""
    return hashlib.blake2b(_canonical(payload), digest_size=16).hexdigest()


class Parity:
    """One digest of a whole cache, equal on any machine: BLAKE2b (16 bytes, hex)."""

    def __init__(self) -> None:
        self._digest = hashlib.blake2b(digest_size=16)

    def take(self, entries: Iterable[tuple[str, Any]]) -> None:
        """More entries, (key, value) with the value as parsed JSON; all of them in key order."""
        lines = [_canonical([key, value]) for key, value in entries]
        if lines:
            self._digest.update(b"\n".join(lines) + b"\n")

    def hex(self) -> str:
        """The digest of all that was taken."""
        return self._digest.hexdigest()


def parity(entries: Iterable[tuple[str, Any]]) -> str:
    """The ``Parity`` of a cache; the order of ``entries`` does not matter."""
    digest = Parity()
    digest.take(sorted(entries, key=lambda entry: entry[0]))
    return digest.hex()
