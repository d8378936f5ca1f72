"""Which fault a request meets: decided by seed, record and attempt alone, before anything runs.

Nothing is drawn while the demo runs, so no timing changes a fault.
On the first attempt each kind takes a fixed share of the records, at least one: the records
whose hash is lowest. Later attempts meet a fault by their hash; the fourth meets none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

ANSWER_LOST = "answer_lost"
UNAVAILABLE = "unavailable"
TOO_MANY = "too_many"
SLOW = "slow"
TOO_SLOW = "too_slow"
REFUSED = "refused"

LAST_FAULTY_ATTEMPT = 3
AT_MOST_SLOW = 20
RETRY_AFTER_S = 1
_FIRST_ATTEMPT = ((REFUSED, 0.01), (ANSWER_LOST, 0.03), (UNAVAILABLE, 0.03), (TOO_MANY, 0.01))
_LATER_ATTEMPTS = ((ANSWER_LOST, 0.06), (UNAVAILABLE, 0.06))


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to one request; ``delay_s`` for the slow kinds."""

    kind: str
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Plan:
    """All faults of one demo. ``victims``: the two records whose workers are killed and stopped."""

    seed: int
    timeout_s: float
    first: Mapping[str, Fault]
    victims: tuple[str, str]

    def at(self, record: str, attempt: int) -> Fault | None:
        """The fault of ``attempt`` (1 for the first) of ``record``; None when it meets none."""
        first = self.first.get(record)
        if first is not None and first.kind == REFUSED:
            return first
        if attempt == 1:
            return first
        if attempt > LAST_FAULTY_ATTEMPT or record in self.victims:
            return None
        return _later(score(self.seed, f"attempt {attempt}", record))


def plan(seed: int, records: Iterable[str], timeout_s: float) -> Plan:
    """The faults for ``records`` (twenty or more); their order does not matter."""
    left = set(records)
    first: dict[str, Fault] = {}
    total = len(left)
    for kind, share in _FIRST_ATTEMPT:
        chosen = lowest(seed, kind, left, max(1, round(total * share)))
        left -= set(chosen)
        first |= {record: Fault(kind) for record in chosen}
    slow = lowest(seed, SLOW, left, min(AT_MOST_SLOW, max(2, total // 100)))
    left -= set(slow)
    first |= {record: _slow(rank, timeout_s) for rank, record in enumerate(slow)}
    killed, stopped = lowest(seed, "victim", left, 2)
    return Plan(seed, timeout_s, first, (killed, stopped))


def lowest(seed: int, purpose: str, records: Iterable[str], count: int) -> Sequence[str]:
    """The ``count`` records with the lowest score for ``purpose``, lowest first."""
    return sorted(records, key=lambda record: (score(seed, purpose, record), record))[:count]


def score(seed: int, purpose: str, record: str) -> float:
    """A number in [0, 1) that depends on its three arguments alone."""
    text = f"{seed}\n{purpose}\n{record}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=6).digest(), "big") / 2**48


def _slow(rank: int, timeout_s: float) -> Fault:
    """Every second one is over the client's timeout, the others take a tenth of it."""
    if rank % 2:
        return Fault(TOO_SLOW, timeout_s * 1.25)
    return Fault(SLOW, timeout_s * 0.1)


def _later(number: float) -> Fault | None:
    for kind, share in _LATER_ATTEMPTS:
        if number < share:
            return Fault(kind)
        number -= share
    return None
