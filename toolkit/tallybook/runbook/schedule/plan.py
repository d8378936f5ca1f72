"""What is scheduled, checked against what there is: times, runbooks and their parameters."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tallybook.errors import BadInput
from tallybook.runbook import catalogue, parameters, tuning
from tallybook.runbook.parameters import nearest
from tallybook.runbook.schedule.times import Times, times
from tallybook.runbook.settings import Alerts, Entry, RunbookSettings


@dataclass(frozen=True, slots=True)
class Planned:
    """One entry with its times and with who is told of it."""

    entry: Entry
    times: Times
    alerts: Mapping[str, Alerts]

    @property
    def when(self) -> str:
        """Expression and zone; where they change, the entry begins anew."""
        return f"{self.entry.cron} {self.entry.zone}"

    def command(self, book: Path, out: Path) -> list[str]:
        """What runs it, as a command line."""
        given = [f"{name}={value}" for name, value in self.entry.parameters.items()]
        asked = [part for pair in given for part in ("-p", pair)]
        where = ["--deadline", f"{self.entry.deadline_s:g}"]
        where += ["--book", str(book), "--out", str(out), "--json"]
        run = [sys.executable, "-m", "tallybook", "runbook", "run", self.entry.runbook]
        return [*run, *asked, *where]

    def environment(self) -> dict[str, str]:
        """What the run finds in its environment: the thresholds of this entry alone."""
        own = self.entry.thresholds
        return {tuning.VARIABLE: json.dumps({self.entry.runbook: dict(own)})} if own else {}


def planned(known: RunbookSettings) -> list[Planned]:
    """Every entry, checked; raises BadInput that names file, line and field."""
    return [_planned(entry, known) for entry in known.schedule]


def chosen(plan: list[Planned], name: str) -> Planned:
    """The entry of that name; raises BadInput that names the nearest."""
    found = next((one for one in plan if one.entry.name == name), None)
    if found is None:
        raise BadInput(
            f"no entry {name} in the schedule: {nearest(name, [one.entry.name for one in plan])}"
        )
    return found


def _planned(entry: Entry, known: RunbookSettings) -> Planned:
    try:
        due = times(entry.cron, entry.zone)
        runbook = catalogue.find(entry.runbook)
        parameters.typed(runbook.parameters, entry.parameters)
    except BadInput as error:
        raise BadInput(
            f"{known.path} line {entry.line}: [[schedule]] {entry.name}: {error}"
        ) from None
    return Planned(entry, due, {name: known.alerts[name] for name in entry.alerts})
