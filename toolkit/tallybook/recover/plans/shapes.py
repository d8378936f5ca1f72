"""What the values of a cache look like: how text cells of an export become such a value."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from tallybook.payload import LARGEST_INTEGER

_TYPED = ("integer", "decimal")
Rules = Mapping[str, Mapping[str, Any]]
"""Rules of columns by name, as ``ops.reconcile`` takes them in ``columns``."""


class Unfit(ValueError):
    """A row has no value of this shape; the message says which cell and why."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The fields of the values that are cached, each with its kind (text, number, flag or json),
    and whether values are objects; others are one cell named ``value``."""

    kinds: Mapping[str, str]
    is_object: bool = True

    @classmethod
    def of(cls, values: Iterable[Any]) -> Shape:
        """The shape of these values; of none it is that of an object with no field."""
        found: dict[str, set[str]] = {}
        are_objects = True
        for value in values:
            are_objects = are_objects and isinstance(value, dict)
            for name, cell in fields(value).items():
                found.setdefault(name, set()).update(_kind(cell))
        return cls({name: _one_of(kinds) for name, kinds in found.items()}, are_objects)

    def value(
        self, cells: Mapping[str, str | None], before: Mapping[str, Any] | None, rules: Rules
    ) -> dict[str, Any]:
        """The fields of a row of an export, over those of the entry ``before``, by the rules of the
        comparison: other names, words for null, columns left out. Columns that no cached value has
        are left out too. Raises Unfit for a cell that no value here can hold."""
        told = dict(before or {})
        for column, text in cells.items():
            name, rule = self._named(column, rules)
            if name in self.kinds and not rule.get("ignore"):
                given = None if text in (rule.get("null") or ()) else text
                told[name] = _typed(name, given, self.kinds[name], str(rule.get("type", "text")))
        return told

    def _named(self, column: str, rules: Rules) -> tuple[str, Mapping[str, Any]]:
        """What a column of an export is called here, and its rule."""
        for name, rule in rules.items():
            if column in (name, rule.get("rename")):
                other = rule.get("rename", name) if column == name else name
                return (other if column not in self.kinds else column), rule
        return column, rules.get("*", {})

    def whole(self, told: Mapping[str, Any]) -> Any:
        """The value that has these fields."""
        return dict(told) if self.is_object else told.get("value")


def fields(value: Any) -> dict[str, Any]:
    """The fields of a value; one that is no object is one field."""
    return value if isinstance(value, dict) else {"value": value}


def _kind(cell: Any) -> set[str]:
    if cell is None:
        return set()
    if isinstance(cell, bool):
        return {"flag"}
    if isinstance(cell, int | float):
        return {"number"}
    return {"text"} if isinstance(cell, str) else {"json"}


def _one_of(kinds: set[str]) -> str:
    return next(iter(kinds)) if len(kinds) == 1 else "text"


def _typed(name: str, text: str | None, kind: str, compared_as: str) -> Any:
    if text is None or kind == "text":
        return text
    if kind == "flag":
        if text not in ("true", "false"):
            raise Unfit(f"{name}: {text!r} is neither true nor false")
        return text == "true"
    if kind == "number":
        return _number(name, text, compared_as)
    try:
        return json.loads(text)
    except ValueError:
        raise Unfit(f"{name}: {text!r} is no JSON") from None


def _number(name: str, text: str, compared_as: str) -> int | float:
    """The JSON number that reads as ``text`` again, or is equal where the column is compared so."""
    try:
        exact = Decimal(text)
    except InvalidOperation:
        raise Unfit(f"{name}: {text!r} is no number") from None
    number: int | float = int(text) if re.fullmatch(r"-?[0-9]+", text) else float(text)
    if abs(number) > LARGEST_INTEGER or Decimal(repr(number)) != exact:
        raise Unfit(f"{name}: {text} has more digits than a JSON number keeps")
    if compared_as not in _TYPED and repr(number) != text:
        raise Unfit(
            f"{name}: {text} would be written {number!r}; compare with --type {name}=decimal"
        )
    return number
