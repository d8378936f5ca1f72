"""A finding: one kind of thing that was found, as data. Nothing heavy is imported here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Severity = Literal["info", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One kind of thing that was found.

    ``kind`` is for programs. ``severity`` is ``info`` (as it should be, or absorbed), ``warning``
    (look at it) or ``problem`` (somebody must act). ``title`` is one sentence for a person.
    ``ids`` are the jobs, keys or places that it is about, in order; with ``evidence``, in words,
    they prove it. ``action`` is the command to type next, or empty.
    """

    kind: str
    severity: Severity
    title: str
    ids: tuple[str, ...] = ()
    evidence: str = ""
    action: str = ""


def finding(
    severity: Severity,
    title: str,
    evidence: str = "",
    action: str = "",
    *,
    kind: str = "",
    ids: Iterable[object] = (),
) -> Finding:
    """A finding of a runbook of one's own. Raises ValueError for a severity that is none, and where
    title, evidence or action is no text.

    ``kind`` is the title in small letters unless it is given: give one, where a program reads it.
    """
    if severity not in ("info", "warning", "problem"):
        raise ValueError(f"severity {severity!r}: use info, warning or problem")
    for name, words in (("title", title), ("evidence", evidence), ("action", action)):
        if not isinstance(words, str):
            raise ValueError(f"{name} of a finding is text, not {words!r}; ids= takes a list")
    named = kind or "_".join(title.lower().split())
    return Finding(named, severity, title, tuple(str(one) for one in ids), evidence, action)


def or_clean(found: Iterable[Finding | None], clean: str) -> list[Finding]:
    """What was found; where that is nothing, or notes of no kind of its own, also ``clean``."""
    told = [one for one in found if one]
    if any(one.kind != "noted" for one in told):
        return told
    return [Finding("clean", "info", clean), *told]
