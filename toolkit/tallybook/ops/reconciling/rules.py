"""Rules of a comparison: per column, when two cells mean the same.

A rule is given by the column's name on either side; the rule of ``*`` holds for every column that
does not say otherwise. Without a rule a column is text, compared byte by byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from itertools import pairwise
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tallybook.errors import BadInput

TYPES: Final = ("text", "integer", "decimal", "timestamp")
SPACES: Final = ("trim", "collapse")
FORMS: Final = ("NFC",)
PRECISIONS: Final = ("day", "hour", "minute", "s", "ms", "us", "ns")
EVERY = "*"
_MEASURED = ("integer", "decimal", "timestamp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """When two cells of a column are equal.

    ``tolerance`` is the largest difference that counts as none (of timestamps in seconds),
    ``relative`` the largest as a part of the larger value. ``rename`` is the name of the column on
    the other side. ``space`` trims the ends, or also makes inner runs one blank. ``null`` are words
    that mean no value. ``zone`` is that of times without an offset; times are cut to ``precision``.
    None means that the rule does not say.
    """

    type: str | None = None
    tolerance: Decimal | None = None
    relative: Decimal | None = None
    rename: str | None = None
    ignore: bool | None = None
    ignore_case: bool | None = None
    space: str | None = None
    null: tuple[str, ...] | None = None
    zone: str | None = None
    precision: str | None = None
    normal_form: str | None = None

    @property
    def kind(self) -> str:
        """The type of the column: text unless told."""
        return self.type or "text"

    @property
    def tolerant(self) -> bool:
        """Whether unequal values may count as equal."""
        return self.tolerance is not None or self.relative is not None

    def given(self) -> dict[str, Any]:
        """What the rule says, by field."""
        each = ((one.name, getattr(self, one.name)) for one in fields(self))
        return {name: value for name, value in each if value is not None}


Given = Mapping[str, Rule | Mapping[str, Any]]


def parse(given: Given) -> dict[str, Rule]:
    """The rules of ``given`` by column. Raises BadInput for a field or value that is none."""
    return {name: _parsed(name, rule) for name, rule in given.items()}


def merged(*layers: Mapping[str, Rule]) -> dict[str, Rule]:
    """The rules of all layers; where two speak of one field of a column, the later counts."""
    names = dict.fromkeys(name for layer in layers for name in layer)
    return {name: _over([layer[name] for layer in layers if name in layer]) for name in names}


def of_column(rules: Mapping[str, Rule], names: Iterable[str]) -> Rule:
    """The rule of a column by its names on both sides. Raises BadInput where two contradict, or
    where it contradicts itself."""
    own = [(name, rules[name]) for name in dict.fromkeys(names) if name in rules]
    for (first, one), (second, other) in pairwise(own):
        _agree(first, one, second, other)
    every = [rules[EVERY]] if EVERY in rules else []
    name = own[0][0] if own else EVERY
    return _checked(name, _fitting(every, [rule for _, rule in own]))


def nearest(name: str, columns: Sequence[str]) -> str:
    """Words on which column may be meant by ``name``."""
    folded = {column.casefold(): column for column in columns}
    near = get_close_matches(name.casefold(), list(folded), n=1, cutoff=0.5)
    return f"; the nearest is {folded[near[0]]!r}" if near else f"; it has {', '.join(columns)}"


def _over(layers: Sequence[Rule]) -> Rule:
    told: dict[str, Any] = {}
    for layer in layers:
        told |= layer.given()
    return Rule(**told)


def _fitting(every: Sequence[Rule], own: Sequence[Rule]) -> Rule:
    """The own rules over that of ``*``, of which only what fits the type counts."""
    rule = _over([*every, *own])
    said = _over(own).given()
    return replace(rule, **{name: None for name in _unfit(rule) if name not in said})


def _agree(first: str, one: Rule, second: str, other: Rule) -> None:
    others = other.given()
    for name, value in one.given().items():
        if name in others and others[name] != value and name != "rename":
            raise BadInput(
                f"columns {first!r} and {second!r} are compared with each other, and their rules "
                f"contradict: {name} is {value!r} and {others[name]!r}; give it once"
            )


def _unfit(rule: Rule) -> list[str]:
    """The fields that say nothing about cells of this type."""
    unfit = []
    if rule.kind not in _MEASURED:
        unfit += ["tolerance"]
    if rule.kind not in ("integer", "decimal"):
        unfit += ["relative"]
    if rule.kind != "text":
        unfit += ["ignore_case", "normal_form"]
    if rule.kind != "timestamp":
        unfit += ["zone", "precision"]
    return [name for name in unfit if getattr(rule, name) is not None]


def _checked(name: str, rule: Rule) -> Rule:
    """The rule itself. Raises BadInput where it contradicts itself."""
    if name != EVERY:
        for field in _unfit(rule):
            raise BadInput(f"column {name!r}: {_words(field)} does not go with the type {rule.kind}"
                           f"{_MENDS.get(field, '')}")  # fmt: skip
    if name == EVERY and (rule.rename or rule.ignore):
        raise BadInput("the rule of every column (*) cannot rename or ignore")
    others = [field for field in rule.given() if field not in ("ignore", "type")]
    if rule.ignore and others:
        raise BadInput(f"column {name!r} is ignored and has {_words(others[0])} too; say one")
    return rule


_MENDS = {
    "tolerance": f"; give it one of the types {', '.join(_MEASURED)}",
    "relative": "; give it the type integer or decimal",
    "zone": "; give it the type timestamp",
    "precision": "; give it the type timestamp",
}


def _words(field: str) -> str:
    return field.replace("_", " ")


def _parsed(name: str, given: Rule | Mapping[str, Any]) -> Rule:
    if isinstance(given, Rule):
        given = given.given()
    unknown = [field for field in given if field not in _PARSERS]
    if unknown:
        raise BadInput(f"column {name!r}: no rule {unknown[0]!r}{nearest(unknown[0], FIELDS)}")
    told = {}
    for field, value in given.items():
        try:
            told[field] = _PARSERS[field](value)
        except ValueError as error:
            said = f"column {name!r}: {_words(field)} {value!r} is {error}"
            raise BadInput(said) from None
    return Rule(**told)


def _amount(value: Any) -> Decimal:
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        amount = Decimal("nan")
    if isinstance(value, bool) or not amount.is_finite() or amount < 0:
        raise ValueError("no number from 0 up")
    return amount


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("neither true nor false")
    return value


def _name(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("no name of a column")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
        raise ValueError("no list of texts")
    return tuple(words)


def _zone(value: Any) -> str:
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        raise ValueError("no time zone; write one like Europe/Berlin") from None
    return str(value)


def _one_of(known: Sequence[str]) -> Callable[[Any], str]:
    def parse_one(value: Any) -> str:
        if value not in known:
            raise ValueError(f"unknown; choose one of {', '.join(known)}")
        return str(value)

    return parse_one


_PARSERS: dict[str, Callable[[Any], Any]] = {
    "type": _one_of(TYPES),
    "tolerance": _amount,
    "relative": _amount,
    "rename": _name,
    "ignore": _flag,
    "ignore_case": _flag,
    "space": _one_of(SPACES),
    "null": _texts,
    "zone": _zone,
    "precision": _one_of(PRECISIONS),
    "normal_form": _one_of(FORMS),
}
FIELDS: Final = tuple(_PARSERS)
