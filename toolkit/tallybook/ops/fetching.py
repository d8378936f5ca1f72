"""What is fetched of one node in a bucket: what reaches into the asked time, and not more.

manifests and entries of the archive    they say when a segment began and ended: fetched first
segments that the archive holds         not fetched: their Parquet is read by ranges
other segments                          the first bytes, where no manifest says when they begin
  outside the asked time                stay where they are
  plain and long                        the lines of the asked time, found by halving, as a range
  else                                  whole: compressed text cannot be read in part
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Any

import orjson
from pyarrow import fs

from tallybook import packed
from tallybook.errors import BadInput, TallybookError
from tallybook.layout import MANIFEST_SUFFIX, NODE_MARK, SEGMENT_SUFFIX, Layout, first_seq
from tallybook.ops import archive, nodes, openings, proofs, windows
from tallybook.ops.archive import Entry
from tallybook.ops.nodes import Node
from tallybook.ops.storage import refused

PIECE_BYTES = 1 << 16
_HEAD_BYTES = 1 << 18
_SMALL = ("anchor.json", "imported.json", "writer.json")


@dataclass(frozen=True, slots=True)
class File:
    """A file of a node in the bucket; ``folder`` is the one in the node's book, empty for none."""

    node: str
    path: str
    folder: str
    name: str
    size: int

    @property
    def segment(self) -> str:
        """The segment that it is, compressed or not; empty for other files."""
        name = self.name.removesuffix(packed.SUFFIX)
        return name if self.folder == "log" and name.endswith(SEGMENT_SUFFIX) else ""

    @property
    def is_first(self) -> bool:
        """Whether it is small and says what the others are."""
        if self.folder == "log":
            return self.name in _SMALL or self.name.endswith(MANIFEST_SUFFIX)
        return self.name == "unreadable.ndjson" or self.name.endswith(".json")


@dataclass(frozen=True, slots=True)
class Reach:
    """The asked time: from ``since`` to ``until``, None where it is open."""

    since: datetime | None
    until: datetime | None

    @property
    def is_open(self) -> bool:
        """Whether all of history is asked for."""
        return self.since is None and self.until is None

    def has(self, begun: datetime | None, ended: datetime | None) -> bool:
        """Whether events from ``begun`` to ``ended`` can be in it; an unknown end counts."""
        is_over = self.since and ended and ended < self.since
        return not is_over and not (self.until and begun and begun >= self.until)


class Bucket:
    """A place in a file system; ``fetched`` counts the bytes that came from it."""

    def __init__(self, url: str, files: Any, root: str, aside: Path) -> None:
        self.url, self.files, self.root, self.aside = url, files, root, aside
        self.fetched = 0
        self._lock = Lock()

    def listed(self) -> list[File]:
        """Every file of a node's log and archive; raises BadInput where it cannot be listed."""
        try:
            found = self.files.get_file_info(fs.FileSelector(self.root, recursive=True))
        except OSError as error:
            raise BadInput(refused(self.url, error)) from None
        return [file for info in found if info.is_file and (file := self._file(info))]

    def _file(self, info: Any) -> File | None:
        node, *folders, name = info.path.removeprefix(self.root).strip("/").split("/")
        folder = "/".join(folders)
        is_ours = folder in ("log", "archive") or (not folder and name == "unreadable.ndjson")
        if not is_ours or not node.startswith(NODE_MARK):
            return None
        return File(node.removeprefix(NODE_MARK), info.path, folder, name, info.size)

    def read(self, file: File, start: int, length: int) -> bytes:
        """Some bytes of a file."""
        try:
            with self.files.open_input_file(file.path) as source:
                data = bytes(source.read_at(min(length, file.size - start), start))
        except OSError as error:
            raise TallybookError(refused(f"{self.url}: {file.path}", error)) from error
        with self._lock:
            self.fetched += len(data)
        return data

    def keep(self, file: File, data: bytes) -> Path:
        """The bytes in the file's place below ``aside``."""
        folder = self.root_of(file.node) / file.folder
        folder.mkdir(parents=True, exist_ok=True)
        (folder / file.name).write_bytes(data)
        return folder / file.name

    def fetch(self, file: File) -> Path:
        """The whole file in its place below ``aside``."""
        return self.keep(file, self.read(file, 0, file.size))

    def root_of(self, node: str) -> Path:
        """Where the book of a node lies below ``aside``."""
        return self.aside / f"{NODE_MARK}{node}"


@dataclass(slots=True)
class _Segment:
    """A segment of the log or the archive, and when it began and ended where that is known."""

    name: str
    file: File | None
    begun: datetime | None
    ended: datetime | None
    head: bytes = b""


def fetch(
    bucket: Bucket, name: str, files: Sequence[File], reach: Reach
) -> tuple[Node, dict[str, int]]:
    """One node with what its log has of an asked time, and up to where each writer was left out."""
    place = Layout(bucket.root_of(name))
    place.log.mkdir(parents=True)
    for file in files:
        if file.is_first:
            bucket.fetch(file)
    there = {file.segment: file for file in files if file.segment}
    sizes = {file.name: file.size for file in files if file.folder == "archive"}
    paths = [place.log / file.name for file in there.values()]
    entries = archive.usable(archive_of(place), place, paths, sizes)
    segments = _spans(bucket, place, there, entries, reach)
    kept = [one for one in segments if reach.has(one.begun, one.ended)]
    left_out = _left_out(segments, kept)
    for one in kept:
        if one.file:
            left_out |= _keep(bucket, one, one.file, reach)
    _forget(place, {one.name for one in kept})
    named = {one.name: entries[one.name] for one in kept if one.name in entries}
    return nodes.node_at(name, place.root, in_place=False, entries=named), left_out


def archive_of(place: Layout) -> Path:
    """Where the entries of the archive of a node lie."""
    return Node("", place).archive


def _spans(
    bucket: Bucket,
    place: Layout,
    there: Mapping[str, File],
    entries: Mapping[str, Entry],
    reach: Reach,
) -> list[_Segment]:
    """Each segment with its time, in the order of their names; one without an end ends where the
    next of its writer begins."""
    found = [_of_entry(entry) for entry in entries.values()]
    found += [_of_file(bucket, place, file, reach) for name, file in there.items()
              if name not in entries]  # fmt: skip
    found.sort(key=lambda one: one.name)
    for one, following in pairwise(found):
        if one.ended is None and one.name[:8] == following.name[:8]:
            one.ended = following.begun
    return found


def _of_entry(entry: Entry) -> _Segment:
    return _Segment(entry.segment, None, _moment(entry.first_at), _moment(entry.last_at))


def _of_file(bucket: Bucket, place: Layout, file: File, reach: Reach) -> _Segment:
    if reach.is_open:
        return _Segment(file.segment, file, None, None)
    told = proofs.told(place, file.segment) if packed.is_packed(Path(file.name)) else None
    if told:
        begun, ended = _moment(told.get("opened_at")), _moment(told.get("last_occurred_at"))
        return _Segment(file.segment, file, begun, ended)
    head = bucket.read(file, 0, _HEAD_BYTES)
    (opening,) = openings.read([bucket.keep(file, head)])
    return _Segment(file.segment, file, _moment(opening.first_at), None, head)


def _moment(text: object) -> datetime | None:
    return windows.instant(str(text), windows.named_zone("UTC")) if text else None


def _keep(bucket: Bucket, one: _Segment, file: File, reach: Reach) -> dict[str, int]:
    """Fetch a segment, or the lines of the asked time; up to where its writer is left out."""
    head = one.head
    if len(head) == file.size:
        bucket.keep(file, head)
        return {}
    if packed.is_packed(Path(file.name)) or reach.is_open:
        bucket.keep(file, head + bucket.read(file, len(head), file.size - len(head)))
        return {}
    first = head.find(b"\n") + 1
    start = _edge(bucket, file, first, reach.since, before=True) if reach.since else first
    end = _edge(bucket, file, start, reach.until, before=False) if reach.until else file.size
    part = bucket.read(file, start, end - start)
    bucket.keep(file, head[:first] + part)
    seq = _fields(part).get("seq")
    return {one.name[:8]: seq - 1} if start > first and isinstance(seq, int) else {}


def _edge(bucket: Bucket, file: File, first: int, moment: datetime, *, before: bool) -> int:
    """Where the lines of ``moment`` begin in a plain segment, at the start of a line, about a piece
    too early where ``before``, else too late. Where a piece tells nothing, more is kept."""
    low, high, started = first, file.size, first
    while high - low > PIECE_BYTES:
        middle = (low + high) // 2
        at, occurred = _line_at(bucket, file, middle)
        is_later = before if occurred is None else occurred >= moment
        if is_later:
            high = middle
        else:
            low, started = middle, at or started
    return started if before else _line_at(bucket, file, high)[0] or file.size


def _line_at(bucket: Bucket, file: File, offset: int) -> tuple[int | None, datetime | None]:
    """Where the first line behind ``offset`` begins, and its time."""
    piece = bucket.read(file, offset, PIECE_BYTES)
    begun = piece.find(b"\n") + 1
    if not begun:
        return None, None
    return offset + begun, _moment(_fields(piece[begun:]).get("occurred_at"))


def _fields(lines: bytes) -> dict[str, Any]:
    """The fields of the first of some lines; none where it is no whole event."""
    try:
        found = orjson.loads(lines.partition(b"\n")[0])
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _left_out(segments: Sequence[_Segment], kept: Sequence[_Segment]) -> dict[str, int]:
    """Up to where the lines of a writer stay in the bucket, since their time was not asked for."""
    names = {one.name for one in kept}
    left: dict[str, int] = {}
    for one in kept:
        writer = one.name[:8]
        earlier = [
            other for other in segments if other.name[:8] == writer and other.name < one.name
        ]
        if writer not in left and earlier and not any(other.name in names for other in earlier):
            left[writer] = first_seq(one.name) - 1
    return left


def _forget(place: Layout, kept: set[str]) -> None:
    """Take away what tells of segments that stay where they are: they are no loss of the log."""
    for path in place.log.iterdir():
        stem = path.name.removesuffix(MANIFEST_SUFFIX).removesuffix(packed.SUFFIX)
        named = stem if stem.endswith(SEGMENT_SUFFIX) else stem + SEGMENT_SUFFIX
        if path.name not in _SMALL and named not in kept:
            path.unlink()
