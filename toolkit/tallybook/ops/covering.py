"""Whether a question could have found anything: what was seen, of which time, and how whole."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from html import escape
from typing import Any, Literal

import polars

from tallybook.ops import frames
from tallybook.ops.finding import Finding
from tallybook.ops.warehouse import Warehouse
from tallybook.ops.windows import WHOLE, Span
from tallybook.ops.wording import counted

Subject = Literal["events", "jobs", "runs", "leases", "writes"]

_NONE = {
    "events": "the log has no event",
    "jobs": "no job arrived",
    "runs": "no run of a job ended",
    "leases": "no lease was held",
    "writes": "nothing was written into the cache",
}
_ONE = {"events": "event", "jobs": "job", "runs": "run", "leases": "lease", "writes": "cache write"}


@dataclass(frozen=True, slots=True)
class Coverage:
    """What a question about ``subject`` had before it, in the span that was asked for.

    ``seen`` are the subjects in it, ``events`` all events in it; ``lines`` were read in all, of
    which ``unreadable`` are in no answer, and ``holes`` tells how often numbers of the log are
    missing. ``silent`` is why the log cannot tell of the subject at all, or empty.
    """

    subject: Subject
    seen: int
    events: int
    lines: int
    unreadable: int
    holes: int
    first_at: datetime | None
    last_at: datetime | None
    silent: str = ""

    @property
    def could_find(self) -> bool:
        """Whether there was anything in which something could have been found."""
        return self.seen > 0 and not self.silent

    @property
    def words(self) -> str:
        """One sentence for a person."""
        if not self.could_find:
            return f"Nothing could have been found: {self.silent or self._nothing()}"
        return f"Looked at {counted(self.seen, _ONE[self.subject])}{self._among()}; {self._whole()}"

    def _nothing(self) -> str:
        there = f" among {counted(self.events, 'event')}" if self.events else " in this window"
        return _NONE[self.subject] + (there if self.subject != "events" or self.lines else "")

    def _among(self) -> str:
        reach = _reach(self.first_at, self.last_at)
        return (f" in {counted(self.events, 'event')}" if self.subject != "events" else "") + reach

    def _whole(self) -> str:
        if not (self.unreadable or self.holes):
            return "every part of the log is there and was read"
        lacks = counted(self.unreadable, "unreadable line"), counted(self.holes, "hole")
        return f"the log has {' and '.join(lacks)}"

    def as_finding(self) -> Finding:
        """The same as a note at the end of a runbook."""
        return Finding("covered", "info", self.words)

    def as_json(self) -> dict[str, Any]:
        """As findings.json has it."""
        plain = {name: _text(value) for name, value in asdict(self).items()}
        return plain | {"could_find": self.could_find, "words": self.words}

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        """As a notebook shows it: a table of one row, under the sentence."""
        row = polars.DataFrame([asdict(self)]).drop("silent")
        told = f"<p>{escape(self.words)}</p>{frames.html(row)}"
        return {"text/plain": self.words, "text/html": told}


def coverage(warehouse: Warehouse, span: Span = WHOLE, *, of: Subject = "jobs") -> Coverage:
    """What there is to be asked about in the span, of the subject of a question: jobs that arrived,
    runs that ended, leases that were held, cache writes, or events of any kind."""
    row = warehouse.frame("coverage", span.bounds()).row(0, named=True)
    seen = warehouse.ledger
    told = {"leases": "leases", "writes": "cache"}.get(of, "")
    return Coverage(
        of,
        row[of],
        row["events"],
        seen.lines,
        seen.quarantined,
        warehouse.gaps.height,
        row["first_at"],
        row["last_at"],
        warehouse.silent.get(told, ""),
    )


def _reach(first: datetime | None, last: datetime | None) -> str:
    if first is None or last is None:
        return ""
    return f" of {first:%Y-%m-%d %H:%M:%S}Z to {last:%Y-%m-%d %H:%M:%S}Z"


def _text(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
