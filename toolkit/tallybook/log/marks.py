"""High-water marks: how far something in the book says that the log once reached."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from tallybook.layout import Layout


@dataclass(frozen=True, slots=True)
class Mark:
    """A high-water mark: the log once reached ``seq`` of ``writer`` with ``hash``."""

    source: str
    writer: str
    seq: int
    hash: str


def known_marks(layout: Layout) -> list[Mark]:
    """The high-water marks in metrics/latest.json and beside the checkpoints; one that was made
    before the first event says nothing."""
    found = [_mark_in(layout.latest, "metrics/latest.json")]
    for path in sorted(layout.checkpoints.glob("*.json")):
        found.append(_mark_in(path, f"checkpoints/{path.name}"))
    return [mark for mark in found if mark and mark.writer]


def _mark_in(path: Path, source: str) -> Mark | None:
    try:
        raw = json.loads(path.read_bytes())
        return Mark(source, str(raw["writer"]), int(raw["seq"]), str(raw["hash"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
