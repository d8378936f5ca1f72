"""A torn write: what a power cut leaves of the last change when it came before the sync.

The disk writes pages in any order, so zeros may stand where one is missing, and whole lines behind
them. That they were never acknowledged is provable: a change is one write, its lines have one
stamp (``occurred_at`` and ``boot_us``), and the next change is written after the sync of the one
before. So zeros are a torn write where all lines behind them are of one change, and that change
began before them. It did where

- the line before the zeros, or the one that they break, has the same stamp; or
- the zeros begin right behind the last whole line and inside a sector: what was synced up to
  there last ended there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tallybook.event import BadLine, Event, decode

_SECTOR = 512
_HEAD = re.compile(rb'\{"v":\d+,"seq":\d+,"event":"[^"]+","occurred_at":"([^"]+)","boot_us":(\d+)')
_Stamp = tuple[str, int]


def is_torn_write(offset: int, raw: bytes, before: Event | None, behind: Iterable[bytes]) -> bool:
    """Whether the line ``raw`` at ``offset``, which has zeros, and the lines ``behind`` it are of
    one change that was never synced. ``before`` is the event before it, where that is known."""
    stamps = _stamps(raw.rpartition(b"\0")[2])  # a line may begin where the zeros end
    for line in behind:
        stamps |= _stamps(line)
        if len(stamps) > 1:
            return False
    zeros = raw.find(b"\0")
    if zeros == 0 and offset % _SECTOR:
        return True
    known = {(before.occurred_at, before.boot_us)} if before else set()
    return zeros >= 0 and stamps <= known | _named_in(raw[: max(zeros, 0)])


def _named_in(head: bytes) -> set[_Stamp]:
    """The stamp in what is left of a line."""
    found = _HEAD.match(head)
    return {(found[1].decode(), int(found[2]))} if found else set()


def _stamps(line: bytes) -> set[_Stamp]:
    try:
        event = decode(line)
    except BadLine:
        return set()
    return {(event.occurred_at, event.boot_us)}
