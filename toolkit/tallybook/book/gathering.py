"""Gathering: threads of one process do their changes together, with one sync.

The first thread that comes leads: it does all changes that wait. Who comes while it waits for the
disk waits too; when it is done it calls one of them to lead the next turn, and wakes those whose
changes it did.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tallybook.book.store import Store
from tallybook.clock import Moment
from tallybook.event import Event
from tallybook.job import Job

Decide = Callable[[Store, Moment], Iterable[Event]]


@dataclass
class Ticket:
    """A change that a thread asks for, and what became of it. While its thread waits, ``call`` is
    closed; it opens when the change is over, or when the thread is to lead."""

    decide: Decide
    made: list[Event] = field(default_factory=list)
    leased: list[Job] = field(default_factory=list)
    error: BaseException | None = None
    is_over: bool = False
    call: threading.Lock = field(default_factory=threading.Lock)


class Gathering:
    """Tickets that wait, and whether a thread is at work on earlier ones. ``do`` does some."""

    def __init__(self, do: Callable[[list[Ticket]], None]) -> None:
        self._do = do
        self._gate = threading.Lock()
        self._waiting: list[Ticket] = []
        self._is_led = False

    def join(self, ticket: Ticket) -> None:
        """Wait until ``ticket`` is over; do it, with all that wait, where nobody else does."""
        with self._gate:
            leads = not self._is_led
            self._is_led = True
            if not leads:
                ticket.call.acquire()
                self._waiting.append(ticket)
        if leads:
            self._lead([ticket])
        elif self._is_called_to_lead(ticket):
            self._lead(self._all_waiting())

    def _is_called_to_lead(self, ticket: Ticket) -> bool:
        try:
            ticket.call.acquire()
        except BaseException:  # a signal's handler raised; nobody may wait for this thread
            self._leave(ticket)
            raise
        return not ticket.is_over

    def _leave(self, ticket: Ticket) -> None:
        with self._gate:
            if ticket not in self._waiting:
                return
            self._waiting.remove(ticket)
            if not ticket.call.locked():
                self._hand_on()

    def _all_waiting(self) -> list[Ticket]:
        with self._gate:
            tickets, self._waiting = self._waiting, []
        return tickets

    def _lead(self, tickets: list[Ticket]) -> None:
        try:
            self._do(tickets)
        finally:
            with self._gate:
                for ticket in tickets:
                    ticket.is_over = True
                self._hand_on()
            for ticket in tickets:
                if ticket.call.locked():
                    ticket.call.release()

    def _hand_on(self) -> None:
        if self._waiting:
            self._waiting[0].call.release()
        else:
            self._is_led = False
