"""How each segment begins: its writer, machine and boot, and the writer before it.

The first line says so. Where it is lost, other segments of the writer, the name of the file and
the first whole line say what they can.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from tallybook import packed
from tallybook.layout import segment_name
from tallybook.ops import judge, refusals

_LINES_LOOKED_AT = 100
_SHIFT = 40


@dataclass(frozen=True, slots=True)
class Opening:
    """What is known of a segment before its lines are read.

    ``first_at`` is the text of the time of its first whole line. ``ordinal`` counts the writers
    in the order of history; the position of a line is ``base`` plus its seq.
    """

    segment: str
    writer: str
    first_at: str = ""
    node_id: str | None = None
    host: str | None = None
    boot_id: str | None = None
    versions: str | None = None
    previous_hash: str | None = None
    previous_writer: str | None = None
    previous_seq: int | None = None
    ordinal: int = 0

    @property
    def base(self) -> int:
        """What the position of a line adds to its seq."""
        return self.ordinal << _SHIFT


Link = tuple[str, str | None]


def read(paths: Iterable[Path]) -> list[Opening]:
    """The openings of segments, in no order of writers yet."""
    return [_read(path) for path in paths]


def ordered(openings: Sequence[Opening]) -> list[Opening]:
    """The same with writers named in full where one segment knows, and each with its ordinal."""
    full = {one.writer[:8]: one.writer for one in openings if len(one.writer) > 8}
    named = [replace(one, writer=full.get(one.writer[:8], one.writer)) for one in openings]
    ordinals = {writer: number for number, writer in enumerate(order_writers(_links(named)))}
    return [replace(one, ordinal=ordinals[one.writer]) for one in named]


def _links(openings: Sequence[Opening]) -> list[Link]:
    """Each writer and the one before it, by the time of their first lines."""
    begun: dict[str, str] = {}
    before: dict[str, str | None] = {}
    for one in openings:
        begun[one.writer] = min(begun.get(one.writer, one.first_at), one.first_at)
        before[one.writer] = one.previous_writer or before.get(one.writer)
    return [(writer, before[writer]) for writer in sorted(begun, key=lambda w: (begun[w], w))]


def order_writers(links: Sequence[Link]) -> list[str]:
    """The writers in the order of their links.

    ``links`` are (writer, writer before it), oldest first; writers that nothing links keep that
    order, and so do two that follow the same one. A circle of links is cut at its oldest.
    """
    known = {writer for writer, _ in links}
    followers: dict[str | None, list[str]] = {}
    for writer, previous in links:
        followers.setdefault(previous if previous in known else None, []).append(writer)
    ordered: list[str] = []
    for start in [*followers.get(None, []), *(writer for writer, _ in links)]:
        _follow(start, followers, ordered)
    return ordered


def _follow(start: str, followers: dict[str | None, list[str]], ordered: list[str]) -> None:
    waiting = [start]
    while waiting:
        writer = waiting.pop()
        if writer not in ordered:
            ordered.append(writer)
            waiting.extend(reversed(followers.get(writer, [])))


def _read(path: Path) -> Opening:
    segment = segment_name(path)
    number, fields = _first_event(path)
    first_at = str(fields.get("occurred_at", ""))
    if number > 1 or fields.get("event") != "log.opened" or not _text(fields, "writer"):
        return Opening(segment, segment.partition("-")[0], first_at)
    versions = fields.get("versions")
    return Opening(
        segment=segment,
        writer=str(fields["writer"]),
        first_at=first_at,
        node_id=_text(fields, "node_id"),
        host=_text(fields, "host"),
        boot_id=_text(fields, "boot_id"),
        versions=None if versions is None else orjson.dumps(versions).decode(),
        previous_hash=_text(fields, "previous_hash"),
        previous_writer=_text(fields, "previous_writer"),
        previous_seq=fields.get("previous_seq"),
    )


def _text(fields: dict[str, Any], name: str) -> str | None:
    return None if fields.get(name) is None else str(fields[name])


def _first_event(path: Path) -> tuple[int, dict[str, Any]]:
    """The fields of the first line that is an event, and its number; a hundred are looked at."""
    try:
        with packed.reading(path) as file:
            for number in range(1, _LINES_LOOKED_AT):
                line = file.readline(judge.LONGEST_LINE)
                fields = refusals.event(line) if line.endswith(b"\n") else None
                if fields:
                    return number, fields
    except packed.Unreadable:
        return 0, {}
    return 0, {}
