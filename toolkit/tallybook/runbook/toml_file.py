"""One TOML file whose tables become records; every error is one line with file, line and field."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from datetime import date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tallybook.errors import BadInput
from tallybook.runbook.lines import Place, line_of, lines_of
from tallybook.runbook.parameters import nearest

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_LARGEST = 1e12
Record = TypeVar("Record", bound="DataclassInstance")


class TomlFile:
    """The file at ``path``; raises BadInput where it cannot be read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            text = path.read_text("utf-8")
            self.raw = tomllib.loads(text)
        except OSError as error:
            raise BadInput(f"cannot read {path}: {error.strerror}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise BadInput(f"{path}: not valid TOML: {error}") from None
        self._lines = lines_of(text)

    def line(self, place: Place) -> int:
        """The line on which ``place``, or the table around it, stands."""
        return line_of(place, self._lines)

    def error(self, place: Place, what: str) -> BadInput:
        """``what`` is wrong at ``place``."""
        return BadInput(f"{self.path} line {self.line(place)}: {_named(place)}: {what}")

    def table(self, raw: Any, place: Place) -> Mapping[str, Any]:
        """``raw`` as a table."""
        if not isinstance(raw, dict):
            name = place[-1] if isinstance(place[-1], str) else place[0]
            raise self.error(place, f"{name} must be a table, not {raw!r}")
        return raw

    def require_known(self, raw: Mapping[str, Any], names: Iterable[str], place: Place) -> None:
        """Raise BadInput that names the nearest for a name that is not among ``names``."""
        known = list(names)
        for name in raw:
            if name not in known:
                raise self.error((*place, name), f"no such setting; {nearest(name, known)}")

    def record(
        self,
        default: Record,
        raw: Any,
        place: Place,
        *,
        choices: Mapping[str, tuple[str, ...]] | None = None,
    ) -> Record:
        """``raw`` over ``default``, a frozen record whose defaults give the types."""
        known = {one.name: getattr(default, one.name) for one in fields(default)}
        known.pop("line", None)
        given = self.values(known, raw, place, choices=choices)
        return replace(default, **given)

    def values(
        self,
        known: Mapping[str, Any],
        raw: Any,
        place: Place,
        *,
        choices: Mapping[str, tuple[str, ...]] | None = None,
    ) -> dict[str, Any]:
        """What ``raw`` gives of the ``known`` names, each in the type of its default."""
        table = self.table(raw, place)
        self.require_known(table, known, place)
        allowed = choices or {}
        return {
            name: self._value(known[name], value, (*place, name), allowed.get(name))
            for name, value in table.items()
        }

    def _value(
        self, default: Any, value: Any, place: Place, choices: tuple[str, ...] | None
    ) -> Any:
        match default:
            case bool():
                return self._typed(value, bool, "true or false", place)
            case int() | float():
                return self._number(default, value, place)
            case tuple():
                return self._names(value, place)
            case Mapping():
                known = self.table(value, place)
                return {key: self._text(one, (*place, key)) for key, one in known.items()}
        text = self._typed(value, str, "text in quotes", place)
        if choices and text not in choices:
            raise self.error(place, f"{text!r} is none of {', '.join(choices)}")
        return text

    def _typed(self, value: Any, kind: type, words: str, place: Place) -> Any:
        if not isinstance(value, kind):
            raise self.error(place, f"write {words}, not {value!r}")
        return value

    def _number(self, default: int | float, value: Any, place: Place) -> int | float:
        whole = isinstance(default, int)
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
            raise self.error(place, f"write a {'whole ' * whole}number, not {value!r}")
        if not 0 <= value <= _LARGEST:
            raise self.error(place, f"{value} is not in 0 to {_LARGEST:g}")
        return type(default)(value)

    def _names(self, value: Any, place: Place) -> tuple[str, ...]:
        if isinstance(value, list) and all(isinstance(one, str) and one for one in value):
            return tuple(value)
        raise self.error(place, f'write a list of names, as in ["night"], not {value!r}')

    def _text(self, value: Any, place: Place) -> str:
        """The value of a parameter, as it would be typed after ``-p name=``."""
        match value:
            case bool():
                return str(value).lower()
            case str() | int() | float():
                return str(value)
            case datetime() | date() | time():
                return value.isoformat()
        raise self.error(place, f"write text, a number, a time or true or false, not {value!r}")


def _named(place: Place) -> str:
    """A place as a person writes it: ``[[schedule]] 2 cron``, ``[alerts.night] targets``."""
    match place:
        case (str() as table, int() as number, *rest):
            return " ".join([f"[[{table}]] {number + 1}", *map(str, rest)])
        case ("alerts", str() as name, *rest):
            return " ".join([f"[alerts.{name}]", *map(str, rest)])
        case (table, *rest):
            return " ".join([f"[{table}]", *map(str, rest)])
    return ""
