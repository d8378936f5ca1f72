"""What a manifest proves of a compressed segment: that its lines are those that the log wrote."""

import hashlib
import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tallybook import packed
from tallybook.layout import Layout, segment_name


@dataclass(frozen=True, slots=True)
class Proof:
    """The lines of a segment as its manifest has them; ``hash`` is that of the chain behind it."""

    lines: int
    bytes: int
    first_seq: int
    last_seq: int
    hash: str


def digest(path: Path) -> str:
    """BLAKE2b-256 of a file, hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=32)).hexdigest()


def told(place: Layout, segment: str) -> dict[str, Any] | None:
    """What the manifest of ``segment`` says; None where there is none that can be read."""
    try:
        found = json.loads(place.manifest(segment).read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def proof(place: Layout, path: Path) -> Proof | None:
    """The proof of an archive that is the one of its manifest, else None.

    The manifest was written when the chain over the lines met that of the next segment, so each
    byte of them is one that the log wrote.
    """
    manifest = told(place, segment_name(path)) if packed.is_packed(path) else None
    if manifest is None:
        return None
    try:
        if manifest["archive_digest"] != digest(path):
            return None
        return Proof(**{part.name: manifest[part.name] for part in fields(Proof)})
    except (FileNotFoundError, KeyError, ValueError, TypeError):
        return None
