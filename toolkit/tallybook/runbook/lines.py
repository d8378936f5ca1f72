"""On which line of a TOML file something stands: ``tomllib`` gives values without their places."""

from __future__ import annotations

import re
from collections.abc import Mapping

Place = tuple[str | int, ...]
"""Keys down to a value; of an array of tables, the number of the table: ("schedule", 0, "cron")."""

_HEAD = re.compile(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(r"""\s*((?:"[^"]*"|'[^']*'|[\w-]+)(?:\s*\.\s*(?:"[^"]*"|'[^']*'|[\w-]+))*)\s*=""")
_PART = re.compile(r""""([^"]*)"|'([^']*)'|([\w-]+)""")
_QUOTES = ('"""', "'''")


def lines_of(text: str) -> Mapping[Place, int]:
    """The line, from 1, of each table and each key that stands at the begin of a line."""
    found: dict[Place, int] = {}
    table: Place = ()
    counts: dict[Place, int] = {}
    for number, line in _outside_texts(text):
        if head := _HEAD.match(line):
            table = _parts(head[2])
            if head[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
            table = _numbered(table, counts)
            found.setdefault(table, number)
        elif key := _KEY.match(line):
            found.setdefault((*table, *_parts(key[1])), number)
    return found


def line_of(place: Place, lines: Mapping[Place, int]) -> int:
    """The line of ``place``, else of the nearest table around it; 1 where there is none."""
    while place:
        if place in lines:
            return lines[place]
        place = place[:-1]
    return 1


def _numbered(table: Place, counts: Mapping[Place, int]) -> Place:
    """``table`` with the number of each array of tables that it lies in, the last of its name."""
    made: Place = ()
    plain: Place = ()
    for part in table:
        made, plain = (*made, part), (*plain, part)
        if plain in counts:
            made = (*made, counts[plain])
    return made


def _outside_texts(text: str) -> list[tuple[int, str]]:
    """The lines that do not begin inside a text of several lines."""
    kept, quote = [], ""
    for number, line in enumerate(text.splitlines(), 1):
        if quote:
            quote = "" if quote in line else quote
            continue
        kept.append((number, line))
        quote = next((one for one in _QUOTES if line.count(one) % 2), "")
    return kept


def _parts(dotted: str) -> Place:
    return tuple(a or b or c for a, b, c in _PART.findall(dotted))
