"""What a value must be beside its type: the brackets at the begin of a parameter's comment.

n = 3          # [1..100] a whole number or a number from 1 to 100; [1..] and [..100] are open
level = "low"  # [low | mid | high] one of these words
since = ""     # [time] empty, or a time as in 2026-11-29T22:00 or 2026-11-29T22:00:00Z
day = ""       # [date] empty, or a day as in 2026-11-29
every = "5m"   # [duration] empty, auto, or a length as in 100ms, 30s, 5m, 1h, 1d
api_key = ""   # [secret] empty, or where to find it: env:NAME, file:PATH, keyring:SERVICE/USER
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from tallybook.errors import BadInput

SECRET = "secret"  # noqa: S105 - the name of a form, no secret
REFERENCE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|file:.+|keyring:[^/]+/.+", re.S)
_BRACKETS = re.compile(r"\[([^\[\]]+)\]\s*(.*)", re.S)
_NUMBER = r"[+-]?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?"
_RANGE = re.compile(rf"({_NUMBER})?\s*\.\.\s*({_NUMBER})?")
_DURATION = re.compile(r"[0-9]{1,6}(ms|s|m|h|d)|auto")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is allowed: between ``low`` and ``high``, one of ``choices``, of a ``form`` of text."""

    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    form: str = ""

    @property
    def told(self) -> str:
        """As the cell has it, without its brackets; empty where everything of the type is."""
        if self.choices:
            return " | ".join(self.choices)
        if self.low is None and self.high is None:
            return self.form
        return "..".join("" if end is None else f"{end:.15g}" for end in (self.low, self.high))

    def problem(self, value: Any) -> str:
        """What is wrong with ``value``, to stand after "parameter n: "; empty where nothing is."""
        if self.choices:
            near = ", ".join(self.choices)
            return "" if value in self.choices else f"{value!r} is none of: {near}"
        if self.form:
            return _FORMS[self.form](value) if value else ""
        if isinstance(value, int | float) and not self._holds(value):
            return f"{value} is not {self._said()}"
        return ""

    def _holds(self, value: float) -> bool:
        low = self.low is None or value >= self.low
        return low and (self.high is None or value <= self.high)

    def _said(self) -> str:
        if self.low is None:
            return f"{self.high:.15g} or less"
        return (
            f"{self.low:.15g} or more"
            if self.high is None
            else f"{self.low:.15g} to {self.high:.15g}"
        )


FREE = Bounds()


def bounded(comment: str) -> tuple[Bounds, str]:
    """The bounds at the begin of a comment, and the rest of it; raises BadInput for no known."""
    found = _BRACKETS.fullmatch(comment)
    if not found:
        return FREE, comment
    inside, meaning = found[1].strip(), found[2]
    if inside in _FORMS:
        return Bounds(form=inside), meaning
    if "|" in inside:
        return Bounds(choices=tuple(one.strip() for one in inside.split("|"))), meaning
    ends = _RANGE.fullmatch(inside)
    if not ends or ends[1] is ends[2] is None:
        forms = ", ".join(f"[{form}]" for form in _FORMS)
        raise BadInput(f"[{inside}] is no range: write [1..100], [low | high] or one of {forms}")
    low, high = (float(end) if end else None for end in ends.groups())
    return Bounds(low, high), meaning


def _time(text: str) -> str:
    return _parsed(datetime.fromisoformat, text, "time", "2026-11-29T22:00 or 2026-11-29T22:00:00Z")


def _date(text: str) -> str:
    shown = text if _DAY.fullmatch(text) else ""
    return _parsed(date.fromisoformat, shown, "date", "2026-11-29", text)


def _duration(text: str) -> str:
    good = _DURATION.fullmatch(text)
    return "" if good else f"{text!r} is no duration: write it like 100ms, 30s, 5m, 1h or 1d"


def _secret(text: str) -> str:
    """Never says what was given: it may be the secret itself."""
    if REFERENCE.fullmatch(text):
        return ""
    return "a secret is given by reference: env:NAME, file:PATH or keyring:SERVICE/USER"


def _parsed(read: Callable[[str], Any], text: str, kind: str, like: str, given: str = "") -> str:
    try:
        read(text)
    except ValueError:
        return f"{given or text!r} is no {kind}: write it like {like}"
    return ""


_FORMS = {"time": _time, "date": _date, "duration": _duration, SECRET: _secret}
