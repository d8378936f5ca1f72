"""Which profile: one that tallybook carries, or a TOML file of the user's; each value is checked.

Each error names the file, the table and the field, and what may stand there.
"""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import duckdb

from tallybook.errors import BadInput
from tallybook.ops import profiles
from tallybook.ops.exports.profile import (
    EPOCHS,
    MEBIBYTE,
    TYPES,
    Dialect,
    Limits,
    Profile,
    Rule,
    is_type,
)
from tallybook.ops.profiles import known, table, texts, typed

BUILT_IN = Path(__file__).parent / "profiles"
_TABLES = ("about", "layout", "covers", "known_by", "read", "cells", "columns", "limits", "last")
_READ = ("encoding", "delimiter", "quote", "escape", "header", "columns", "blanks", "sheet", "each")
_RULE = tuple(field.name for field in fields(Rule))
_CELLS = ("null", "decimal", "thousands", "zone")
_SIZES = {"KB": 1000, "MB": 1000**2, "GB": 1000**3, "TB": 1000**4, "KIB": 1024,
          "MIB": MEBIBYTE, "GIB": 1024**3, "TIB": 1024**4}  # fmt: skip


def built_in() -> list[str]:
    """The names of the profiles that tallybook carries."""
    return profiles.names(BUILT_IN)


def load(name_or_path: str | Path) -> Profile:
    """The profile of a name or a file. Raises BadInput where there is none, or where it cannot be
    used."""
    path = profiles.find(str(name_or_path), BUILT_IN)
    return parse(path.stem, tables_of(path), str(path), is_own=path.parent != BUILT_IN)


def tables_of(path: Path) -> dict[str, Any]:
    """The tables of a profile, as they stand."""
    return profiles.read(path)[1]


def parse(name: str, tables: Mapping[str, Any], where: str, *, is_own: bool = True) -> Profile:
    """The profile in ``tables``; raises BadInput that begins with ``where``."""
    try:
        return _parsed(name, tables, is_own)
    except BadInput as error:
        raise BadInput(f"{where}: {error}") from None


def _parsed(name: str, tables: Mapping[str, Any], is_own: bool) -> Profile:
    known(tables, _TABLES, "table")
    cells = table(tables, "cells", _CELLS)
    rules, comparing = {}, {}
    for column, held in table(tables, "columns").items():
        if not isinstance(held, dict):
            raise BadInput(f"[columns] {column!r} must be a table: write [columns.{column}]")
        own = {field: value for field, value in held.items() if field in _RULE}
        if own:
            rules[column] = _rule(column, {**cells, **own})
        rest = {field: value for field, value in held.items() if field not in own}
        if rest:
            comparing[column] = rest
    last = table(tables, "last", ("rows",)).get("rows")
    return Profile(
        name=name,
        about=typed(tables.get("about", ""), str, "about"),
        layout=typed(tables.get("layout", ""), str, "layout"),
        covers=typed(tables.get("covers", ""), str, "covers"),
        dialect=_dialect(table(tables, "read", _READ)),
        rules=rules,
        every=_rule("[cells]", cells) if cells else Rule(),
        comparing=comparing,
        limits=_limits(table(tables, "limits", [field.name for field in fields(Limits)])),
        last_rows=None if last is None else typed(last, int, "[last] rows"),
        is_own=is_own,
    )


def _rule(column: str, held: Mapping[str, Any]) -> Rule:
    place = f"[columns.{column}]" if column != "[cells]" else column
    given: dict[str, Any] = {
        field: texts(value, f"{place} null") if field == "null" else
        typed(value, str, f"{place} {field}")
        for field, value in held.items()
    }  # fmt: skip
    rule = Rule(**given)
    if not is_type(rule.type):
        raise BadInput(f"{place}: no type {rule.type!r}; choose one of {', '.join(TYPES)} or, like "
                       "decimal(38,2), one with its digits")  # fmt: skip
    if len(rule.decimal) != 1 or rule.decimal == rule.thousands:
        raise BadInput(f"{place}: decimal is one mark, and another than thousands")
    if rule.encoded not in ("", "url"):
        raise BadInput(f"{place}: encoded is 'url' or is left out")
    if "format" in held and not rule.is_time:
        raise BadInput(f"{place}: a format goes with the type timestamp or date")
    if rule.format not in ("", *EPOCHS):
        _require_format(place, rule.format)
    _require_zone(place, rule.zone)
    return rule


def _require_format(place: str, form: str) -> None:
    try:
        with duckdb.connect() as connection:
            connection.execute("select try_strptime('', $1)", [form])
    except duckdb.Error:
        raise BadInput(f"{place}: format {form!r} is none of strptime's; write one like "
                       f"%d.%m.%Y %H:%M, or {', '.join(EPOCHS)}") from None  # fmt: skip


def _require_zone(place: str, zone: str) -> None:
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadInput(
            f"{place}: there is no zone {zone!r}; write one like Europe/Berlin"
        ) from None


def _dialect(held: Mapping[str, Any]) -> Dialect:
    given: dict[str, Any] = {}
    for field, value in held.items():
        place = f"[read] {field}"
        if field == "columns":
            given[field] = texts(value, place)
        else:
            kind = {"header": int, "blanks": bool}.get(field, str)
            given[field] = typed(value, kind, place)
    dialect = Dialect(**given)
    if dialect.delimiter is not None and not 0 < len(dialect.delimiter.encode()) <= 4:
        raise BadInput("[read] delimiter is one letter, or a few that stand together")
    if len(dialect.quote.encode()) > 1 or len(dialect.escape.encode()) > 1:
        raise BadInput("[read] quote and escape are one letter each, or empty")
    if dialect.header is not None and dialect.header < 0:
        raise BadInput("[read] header is the line of the header, from 1; 0 where there is none")
    twice = sorted({name for name in dialect.columns if dialect.columns.count(name) > 1})
    if twice:
        raise BadInput(f"[read] columns names a column twice: {', '.join(twice)}")
    return dialect


def _limits(held: Mapping[str, Any]) -> Limits:
    given: dict[str, Any] = {}
    for field, value in held.items():
        place = f"[limits] {field}"
        if field == "memory":
            size(value, place)
            given[field] = value
        elif field == "ratio":
            given[field] = typed(value, int, place)
        else:
            given[field] = size(value, place)
    return Limits(**given)


def size(value: Any, place: str) -> int:
    """The bytes of a size like 2GB or 64MiB, or a whole number of bytes. Raises BadInput."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    text = typed(value, str, place).strip().upper().replace(" ", "")
    digits = text.rstrip("KMGTIB")
    unit = text[len(digits) :]
    if not digits.isdecimal() or int(digits) < 1 or (unit not in _SIZES and unit != "B"):
        raise BadInput(f"{place}: {value!r} is no size; write it like 2GB or 800MB")
    return int(digits) * _SIZES.get(unit, 1)
