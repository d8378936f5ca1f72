"""``runbooks.toml``, which lies beside the runbooks, read whole and checked before anything runs.

[NAME]               thresholds of the runbook NAME: from where on something is a finding
[runs]               how long a run may take and how many are kept: see ``limits``
[alerts.NAME]        targets, failure, findings, missed, recovery: who is told of what
[[schedule]]         runbook, cron, zone, name, parameters, thresholds, deadline_s, missed,
                     alerts: what runs when

Every error is one line that names the file, the line in it and the field.
An absent file means the defaults: nothing scheduled, nobody told, every run kept.
Whether a cron expression, a zone, a runbook and its parameters exist is asked by ``schedule``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from tallybook.layout import carried
from tallybook.ops.thresholds import DEFAULTS, Thresholds
from tallybook.runbook import catalogue
from tallybook.runbook.limits import Limits
from tallybook.runbook.lines import Place
from tallybook.runbook.parameters import nearest
from tallybook.runbook.toml_file import TomlFile

FILE = "runbooks.toml"
MISSED = ("skip", "once", "all")
LEVELS = ("info", "warning", "problem", "never")
_OTHERS = ("runs", "alerts", "schedule")


@dataclass(frozen=True, slots=True)
class Alerts:
    """Who is told of what: ``targets`` are references to URLs (``env:NAME``, ``file:PATH``).

    ``findings`` is the least severity that is told, ``line`` is where the table stands.
    """

    targets: tuple[str, ...] = ()
    failure: bool = True
    findings: str = "problem"
    missed: bool = True
    recovery: bool = True
    line: int = 0


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
    thresholds: Thresholds = DEFAULTS
    runs: Limits = field(default_factory=Limits)
    alerts: Mapping[str, Alerts] = field(default_factory=dict)
    schedule: tuple[Entry, ...] = ()


def load(path: Path | None = None) -> RunbookSettings:
    """The settings in ``path`` (default: the file that holds here).

    Raises BadInput for the first field that is unknown, missing or of another type.
    """
    path = path or place(catalogue.folder() / FILE)
    return _settings(TomlFile(path)) if path.is_file() else RunbookSettings(path)


def place(notebook: Path | None = None) -> Path:
    """The file that holds for ``notebook``, by default the running one: beside it; for a carried
    one first in ``./runbooks`` or here."""
    running = notebook or Path(os.environ.get("TALLYBOOK_RUNBOOK") or carried("runbooks") / FILE)
    beside = [running.with_name(FILE)]
    here = [catalogue.HERE / FILE, Path(FILE)]
    is_carried = running.resolve().parent == carried("runbooks").resolve()
    known = here + beside if is_carried else beside + here
    return next((path for path in known if path.is_file()), carried("runbooks") / FILE)


def _settings(file: TomlFile) -> RunbookSettings:
    _require_tables(file)
    alerts = file.table(file.raw.get("alerts", {}), ("alerts",))
    read = RunbookSettings(
        file.path,
        _thresholds(file),
        file.record(Limits(), file.raw.get("runs", {}), ("runs",)),
        {name: _alerts(file, table, ("alerts", name)) for name, table in alerts.items()},
        _entries(file),
    )
    _require_names(file, read)
    return read


def _require_tables(file: TomlFile) -> None:
    """Raise BadInput for a table that is of no runbook, carried or one's own, and none of ours."""
    names = [one.name for one in fields(DEFAULTS)]
    folders = (file.path.parent, file.path.parent / catalogue.HERE)
    mine = {found.stem for folder in folders for found in folder.glob(f"*{catalogue.SUFFIX}")}
    for name in file.raw:
        if name not in (*names, *_OTHERS) and name not in mine:
            hint = nearest(name, [*names, *_OTHERS])
            raise file.error((name,), f"no such table; {hint}")


def _thresholds(file: TomlFile) -> Thresholds:
    known = {one.name: getattr(DEFAULTS, one.name) for one in fields(DEFAULTS)}
    given = {
        name: file.record(default, file.raw[name], (name,))
        for name, default in known.items()
        if name in file.raw
    }
    return replace(DEFAULTS, **given)


def _alerts(file: TomlFile, raw: Any, place: Place) -> Alerts:
    read = file.record(Alerts(), raw, place, choices={"findings": LEVELS})
    if not read.targets:
        raise file.error((*place, "targets"), 'name one, as in targets = ["env:ALERT_URL"]')
    return replace(read, line=file.line(place))


def _entries(file: TomlFile) -> tuple[Entry, ...]:
    raw = file.raw.get("schedule", [])
    if not isinstance(raw, list):
        raise file.error(("schedule",), "write each entry as a table [[schedule]]")
    return tuple(_entry(file, table, ("schedule", n)) for n, table in enumerate(raw))


def _entry(file: TomlFile, raw: Any, place: Place) -> Entry:
    table = dict(file.table(raw, place))
    given = table.pop("thresholds", {})
    read = file.record(Entry(), table, place, choices={"missed": MISSED})
    for name in ("runbook", "cron"):
        if not getattr(read, name):
            raise file.error((*place, name), "must be given")
    if read.deadline_s <= 0:
        raise file.error((*place, "deadline_s"), "write more than 0 seconds")
    own = _own_thresholds(file, read.runbook, given, (*place, "thresholds"))
    name = read.name or read.runbook
    return replace(read, name=name, thresholds=own, line=file.line(place))


def _own_thresholds(file: TomlFile, runbook: str, raw: Any, place: Place) -> dict[str, Any]:
    """The thresholds of an entry. Those of a runbook of one's own are checked when it runs."""
    known = getattr(DEFAULTS, runbook, None)
    if known is None:
        return dict(file.table(raw, place))
    file.record(known, raw, place)
    return dict(raw)


def _require_names(file: TomlFile, read: RunbookSettings) -> None:
    """No two entries of one name; every alert that an entry names is there."""
    seen: dict[str, int] = {}
    for number, entry in enumerate(read.schedule):
        place: Place = ("schedule", number)
        if entry.name in seen:
            said = f"{entry.name!r} is also the entry on line {seen[entry.name]}; give it a name"
            raise file.error((*place, "name"), said)
        seen[entry.name] = entry.line
        for name in entry.alerts:
            if name not in read.alerts:
                hint = nearest(name, list(read.alerts))
                raise file.error((*place, "alerts"), f"no [alerts.{name}]: {hint}")
