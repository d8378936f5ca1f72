"""The options of a worker: each is checked, or raises BadInput that names it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tallybook.errors import BadInput
from tallybook.payload import checked_text, visible
from tallybook.worker.handlers import Registered


def checked_name(name: str | None) -> str | None:
    """A name of a worker that may be shown; None stays."""
    if name is not None and visible(name) != name:
        raise BadInput(f"--name {visible(name)}: use no control characters")
    return checked_text("worker name", name)


def checked_threads(threads: int) -> int:
    """1 to 256 threads."""
    if not 1 <= threads <= 256:
        raise BadInput(f"--threads {threads}: use 1 to 256")
    return threads


def checked_lease(lease_s: float) -> float:
    """A lease of 0.3 s to a day."""
    if not 0.3 <= lease_s <= 86400:
        raise BadInput(f"--lease {lease_s:g}: use 0.3 s to a day")
    return lease_s


def checked_grace(grace_s: float) -> float:
    """A grace of 0 s to a day."""
    if not 0 <= grace_s <= 86400:
        raise BadInput(f"--grace {grace_s:g}: use 0 s to a day")
    return grace_s


def checked_topics(topics: Sequence[str], handlers: Mapping[str, Registered]) -> Sequence[str]:
    """Topics that all have a handler; none given: all with one."""
    for topic in topics:
        if topic not in handlers:
            known = ", ".join(sorted(handlers))
            raise BadInput(f"--topics {topic}: no handler for it; there are: {known}")
    return tuple(topics) or tuple(sorted(handlers))
