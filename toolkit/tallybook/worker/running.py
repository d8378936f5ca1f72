"""The leases that a worker holds: of jobs that run, and of those that wait in its memory."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from tallybook.book import Held


@dataclass
class Running:
    """Shared by the threads of a worker and its heartbeat. ``lease_us`` is the length of a lease.

    It keeps until when each lease lasts, by this machine's own boot clock.
    """

    lease_us: int
    mutex: threading.Lock = field(default_factory=threading.Lock)
    leases: dict[str, tuple[Held, int]] = field(default_factory=dict)
    given_up_us: dict[str, int] = field(default_factory=dict)

    def start(self, held: Held, boot_us: int) -> None:
        """A lease begins; it was last moved at ``boot_us``."""
        with self.mutex:
            self.leases[held.job_id] = (held, boot_us + self.lease_us)

    def extended(self, job_id: str, until_us: int) -> None:
        """A handler has moved its lease itself: it lasts until ``until_us``."""
        with self.mutex:
            known = self.leases.get(job_id)
            if known:
                self.leases[job_id] = (known[0], until_us)

    def begin(self, held: Held, given_up_us: int | None = None) -> None:
        """The handler of a lease begins; a lease that was lost meanwhile stays lost.

        From ``given_up_us`` on the heartbeat no longer keeps the lease.
        """
        with self.mutex:
            known = self.leases.get(held.job_id)
            if known:
                self.leases[held.job_id] = (held, known[1])
                if given_up_us is not None:
                    self.given_up_us[held.job_id] = given_up_us

    def end(self, job_id: str) -> None:
        """A handler has ended."""
        with self.mutex:
            self.leases.pop(job_id, None)
            self.given_up_us.pop(job_id, None)

    def to_extend(self, now_us: int, beat_us: int) -> list[Held]:
        """The leases that were last moved ``beat_us`` ago or before and are not given up."""
        with self.mutex:
            until_us = now_us - beat_us + self.lease_us
            return [
                held
                for held, ends_us in self.leases.values()
                if ends_us <= until_us and self._is_kept(held, now_us)
            ]

    def _is_kept(self, held: Held, now_us: int) -> bool:
        given_up_us = self.given_up_us.get(held.job_id)
        return given_up_us is None or now_us < given_up_us

    def moved(self, leases: list[Held], lost: list[Held], boot_us: int) -> None:
        """These leases were extended at ``boot_us``, but for those that are ``lost``."""
        with self.mutex:
            for held in leases:
                known = self.leases.get(held.job_id)
                if known:
                    self.leases[held.job_id] = (known[0], boot_us + self.lease_us)
            for held in lost:
                self.leases.pop(held.job_id, None)

    def holds(self, job_id: str, lease_token: int, boot_us: int) -> bool:
        """Whether this lease was not refused and has not run out by ``boot_us``.

        Nobody needs to be asked: it is known also while the log cannot be reached.
        """
        with self.mutex:
            held, until_us = self.leases.get(job_id, (None, 0))
        if held is None or held.lease_token != lease_token:
            return False
        return boot_us < until_us

    def all(self) -> list[Held]:
        """The leases held now."""
        with self.mutex:
            return [held for held, _ in self.leases.values()]

    def clear(self) -> None:
        """All were handed back."""
        with self.mutex:
            self.leases.clear()
            self.given_up_us.clear()
