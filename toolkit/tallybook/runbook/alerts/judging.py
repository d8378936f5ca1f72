"""What of a run is worth a message, and whether it was told already: pure functions.

A state is told once. It is told again when it is another: another status, or findings of another
kind or severity (not merely of other jobs). When it is over, that is told once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tallybook.runbook.schedule import Missed, Outcome
from tallybook.runbook.schedule.runs import INTERRUPTED
from tallybook.runbook.settings import LEVELS, Alerts

CLEAN, FINDINGS = "clean", "findings"


@dataclass(frozen=True, slots=True)
class State:
    """What one alert was last told of one entry: ``told`` is empty where all was well."""

    told: str = ""
    missed: bool = False


@dataclass(frozen=True, slots=True)
class News:
    """What is to be told: a line for the title; ``findings`` are those that count."""

    what: str
    findings: tuple[Mapping[str, Any], ...] = ()


def of_run(state: State, rules: Alerts, outcome: Outcome) -> tuple[State, News | None]:
    """The state after a run ended, and what is new of it. A run that was interrupted says
    nothing: it is run again, or told as missed."""
    if outcome.status == INTERRUPTED:
        return state, None
    found = _counting(rules.findings, outcome.findings)
    if outcome.status in (CLEAN, FINDINGS):
        key = _key(found)
        news = News(_counted(found), found)
    else:
        key = f"failure {outcome.status}" if rules.failure else state.told
        news = News(f"failed ({outcome.status})", found)
    if not key:
        well = News("well again") if rules.recovery and state != State() else None
        return State(), well
    return State(key), (news if key != state.told else None)


def of_missed(state: State, rules: Alerts, missed: Missed, rule: str) -> tuple[State, News | None]:
    """The state after times were missed, and what is new of it; ``rule`` is that of the entry."""
    if not rules.missed or state.missed:
        return state, None
    return replace(state, missed=True), News(missed.told(rule))


def _counting(least: str, findings: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """The findings of at least that severity; an unknown severity counts as the worst."""
    if least == "never":
        return ()
    return tuple(found for found in findings if _rank(found) >= LEVELS.index(least))


def _rank(found: Mapping[str, Any]) -> int:
    severity = found.get("severity")
    worst = LEVELS.index("problem")
    return LEVELS.index(severity) if severity in LEVELS[:worst] else worst


def _key(findings: Sequence[Mapping[str, Any]]) -> str:
    kinds = {f"{LEVELS[_rank(one)]} {one.get('kind', one.get('title'))}" for one in findings}
    return f"findings {', '.join(sorted(kinds))}" if kinds else ""


def _counted(findings: Sequence[Mapping[str, Any]]) -> str:
    counts = [(level, sum(_rank(one) == n for one in findings)) for n, level in enumerate(LEVELS)]
    parts = [f"{n} {level}{'s' * (n != 1 and level != 'info')}" for level, n in counts[::-1] if n]
    return ", ".join(parts)
