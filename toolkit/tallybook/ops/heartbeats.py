"""The heartbeat files of a book: which workers gave a sign of life, when, and what they held."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tallybook.layout import Layout


@dataclass(frozen=True, slots=True)
class Beat:
    """A lease that a worker said to hold at ``beat_at``; one without a job where it held none.

    ``started_at`` is None while the job waits in the memory of the worker.
    """

    worker: str
    beat_at: str | None
    job_id: str | None = None
    lease_token: int | None = None
    started_at: str | None = None


def read(book: Path) -> list[Beat] | None:
    """What the heartbeat files of ``book`` say; None where it has no folder of them.

    A file that goes or is rewritten meanwhile says nothing.
    """
    folder = Layout(book).heartbeats
    if not folder.is_dir():
        return None
    return [beat for path in sorted(folder.glob("*.json")) for beat in _beats(path)]


def _beats(path: Path) -> Iterator[Beat]:
    try:
        sign = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return
    if not isinstance(sign, dict):
        return
    worker, beat_at = unquote(path.stem), _text(sign.get("beat_at"))
    yield Beat(worker, beat_at)
    for job in sign.get("jobs") or []:
        if isinstance(job, dict) and isinstance(job.get("lease_token"), int):
            told = (_text(job.get("job_id")), job["lease_token"], _text(job.get("started_at")))
            yield Beat(worker, beat_at, *told)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
