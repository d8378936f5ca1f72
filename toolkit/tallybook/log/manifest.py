"""The manifest of a closed segment: what its lines are, so that its archive can be proven whole."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from tallybook import packed
from tallybook.event import BadLine, Event, decode
from tallybook.layout import Layout
from tallybook.log.chain import NO_HASH, link
from tallybook.log.durable import replace_file
from tallybook.log.reader import Segment, lines

VERSION = 1


@dataclass(frozen=True, slots=True)
class Manifest:
    """What ``<stem>.manifest.json`` says. Hashes are hex: of the chain before and after the
    segment, ``archive_digest`` BLAKE2b-256 of the archive; ``bytes`` count the text."""

    v: int
    segment: str
    writer: str
    lines: int
    first_seq: int
    last_seq: int
    previous_hash: str
    hash: str
    bytes: int
    opened_at: str
    last_occurred_at: str
    archive_bytes: int
    archive_digest: str


@dataclass(frozen=True, slots=True)
class Ends:
    """The lines of a segment as its chain counts them."""

    hash: bytes
    size: int
    lines: int
    last: Event


def start_of_chain(item: Segment) -> bytes:
    """The hash of its writer before a segment; zeros before the first line of a writer."""
    if item.first_seq == 1 or not item.opened:
        return NO_HASH
    return bytes.fromhex(item.opened.get("previous_hash", ""))


def walk(item: Segment) -> Ends | None:
    """The chain over the lines of a segment; None where not each of them can be an event."""
    hash_now, line = start_of_chain(item), None
    try:
        for line in lines(item.path):
            hash_now = link(hash_now, line.raw)
        last = decode(line.raw) if line and line.whole else None
    except (BadLine, packed.Unreadable):
        return None
    if line is None or last is None or last.seq - item.first_seq + 1 != line.number:
        return None
    return Ends(hash_now, line.end, line.number, last)


def read(layout: Layout, segment: str) -> Manifest | None:
    """The manifest of ``segment``; None where there is none that can be read."""
    return _read(layout.manifest(segment))


def read_all(layout: Layout) -> list[Manifest]:
    """Every manifest of the log that can be read."""
    found = (_read(path) for path in sorted(layout.log.glob("*.manifest.json")))
    return [manifest for manifest in found if manifest]


def _read(path: Path) -> Manifest | None:
    try:
        raw = json.loads(path.read_bytes())
        known = {field.name: raw[field.name] for field in fields(Manifest)}
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    return Manifest(**known)


def write(layout: Layout, manifest: Manifest) -> None:
    """Keep a manifest, on disk when this returns."""
    text = json.dumps(asdict(manifest), indent=1) + "\n"
    replace_file(layout.manifest(manifest.segment), text.encode(), "manifest")


def digest(path: Path) -> str:
    """BLAKE2b-256 of a file, hex."""
    found = hashlib.blake2b(digest_size=32)
    with path.open("rb") as file:
        for chunk in packed.chunks(file):
            found.update(chunk)
    return found.hexdigest()
