"""The view of one span of a log: linked charts and tables, a slider through time, a trace.

What is selected is state in Python: ``view.selection``. A brush sets it, and so does
``select`` in a cell; either way every part follows. A view shows the log as it was read when it
was opened; where the log has grown since, it says so, and ``refresh`` reads it again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars

from tallybook.errors import TallybookError
from tallybook.lab import offline
from tallybook.lab.growth import Growth
from tallybook.lab.linked import Linked
from tallybook.lab.moment import Moment
from tallybook.lab.notes import Notes, require_name
from tallybook.lab.traced import Traced
from tallybook.ops.incident import Incident, Slice
from tallybook.ops.opening import Books, open_warehouse
from tallybook.ops.windows import WHOLE, Instant, Span


def open_incident(
    book: Books = None, span: Span = WHOLE, *, name: str = "incident", out: Path | None = None
) -> View:
    """A view of ``span`` of a book, as ``ops.open`` finds it; findings go under ``name``.

    Raises BadInput as ``ops.open`` and ``Span`` do, and where the log has no event.
    """
    require_name(name)
    offline.begin()
    return View(book, span, name=name, out=out)


class View:
    """The parts of an incident notebook: ``linked``, ``slider``, ``trace`` and ``notes``."""

    def __init__(self, book: Books, span: Span, *, name: str, out: Path | None) -> None:
        self._book, self._span = book, span
        self._read()
        self.selection: Slice = self.incident.whole
        self._traced = Traced(self)
        self._linked = Linked(self)
        self._moment = Moment(self)
        self._notes = Notes(self, name, out)

    def _read(self) -> None:
        growth = Growth.of(self._book)
        self.warehouse = open_warehouse(self._book)
        self.incident = Incident(self.warehouse, self._span)
        self._growth = growth

    # the parts, as widgets

    @property
    def linked(self) -> Any:
        """Throughput to brush, and what follows: charts, differences, leases."""
        return self._linked.shown

    @property
    def slider(self) -> Any:
        """Queue, open leases and cache as of an instant."""
        return self._moment.shown

    @property
    def trace(self) -> Any:
        """One job or correlation id from enqueue to cloud."""
        return self._traced.shown

    @property
    def notes(self) -> Any:
        """Findings to write down, and the report of them."""
        return self._notes.shown

    # the same in code

    def select(self, since: Instant = None, until: Instant = None) -> Slice:
        """Brush from ``since`` to ``until``; without both, the whole span. Every part follows."""
        self._linked.brush(self.incident.slice(since, until))
        return self.selection

    @property
    def differences(self) -> polars.DataFrame:
        """What differs in the selection from the rest of the span: ``Incident.differences``."""
        return self.incident.differences(self.selection)

    @property
    def leases(self) -> polars.DataFrame:
        """The leases that ended in the selection, worst first: ``Incident.worst``."""
        return self._linked.leases

    def as_of(self, moment: Instant) -> None:
        """Turn the slider to the grain that ``moment`` lies in."""
        self._moment.turn(self.incident.slice(moment).first)

    def follow(self, id: str) -> polars.DataFrame:
        """The trace of a job, correlation id, idempotency key or cache key."""
        return self._traced.follow(id)

    def silence(self, what: str, none: str) -> str:
        """Why there is no row of ``what``: that the log cannot tell of it, else ``none``."""
        return self.warehouse.silent.get(what, none)

    def offer_jobs(self, ids: list[str]) -> None:
        """Offer these jobs to the trace."""
        self._traced.offer(ids)

    def write_down(self, text: str, severity: str = "warning") -> None:
        """Keep a finding with what is selected now: its first line is its title."""
        self._notes.write_down(text, severity)

    def report(self) -> Path:
        """Write the findings as one HTML file and say where it is."""
        return self._notes.report()

    # a log that grows

    @property
    def has_grown(self) -> bool:
        """Whether the log has more by now than this view shows."""
        return self._growth.goes_on(self._book)

    @property
    def news(self) -> str:
        """A sentence on when the log was read, and whether it has grown since."""
        told = f"read at {self._growth.read_at:%H:%M:%S}Z"
        return f"{told}; the log has grown since: read it again" if self.has_grown else told

    def refresh(self) -> None:
        """Read the log again; the selection stays where it was, as far as it can.

        Where it cannot be read, the view stays as it is, and the error passes through.
        """
        old, part = (self.incident, self.warehouse), self.selection
        was_whole = part == self.incident.whole
        self._read()
        for one in old:
            one.close()
        self._linked.renew(self._again(part, was_whole))
        self._moment.renew()

    def _again(self, part: Slice, was_whole: bool) -> Slice:
        try:
            return self.incident.whole if was_whole else self.incident.slice(part.since, part.until)
        except TallybookError:  # nothing of it is left in the log
            return self.incident.whole

    def close(self) -> None:
        """Free what was read of the log."""
        self.incident.close()
        self.warehouse.close()
