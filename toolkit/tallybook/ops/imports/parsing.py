"""From the tables of a TOML file to a profile, each value checked before use.

Each error names the table and the field, and what may stand there.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from tallybook.errors import BadInput
from tallybook.ops import profiles, windows
from tallybook.ops.imports.profile import UNITS, Profile, Reading, Rows, Source, Times

FORMATS = ("csv", "ndjson", "json", "blocks")
ROWS: tuple[Rows, ...] = ("jobs", "states", "events")
STATUSES = ("pending", "leased", "done", "dead", "cancelled")
STEPS = (
    "submit", "start", "done", "dead", "cancelled", "retry", "release", "requeue", "ignore",
)  # fmt: skip
_OF_JOBS = (
    "id", "topic", "submit", "start", "end", "wait", "run", "until", "status", "worker",
    "correlation_id", "error",
)  # fmt: skip
_OF_EVENTS = (
    "id", "topic", "event", "at", "start", "until", "attempt", "worker", "correlation_id", "error",
)  # fmt: skip
_JOINED = ("id", "topic", "correlation_id", "status", "event", "attempt")
_TABLES: Mapping[str, tuple[str, ...]] = {
    "read": ("format", "rows", "delimiter", "header", "columns", "comment", "each", "end",
             "pattern"),
    "time": ("format", "zone", "absent", "origin", "year", "unit"),
    "fixed": ("topic", "worker"),
}  # fmt: skip


def parse(name: str, tables: Mapping[str, Any], where: str, text: str = "") -> Profile:
    """The profile in ``tables``; raises BadInput that begins with ``where``."""
    try:
        return _parsed(name, tables, text)
    except BadInput as error:
        raise BadInput(f"{where}: {error}") from None


def _parsed(name: str, tables: Mapping[str, Any], text: str) -> Profile:
    known = ("about", "read", "columns", "time", "status", "events", "fixed", "filter")
    profiles.known(tables, known, "table")
    reading = _reading(_table(tables, "read"))
    words = _words(tables, reading)
    columns = _columns(_table(tables, "columns"), reading)
    _consistent(columns, words, reading)
    return Profile(
        name, str(tables.get("about", "")), reading, columns, _times(_table(tables, "time")),
        words, _fixed(_table(tables, "fixed")), _lists(_table(tables, "filter"), "[filter]"), text,
    )  # fmt: skip


def _table(tables: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return profiles.table(tables, name, _TABLES.get(name))


def _texts(value: Any, place: str) -> tuple[str, ...]:
    """The texts of a list; one text alone is a list of one."""
    return (value,) if isinstance(value, str) else profiles.texts(value, place)


def _lists(table: Mapping[str, Any], place: str) -> dict[str, tuple[str, ...]]:
    return {name: _texts(value, f"{place} {name}") for name, value in table.items()}


def _choice(value: str, choices: Iterable[str], place: str) -> str:
    if value not in choices:
        raise BadInput(f"{place}: {value!r} is none of {', '.join(choices)}")
    return value


def _reading(table: Mapping[str, Any]) -> Reading:
    given: dict[str, Any] = {}
    for name, value in table.items():
        place = f"[read] {name}"
        if name == "columns":
            given[name] = _texts(value, place)
        else:
            given[name] = profiles.typed(value, bool if name == "header" else str, place)
    reading = Reading(**given)
    _choice(reading.format, FORMATS, "[read] format")
    _choice(reading.rows, ROWS, "[read] rows")
    if reading.delimiter != "blanks" and len(reading.delimiter) != 1:
        raise BadInput(f"[read] delimiter: {reading.delimiter!r} is not one character or 'blanks'")
    if reading.format == "csv" and len(reading.comment) > 1:
        raise BadInput(f"[read] comment: {reading.comment!r} is not one character")
    if reading.format == "csv" and not reading.header and not reading.columns:
        raise BadInput("[read] header is false: name the columns in order, as in columns = ['id']")
    if reading.format == "blocks":
        _require_pattern(reading.pattern, "[read] pattern")
    return reading


def _require_pattern(pattern: str, place: str) -> re.Pattern[str]:
    if not pattern:
        raise BadInput(f"{place} is missing: a regular expression with a named group a column")
    try:
        return re.compile(pattern)
    except re.error as error:
        raise BadInput(f"{place} is no regular expression: {error}") from None


def _times(table: Mapping[str, Any]) -> Times:
    given: dict[str, Any] = {}
    for name, value in table.items():
        place = f"[time] {name}"
        if name == "absent":
            given[name] = _texts(value, place)
        else:
            given[name] = profiles.typed(value, int if name == "year" else str, place)
    times = Times(**given)
    windows.named_zone(times.zone)
    _choice(times.unit, UNITS, "[time] unit")
    if times.format != "iso" and times.format not in UNITS and "%" not in times.format:
        raise BadInput(
            f"[time] format: {times.format!r} is none of iso, s, ms, us, ns and no pattern "
            "like %d/%m/%Y %H:%M:%S"
        )
    if times.origin:
        if times.format not in UNITS:
            raise BadInput("[time] origin: only times in s, ms, us or ns can count from an origin")
        if _require_pattern(times.origin, "[time] origin").groups != 1:
            raise BadInput("[time] origin: put parentheses around the number, once")
    return times


def _words(tables: Mapping[str, Any], reading: Reading) -> dict[str, tuple[str, ...]]:
    of_events = reading.rows == "events"
    name, other = ("events", "status") if of_events else ("status", "events")
    if other in tables:
        raise BadInput(f"[{other}] has no meaning with rows = {reading.rows!r}; write [{name}]")
    table = _table(tables, name)
    profiles.known(table, STEPS if of_events else STATUSES, f"field of [{name}]")
    words = _lists(table, f"[{name}]")
    seen: dict[str, str] = {}
    for status, listed in words.items():
        for word in listed:
            if seen.setdefault(word, status) != status:
                raise BadInput(f"[{name}]: {word!r} stands under {seen[word]} and {status}")
    return words


def _columns(table: Mapping[str, Any], reading: Reading) -> dict[str, Source]:
    known = _OF_EVENTS if reading.rows == "events" else _OF_JOBS
    profiles.known(table, known, f"field of [columns] with rows = {reading.rows!r}")
    return {name: _source(name, value) for name, value in table.items()}


def _source(name: str, value: Any) -> Source:
    place = f"[columns] {name}"
    joined = _texts(value, place)
    if len(joined) > 1 and name not in _JOINED:
        raise BadInput(
            f"{place}: two columns for one field, {' and '.join(map(repr, joined[:2]))}; name one, "
            f"or alternatives as in '{' | '.join(joined[:2])}'"
        )
    if not joined or not all(joined):
        raise BadInput(f"{place} is empty; name a column, or leave the field out")
    return tuple(tuple(name.strip() for name in one.split(" | ")) for one in joined)


def _fixed(table: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: str(profiles.typed(value, str, f"[fixed] {name}")) for name, value in table.items()
    }


def _consistent(
    columns: Mapping[str, Source], words: Mapping[str, tuple[str, ...]], reading: Reading
) -> None:
    for one, other in (("start", "wait"), ("end", "run")):
        if one in columns and other in columns:
            raise BadInput(f"[columns]: two columns for one field: {other} gives {one}; name one")
    if reading.rows == "events":
        missing = [name for name in ("id", "event", "at") if name not in columns]
    else:
        missing = [] if {"submit", "start", "end"} & columns.keys() else ["submit"]
        missing += ["id"] if reading.rows == "states" and "id" not in columns else []
    if missing:
        raise BadInput(f"[columns] {missing[0]} is missing")
    if "wait" in columns and "submit" not in columns:
        raise BadInput("[columns] wait counts from submit; name that column too")
    if "run" in columns and not {"start", "wait"} & columns.keys():
        raise BadInput("[columns] run counts from the start; name start or wait too")
    if ("status" in columns or reading.rows == "events") and not words:
        name = "events" if reading.rows == "events" else "status"
        raise BadInput(f"[{name}] is missing: it says what each word means")
