"""``runbooks.toml``, which lies beside the runbooks, read whole and checked before anything runs.

[thresholds]         what counts as a finding: see ``thresholds``
[retention]          keep_runs, keep_days: which runs are kept under --out
[alerts."NAME"]      targets, failure, findings, missed, recovery: who is told of what
[[schedule]]         runbook, cron, zone, name, parameters, thresholds, deadline_s, missed,
                     alerts: what runs when

Every error is one line that names the file, the line in it and the field.
An absent file means the defaults: nothing scheduled, nobody told, every run kept.
Whether a cron expression, a zone, a runbook and its parameters exist is asked by ``schedule``.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime, time
from pathlib import Path
from typing import Any, TypeVar

from tallybook.errors import BadInput
from tallybook.runbook import catalogue
from tallybook.runbook.lines import Place, line_of, lines_of
from tallybook.runbook.parameters import nearest
from tallybook.runbook.thresholds import Thresholds

FILE = "runbooks.toml"
THRESHOLDS = "TALLYBOOK_THRESHOLDS"
MISSED = ("skip", "once", "all")
LEVELS = ("info", "warning", "problem", "never")
_TABLES = ("thresholds", "retention", "alerts", "schedule")
_LARGEST = 10**9


@dataclass(frozen=True, slots=True)
class Retention:
    """Which finished runs are kept under ``--out``; 0 means no bound."""

    keep_runs: int = 0
    keep_days: float = 0.0


@dataclass(frozen=True, slots=True)
class Alerts:
    """Who is told of what: ``targets`` are references to URLs (``env:NAME``, ``file:PATH``).

    ``findings`` is the least severity that is told.
    """

    targets: tuple[str, ...] = ()
    failure: bool = True
    findings: str = "problem"
    missed: bool = True
    recovery: bool = True


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the schedule: which runbook runs when, with what, and who is told.

    ``thresholds`` are those of this entry alone, over those of the file.
    ``line`` is where it stands.
    """

    name: str = ""
    runbook: str = ""
    cron: str = ""
    zone: str = "UTC"
    parameters: Mapping[str, str] = field(default_factory=dict)
    thresholds: Mapping[str, Any] = field(default_factory=dict)
    deadline_s: float = 3600.0
    missed: str = "once"
    alerts: tuple[str, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class RunbookSettings:
    """All of one runbooks.toml."""

    path: Path
    thresholds: Thresholds = field(default_factory=lambda: Thresholds())
    retention: Retention = field(default_factory=Retention)
    alerts: Mapping[str, Alerts] = field(default_factory=dict)
    schedule: tuple[Entry, ...] = ()


_CHOICES: Mapping[tuple[type, str], tuple[str, ...]] = {
    (Entry, "missed"): MISSED,
    (Alerts, "findings"): LEVELS,
}
_GIVEN_ELSEWHERE = {"line"}
_Record = TypeVar("_Record", Thresholds, Retention, Alerts, Entry)


def load(folder: Path | None = None) -> RunbookSettings:
    """The settings beside the runbooks of ``folder`` (default: where runbooks are looked for).

    Raises BadInput for the first field that is unknown, missing or of another type.
    """
    path = (catalogue.folder() if folder is None else folder) / FILE
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return RunbookSettings(path)
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"cannot read {path}: {getattr(error, 'strerror', error)}") from None
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path}: not valid TOML: {error}") from None
    return _Reader(path, lines_of(text)).settings(raw)


def thresholds(folder: Path | None = None) -> Thresholds:
    """The thresholds of this run: those of the file, and over them those of its schedule's entry.

    The latter come in ``TALLYBOOK_THRESHOLDS``, a JSON object, which the schedule sets for a run.
    """
    known = load(folder)
    given = os.environ.get(THRESHOLDS)
    if not given:
        return known.thresholds
    try:
        values = json.loads(given)
    except ValueError:
        raise BadInput(f"{THRESHOLDS}: write a JSON object, not {given!r}") from None
    return _Reader(Path(THRESHOLDS), {})._record(known.thresholds, values, ("thresholds",))


@dataclass(frozen=True, slots=True)
class _Reader:
    """Turns tables into records; knows on which line each stands."""

    path: Path
    lines: Mapping[Place, int]

    def settings(self, raw: Mapping[str, Any]) -> RunbookSettings:
        self._known(raw, _TABLES, ())
        alerts = self._table(raw.get("alerts", {}), ("alerts",))
        read = RunbookSettings(
            self.path,
            self._record(Thresholds(), raw.get("thresholds", {}), ("thresholds",)),
            self._record(Retention(), raw.get("retention", {}), ("retention",)),
            {name: self._alerts(table, ("alerts", name)) for name, table in alerts.items()},
            self._entries(raw.get("schedule", [])),
        )
        self._check_names(read)
        return read

    def _alerts(self, raw: Any, place: Place) -> Alerts:
        read = self._record(Alerts(), raw, place)
        if not read.targets:
            raise self._error((*place, "targets"), 'name one, as in targets = ["env:ALERT_URL"]')
        return read

    def _entries(self, raw: Any) -> tuple[Entry, ...]:
        if not isinstance(raw, list):
            raise self._error(("schedule",), "write each entry as a table [[schedule]]")
        return tuple(self._entry(table, ("schedule", n)) for n, table in enumerate(raw))

    def _entry(self, raw: Any, place: Place) -> Entry:
        table = dict(self._table(raw, place))
        thresholds = table.pop("thresholds", {})
        read = self._record(Entry(), table, place)
        for name in ("runbook", "cron"):
            if not getattr(read, name):
                raise self._error((*place, name), "must be given")
        self._record(Thresholds(), thresholds, (*place, "thresholds"))
        if read.deadline_s <= 0:
            raise self._error((*place, "deadline_s"), "write more than 0 seconds")
        return replace(
            read,
            name=read.name or read.runbook,
            thresholds=dict(thresholds),
            line=line_of(place, self.lines),
        )

    def _check_names(self, read: RunbookSettings) -> None:
        """No two entries of one name; every alert that an entry names is there."""
        seen: dict[str, int] = {}
        for number, entry in enumerate(read.schedule):
            place: Place = ("schedule", number)
            if entry.name in seen:
                said = (
                    f"{entry.name!r} is also the entry on line {seen[entry.name]}; give it a name"
                )
                raise self._error((*place, "name"), said)
            seen[entry.name] = entry.line
            for name in entry.alerts:
                if name not in read.alerts:
                    hint = nearest(name, list(read.alerts))
                    raise self._error((*place, "alerts"), f"no [alerts.{name}]: {hint}")

    def _record(self, default: _Record, raw: Any, place: Place) -> _Record:
        table = self._table(raw, place)
        names = [one.name for one in fields(default) if one.name not in _GIVEN_ELSEWHERE]
        self._known(table, names, place)
        given = {
            name: self._value(type(default), name, getattr(default, name), value, (*place, name))
            for name, value in table.items()
        }
        return replace(default, **given)

    def _table(self, raw: Any, place: Place) -> Mapping[str, Any]:
        if not isinstance(raw, dict):
            raise self._error(place, f"write a table, not {raw!r}")
        return raw

    def _known(self, raw: Mapping[str, Any], names: Any, place: Place) -> None:
        for name in raw:
            if name not in names:
                raise self._error((*place, name), f"no such field; {nearest(name, list(names))}")

    def _value(self, kind: type, name: str, default: Any, value: Any, place: Place) -> Any:
        match default:
            case bool():
                return self._typed(value, bool, "true or false", place)
            case int() | float():
                return self._number(default, value, place)
            case tuple():
                return self._names(value, place)
            case Mapping():
                return {
                    key: self._text(one, (*place, key)) for key, one in self._items(value, place)
                }
        text = self._typed(value, str, "text in quotes", place)
        choices = _CHOICES.get((kind, name), (text,))
        if text not in choices:
            raise self._error(place, f"{text!r} is none of {', '.join(choices)}")
        return text

    def _typed(self, value: Any, kind: type, words: str, place: Place) -> Any:
        if not isinstance(value, kind):
            raise self._error(place, f"write {words}, not {value!r}")
        return value

    def _number(self, default: int | float, value: Any, place: Place) -> int | float:
        whole = isinstance(default, int)
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
            raise self._error(place, f"write a {'whole ' * whole}number, not {value!r}")
        if not 0 <= value <= _LARGEST:
            raise self._error(place, f"{value} is not in 0 to {_LARGEST:,}")
        return type(default)(value)

    def _names(self, value: Any, place: Place) -> tuple[str, ...]:
        if isinstance(value, list) and all(isinstance(one, str) and one for one in value):
            return tuple(value)
        raise self._error(place, f'write a list of names, as in ["night"], not {value!r}')

    def _items(self, value: Any, place: Place) -> list[tuple[str, Any]]:
        return list(self._table(value, place).items())

    def _text(self, value: Any, place: Place) -> str:
        """The value of a parameter, as it would be typed after ``-p name=``."""
        match value:
            case bool():
                return str(value).lower()
            case str() | int() | float():
                return str(value)
            case datetime() | date() | time():
                return value.isoformat()
        raise self._error(place, f"write text, a number, a time or true or false, not {value!r}")

    def _error(self, place: Place, what: str) -> BadInput:
        where = f"{self.path} line {line_of(place, self.lines)}"
        return BadInput(f"{where}: {named(place)}: {what}")


def named(place: Place) -> str:
    """A place as a person writes it: ``[[schedule]] 2 cron``, ``[alerts.night] targets``."""
    match place:
        case (str() as table, int() as number, *rest):
            return " ".join([f"[[{table}]] {number + 1}", *map(str, rest)])
        case ("alerts", str() as name, *rest):
            return " ".join([f"[alerts.{name}]", *map(str, rest)])
        case (str() as table, *rest) if table in _TABLES:
            return " ".join([f"[{table}]", *map(str, rest)])
    return " ".join(map(str, place))
