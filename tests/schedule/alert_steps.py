"""Runs of an entry with an alert, and a listener that puts what is told into an outbox."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from schedule_steps import entry

from tallybook.runbook.alerts import Alerting, Outbox
from tallybook.runbook.schedule import Ended, Outcome, Planned
from tallybook.runbook.settings import Alerts
from tallybook.testing import FakeClock

STUCK = {"kind": "stuck_lease", "severity": "problem", "title": "Leases that are stuck: 3"}
SLOW = {"kind": "slow", "severity": "warning", "title": "Waited longer than 60 s: 12"}
NOTE = {"kind": "note", "severity": "info", "title": "All segments are whole"}
RULES = Alerts(("env:TARGET",))


def outcome(status: str, *findings: dict[str, str]) -> Outcome:
    """How a run ended."""
    codes = {"clean": 0, "findings": 1, "bad_input": 2, "incomplete": 4}
    return Outcome(status, codes.get(status, 3), "/out/report.html", "", findings)


CLEAN = outcome("clean")
FOUND = outcome("findings", STUCK, SLOW, NOTE)


def alerting(place: Path, clock: FakeClock) -> Alerting:
    """The listener, with nobody who delivers."""
    return Alerting(place, Outbox(place / "outbox"), clock, lambda: None)


def planned(rules: Alerts = RULES, **more: Any) -> Planned:
    """An entry with one alert."""
    made = entry(cron="30 2 * * *", zone="Europe/Berlin", **more)
    return Planned(made.entry, made.times, {"night": rules})


def run_ends(listener: Alerting, one: Planned, how: Outcome) -> None:
    """A run of the entry ends so."""
    now = listener.clock.moment().now
    ended = Ended(now, now, how.status, how.exit_code, how.report, how.message)
    listener.ended(one, ended, how)
