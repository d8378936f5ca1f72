"""Messages that are to be sent: a file each, there before anything is sent, gone when it was taken.

Files and no queue of a book: runbooks never import the runtime, so that they read books of any
machine, and a message is small, rare and may come twice. One file a message is all that is needed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from tallybook import clock
from tallybook.runbook import folder
from tallybook.runbook.schedule.diary import put

FIRST_S, LONGEST_S = 10.0, 3600.0
GIVEN_UP_S = 86_400.0
UNDELIVERED = "undelivered"


@dataclass(frozen=True, slots=True)
class Message:
    """One message to one target (a reference); ``next_at`` is when it is tried next."""

    target: str
    title: str
    body: str
    made_at: str
    next_at: str
    tries: int = 0
    reason: str = ""
    is_given_up: bool = False

    @property
    def name(self) -> str:
        """The file of this message: the same message has the same name."""
        text = "\n".join((self.target, self.title, self.body, self.made_at))
        digest = hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=6)
        return f"{self.made_at[:19].replace(':', '')}-{digest.hexdigest()}.json"


Send = Callable[[str, str, str], str]
"""Sends (target, title, body) and returns why it was not taken, empty where it was."""


@dataclass(frozen=True, slots=True)
class Outbox:
    """The messages in one folder."""

    place: Path

    def put(self, message: Message) -> None:
        """Have ``message`` on disk; it is sent at least once."""
        folder.private_folder(self.place)
        text = json.dumps(asdict(message), ensure_ascii=False, indent=1) + "\n"
        put(self.place / message.name, text.encode("utf-8", "surrogateescape"))

    def waiting(self) -> list[Message]:
        """Every message that was not taken yet, oldest first."""
        try:
            names = sorted(path for path in self.place.iterdir() if path.suffix == ".json")
        except FileNotFoundError:
            return []
        return [found for path in names if (found := _message(path)) is not None]

    def deliver(self, now: datetime, send: Send) -> list[Message]:
        """Try each message that is due; returns those that were not taken, as they are now.

        After one that a target did not take, no other is tried on that target in this call.
        """
        not_taken: list[Message] = []
        silent: set[str] = set()
        for message in self.waiting():
            if message.target in silent or not _is_due(message, now):
                continue
            reason = send(message.target, message.title, message.body)
            if not reason:
                (self.place / message.name).unlink(missing_ok=True)
                continue
            silent.add(message.target)
            failed = replace(message, tries=message.tries + 1, reason=reason)
            failed = replace(
                failed, next_at=_later(failed, now), is_given_up=_age_s(failed, now) > GIVEN_UP_S
            )
            self.put(failed)
            if failed.is_given_up:
                self._lay_aside(failed)
            not_taken.append(failed)
        return not_taken

    def next_s(self, now: datetime) -> float | None:
        """For how many seconds nothing is due; None where nothing waits."""
        waits = [(clock.from_text(one.next_at) - now).total_seconds() for one in self.waiting()]
        return min(LONGEST_S, max(0.0, min(waits))) if waits else None

    def _lay_aside(self, message: Message) -> None:
        aside = self.place / UNDELIVERED
        folder.private_folder(aside)
        with suppress(FileNotFoundError):
            (self.place / message.name).rename(aside / message.name)


def _later(message: Message, now: datetime) -> str:
    wait_s = min(LONGEST_S, FIRST_S * 2.0 ** min(message.tries - 1, 20))
    return clock.to_text(now + timedelta(seconds=wait_s))


def _is_due(message: Message, now: datetime) -> bool:
    """Also where the clock was set back so far that the next try lies beyond any wait."""
    wait_s = (clock.from_text(message.next_at) - now).total_seconds()
    return wait_s <= 0 or wait_s > LONGEST_S


def _age_s(message: Message, now: datetime) -> float:
    return (now - clock.from_text(message.made_at)).total_seconds()


def _message(path: Path) -> Message | None:
    """The message in a file; None for one that was sent meanwhile or is none."""
    try:
        return Message(**json.loads(path.read_bytes()))  # TypeError where it is another object
    except (FileNotFoundError, ValueError, TypeError):
        return None
