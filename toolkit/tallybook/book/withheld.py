"""Payloads that the log does not get, or not whole: state.db alone has them.

So its COMMIT is synced in such a book, and one that fails is an error of those who enqueued: their
jobs are in the log, but have nothing to run on.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tallybook import transitions
from tallybook.book.gathering import Ticket
from tallybook.errors import TallybookError
from tallybook.event import Event

log = logging.getLogger("tallybook.book")
_END = "they become dead letters with PayloadLost"


def refuse(tickets: Iterable[Ticket], state: Path) -> None:
    """Give an error to the changes that enqueued such payloads: the COMMIT of them failed."""
    for ticket in tickets:
        lost = [event for event in ticket.made if transitions.lacks_payload(event.as_logged())]
        if lost:
            ticket.error = ticket.error or TallybookError(
                f"{state}: cannot be written, and the log does not keep the payload of "
                f"{_named(lost)}: {_END}; make room on the disk and enqueue them again"
            )


@dataclass
class Lost:
    """Jobs that a replay found in the log without their payload."""

    events: list[Event] = field(default_factory=list)

    def note(self, event: Event) -> None:
        """Look at an event of the log."""
        if transitions.lacks_payload(event):
            self.events.append(event)

    def tell(self) -> None:
        """Say in one line which jobs cannot run."""
        if self.events:
            log.warning(
                "the log does not keep the payload of %s, and state.db lost it: %s unless they "
                "have ended; enqueue them again",
                _named(self.events), _END,
            )  # fmt: skip


def _named(events: list[Event]) -> str:
    more = f" and {len(events) - 1} more" if len(events) > 1 else ""
    return f"job {events[0]['job_id']}{more}"
