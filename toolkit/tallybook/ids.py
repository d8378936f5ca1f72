"""Ids and digests: who, which, and whether two things are the same."""

from __future__ import annotations

import hashlib
import os
import time
import uuid
from collections.abc import Iterable
from typing import Any

import orjson


def new_job_id() -> str:
    """A UUIDv7 (RFC 9562, 5.7) as text: sorts by the millisecond it was made in."""
    at = f"{time.time_ns() // 1_000_000:012x}"
    dice = os.urandom(10)
    rest = bytes((0x80 | dice[0] & 0x3F, *dice[1:])).hex()
    return f"{at[:8]}-{at[8:]}-7{rest[17:]}-{rest[:4]}-{rest[4:16]}"


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


def parity(entries: Iterable[tuple[str, Any]]) -> str:
    """One digest of a whole cache, equal on any machine: BLAKE2b (16 bytes, hex).

    ``entries`` are (key, value) with the value as parsed JSON; their order does not matter.
    """
    digest = hashlib.blake2b(digest_size=16)
    for key, value in sorted(entries, key=lambda entry: entry[0]):
        digest.update(canonical([key, value]).encode())
        digest.update(b"\n")
    return digest.hexdigest()
