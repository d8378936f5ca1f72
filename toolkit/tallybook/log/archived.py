"""What the archive of the ops folder holds of the log, as far as its entries and files prove it.

``compact`` leaves ``<stem>.json`` beside ``<stem>.parquet``. The runtime reads no Parquet: it
proves that the file is the one that the entry names, and that the entry is of the very lines
that the log has, by the hash of the chain behind them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tallybook.layout import SEGMENT_SUFFIX, Layout
from tallybook.log import manifest as manifests
from tallybook.log.reader import Segment

VERSION = 1


def why_not(folder: Path, layout: Layout, item: Segment) -> str | None:
    """Why the archive does not stand for a segment, in a few words; None where it does."""
    stem = item.name.removesuffix(SEGMENT_SUFFIX)
    entry = _entry(folder / f"{stem}.json")
    if entry is None:
        return "it is not in the archive"
    if entry.get("quarantine") or entry.get("hash") is None:
        return "the archive does not have each of its lines"
    if entry.get("hash") != _chain(layout, item):
        return "the archive was made of other lines"
    return _why_not_file(folder / f"{stem}.parquet", entry)


def _entry(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("v") == VERSION else None


def _chain(layout: Layout, item: Segment) -> str | None:
    """The hash of the chain behind a segment, hex."""
    proof = manifests.read(layout, item.name)
    if proof:
        return proof.hash
    ends = manifests.walk(item)
    return ends.hash.hex() if ends else None


def _why_not_file(path: Path, entry: dict[str, Any]) -> str | None:
    try:
        same = manifests.digest(path) == entry.get("parquet_digest")
    except FileNotFoundError:
        return "its file in the archive is missing"
    return None if same else "its file in the archive is damaged"
