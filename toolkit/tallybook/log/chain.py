"""Where a line stands in the history, and the hash that goes over all lines up to it."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

NO_HASH = bytes(32)


def link(previous: bytes, line: bytes) -> bytes:
    """The hash after ``line`` (without its newline): BLAKE2b-256 of the hash before it ‖ line."""
    return hashlib.blake2b(previous + line, digest_size=32).digest()


class Position(NamedTuple):
    """A place in the history: after the line ``seq`` of ``writer``, at ``offset`` of ``segment``.

    ``ordinal`` counts the events of all writers up to here.
    """

    writer: str = ""
    seq: int = 0
    hash: bytes = NO_HASH
    segment: str = ""
    offset: int = 0
    ordinal: int = 0
    boot_id: str = ""


def as_json(position: Position) -> dict[str, Any]:
    """``position`` as it stands in a JSON file."""
    return position._asdict() | {"hash": position.hash.hex()}


def from_json(fields: dict[str, Any]) -> Position:
    """The position that ``as_json`` gave. Raises KeyError, TypeError or ValueError."""
    return Position(
        writer=str(fields["writer"]),
        seq=int(fields["seq"]),
        hash=bytes.fromhex(fields["hash"]),
        segment=str(fields["segment"]),
        offset=int(fields["offset"]),
        ordinal=int(fields["ordinal"]),
        boot_id=str(fields["boot_id"]),
    )
