"""Errors of tallybook: few, named for what happened, each with the exit code that it means.

The message of a ``TallybookError`` is one clear line: what, where, what to do.
``Retry``, ``NotReached``, ``Permanent`` and ``Snooze`` are not errors of ours:
a handler raises them to say how its job ends.
"""

from __future__ import annotations

import errno
from datetime import datetime, timedelta


class TallybookError(Exception):
    """Something failed; the message says what, where and what to do."""

    exit_code = 3


class BadInput(TallybookError):
    """The user gave something that cannot be used; nothing was changed."""

    exit_code = 2


class IncompleteInput(TallybookError):
    """What was read has holes, so no complete answer exists."""

    exit_code = 4


class NotNow(TallybookError):
    """What stops this change may pass by itself: nothing was changed, try again later."""


class NoRoom(NotNow):
    """The disk, or a quota, is full; the message names the file."""


def is_no_room(error: OSError) -> bool:
    """Whether the disk, a quota or the largest size of a file takes no more."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def unwritable(what: str, error: OSError) -> TallybookError:
    """That ``what`` cannot be written: NoRoom where the disk takes no more, else BadInput."""
    words = f"{what} cannot be written: {error.strerror or error}"
    return NoRoom(f"{words}; make room on the disk") if is_no_room(error) else BadInput(words)


class QueueFull(NotNow):
    """A topic has as many pending jobs, or bytes of payloads, as it may: nothing of the enqueue
    was taken. ``depth`` are pending, ``limit`` may be; ``place`` is that of the first job that did
    not fit; ``backlog_s`` how long what is pending takes, None where that is not known."""

    def __init__(
        self, topic: str, setting: str, *, depth: int, asked: int, limit: int, place: int
    ) -> None:
        super().__init__()
        self.topic, self.setting = topic, setting
        self.depth, self.asked, self.limit, self.place = depth, asked, limit, place
        self.backlog_s: float | None = None

    def __str__(self) -> str:
        what = "bytes of payloads" if self.setting.endswith("bytes") else "jobs"
        takes = ""
        if self.backlog_s is not None:
            takes = f"; at the present rate the backlog takes {self.backlog_s:,.0f} s"
        return (
            f"topic {self.topic} is full: {self.depth:,} {what} are pending, {self.asked:,} more "
            f"come in, and {self.setting} is {self.limit:,}{takes}; nothing was enqueued: "
            "try again later"
        )


class LockHeld(NotNow):
    """Another process holds the log lock longer than ``lock_wait_s``; the message names it."""


class LogDamaged(IncompleteInput):
    """The log has a torn line in its middle, a hole or an edit; the message names the place."""


class FoldRefused(TallybookError):
    """An event of the log does not fit the state before it; the book opens read-only."""


class KeyConflict(BadInput):
    """The idempotency key belongs to a job with another payload; the message names that job."""


class VersionConflict(TallybookError):
    """The cache entry is no longer the one that a write was made on; nothing was written."""


class LeaseLost(TallybookError):
    """The lease ended before the settle; the result was dropped and the refusal logged."""


class Retry(Exception):
    """Raised by a handler: this attempt failed, try again later.

    ``after`` (seconds or a timedelta, kept as ``after_s``) is the least delay that the other side
    asked for.
    ``http_status``, ``endpoint`` and ``replayed`` go into the event.
    """

    def __init__(
        self,
        message: str = "",
        *,
        after: float | timedelta | None = None,
        error_type: str | None = None,
        http_status: int | None = None,
        endpoint: str | None = None,
        replayed: bool = False,
    ) -> None:
        super().__init__(message)
        self.after_s = after.total_seconds() if isinstance(after, timedelta) else after
        self.error_type = error_type or type(self).__name__
        self.http_status = http_status
        self.endpoint = endpoint
        self.replayed = replayed


class NotReached(Retry):
    """The attempt never reached the server (DNS, connect, TLS): it does not count."""


class Permanent(Exception):
    """Raised by a handler: no attempt can succeed; the job goes to the dead letters."""

    def __init__(
        self,
        message: str = "",
        *,
        error_type: str | None = None,
        http_status: int | None = None,
        endpoint: str | None = None,
        replayed: bool = False,
    ) -> None:
        super().__init__(message)
        self.error_type = error_type or type(self).__name__
        self.http_status = http_status
        self.endpoint = endpoint
        self.replayed = replayed


class Snooze(Exception):
    """Raised by a handler: not now; run this job again after ``for_s`` seconds, or when the wall
    clock shows ``until`` (with its zone); not counted. Raises BadInput for both or neither.
    """

    def __init__(self, for_s: float | None = None, *, until: datetime | None = None) -> None:
        if (for_s is None) == (until is None):
            raise BadInput("Snooze: give it for_s (seconds) or until (a time), one of them")
        if until is not None and until.tzinfo is None:
            raise BadInput(f"Snooze: {until}: give a time with its zone")
        super().__init__(f"snoozed for {for_s} s" if until is None else f"snoozed until {until}")
        self.for_s = for_s
        self.until = until
