"""The last cell of a runbook: its findings, for a person, for the report and for the runner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from math import isfinite
from typing import Any, Protocol

MIME = "application/vnd.tallybook.findings+json"
CLEAN, FINDINGS, INCOMPLETE = "clean", "findings", "incomplete"
_SHOWN_IDS = 5
_STYLE = (
    "<style>.tallybook-answer th,.tallybook-answer td{text-align:left!important}"
    ".tallybook-answer td:nth-child(2),.tallybook-answer td:nth-child(4){min-width:16em}"
    ".tallybook-answer .id,.tallybook-answer code{white-space:nowrap!important}</style>"
)


class Finding(Protocol):
    """What ``tallybook.ops.findings`` makes, and anything of the same shape."""

    @property
    def kind(self) -> str:
        """Machine-readable name of what was found."""

    @property
    def severity(self) -> str:
        """``info``, ``warning`` or ``problem``; ``info`` alone is clean."""

    @property
    def title(self) -> str:
        """One sentence for a person."""

    @property
    def ids(self) -> Sequence[str]:
        """Idempotency keys or cache keys that it is about."""

    @property
    def evidence(self) -> str:
        """What proves it, in words."""

    @property
    def action(self) -> str:
        """What to type next, or empty."""


class Seen(Protocol):
    """What ``tallybook.ops.coverage`` makes: what a runbook had before it."""

    def as_finding(self) -> Finding:
        """A note that says whether anything could have been found."""

    def as_json(self) -> dict[str, Any]:
        """The same as data."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Findings with the status that they mean; displays itself in Jupyter and carries ``MIME``.

    ``seen`` is what there was to be found anything in, as data; None where nobody said.
    ``figures`` are the numbers whose trend the index of runs draws.
    """

    status: str
    findings: tuple[dict[str, Any], ...]
    seen: dict[str, Any] | None = None
    figures: Mapping[str, float] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """What findings.json holds."""
        told = {"status": self.status, "findings": list(self.findings)}
        more = {"seen": self.seen, "figures": dict(self.figures)}
        return told | {name: value for name, value in more.items() if value}

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        return {"text/plain": self._text(), "text/html": self._html(), MIME: self.as_json()}

    def _text(self) -> str:
        lines = [f"{found['severity']}: {found['title']}" for found in self.findings]
        return "\n".join([f"status: {self.status}", *lines])

    def _html(self) -> str:
        rows = "".join(_row(found) for found in self.findings)
        names = ("severity", "finding", "ids", "evidence", "action")
        head = "".join(f"<th>{name}</th>" for name in names)
        body = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        table = f'{_STYLE}<div class="tallybook-answer">{body}</div>' if rows else ""
        return f"<p>status: <strong>{escape(self.status)}</strong></p>{table}"


def answer(
    findings: Iterable[Finding],
    *,
    incomplete: Iterable[Finding] = (),
    complete: bool = True,
    seen: Seen | None = None,
    figures: Mapping[str, float | None] | None = None,
) -> Answer:
    """The answer of a runbook. Where nothing was found, ``seen`` says whether it could have been.
    Of ``figures`` the index of runs draws a trend each; None is no number of this run.

    Any of ``incomplete`` above ``info``, or ``complete`` false, makes the status ``incomplete``
    (exit code 4): the findings are those of what could be read.
    Else any of ``findings`` above ``info`` makes it ``findings`` (1); else it is ``clean`` (0).
    """
    found = [_plain(found) for found in findings]
    said = {one["title"] for one in found}
    holes = [hole for hole in map(_plain, incomplete) if hole["title"] not in said]
    status = FINDINGS if _serious(found) else CLEAN
    status = INCOMPLETE if _serious(holes) or not complete else status
    note = [_plain(seen.as_finding())] if seen and not _serious([*holes, *found]) else []
    known = seen.as_json() if seen else None
    return Answer(status, (*holes, *found, *note), known, _numbers(figures))


def carried_by(outputs: Iterable[Mapping[str, Any]]) -> Answer | None:
    """The last answer among the outputs of a notebook's cells, or None."""
    last = None
    for output in outputs:
        last = output.get("data", {}).get(MIME, last)
    if not isinstance(last, Mapping) or last.get("status") not in (CLEAN, FINDINGS, INCOMPLETE):
        return None
    found = last.get("findings")
    listed = found if isinstance(found, list) else []
    seen = last.get("seen")
    known = seen if isinstance(seen, dict) else None
    found = tuple(one for one in listed if isinstance(one, dict))
    return Answer(last["status"], found, known, _numbers(last.get("figures")))


def _numbers(given: Any) -> dict[str, float]:
    """The finite numbers among ``given``, by name."""
    told = given if isinstance(given, Mapping) else {}
    numbers = {str(name): value for name, value in told.items() if type(value) in (int, float)}
    return {name: value for name, value in numbers.items() if isfinite(value)}


def tallied(findings: Sequence[Mapping[str, Any]]) -> str:
    """How many findings and how many notes, as in "2 findings, 1 note"; empty where none."""
    notes = sum(found.get("severity") == "info" for found in findings)
    counts = ((len(findings) - notes, "finding"), (notes, "note"))
    return ", ".join(f"{n:,} {word}{'s' * (n != 1)}" for n, word in counts if n)


def _serious(findings: Iterable[Mapping[str, Any]]) -> bool:
    return any(found["severity"] != "info" for found in findings)


def _plain(found: Finding) -> dict[str, Any]:
    return {
        "kind": found.kind,
        "severity": found.severity,
        "title": found.title,
        "ids": [str(one) for one in found.ids],
        "evidence": found.evidence,
        "action": found.action,
    }


def _row(found: Mapping[str, Any]) -> str:
    ids = found["ids"]
    more = f" and {len(ids) - _SHOWN_IDS} more" if len(ids) > _SHOWN_IDS else ""
    shown = ", ".join(f'<span class="id">{escape(one)}</span>' for one in ids[:_SHOWN_IDS])
    severity, title, evidence = (
        escape(found[key] or "") for key in ("severity", "title", "evidence")
    )
    action = f"<code>{escape(found['action'])}</code>" if found["action"] else ""
    cells = (severity, title, shown + more, evidence, action)
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
