"""Archives: gzip (all its members), Zstandard and zip, one in another at most three deep.

What an archive unpacks to is bounded, so that a bomb costs no disk, and an entry that would leave
its folder refuses the whole archive: nothing is ever written under a name that an archive gives.
"""

import gzip
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import BinaryIO, cast

from tallybook import packed
from tallybook.errors import BadInput, IncompleteInput
from tallybook.ops.exports import kinds
from tallybook.ops.exports.parts import Part
from tallybook.ops.exports.profile import Limits

_CHUNK = 1 << 20
_DEEP = 3
_ENTRIES = 10_000
_FREE = 64 * 1024 * 1024
_DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile, packed.Unreadable)


class Unpacker:
    """Unpacks the parts of one export into ``aside``, under one bound for all of them."""

    def __init__(self, aside: Path, limits: Limits) -> None:
        self._aside, self._limits = aside, limits
        self._poured = 0
        self._files = 0

    def unpacked(self, part: Part, depth: int = 0) -> Iterator[Part]:
        """The part itself, or what is packed in it. Raises BadInput for an archive that is no
        honest one and IncompleteInput for one that is damaged or cut."""
        with part.path.open("rb") as file:
            head = file.read(4)
        if head.startswith(kinds.ZIP) and kinds.is_workbook(part.path):
            self._weigh(part, _entries(part))
            yield part
        elif not head.startswith((kinds.GZIP, kinds.ZSTD, *kinds.ZIP)):
            yield part
        elif depth == _DEEP:
            raise BadInput(
                f"{part.name} is an archive in an archive in an archive; unpack it first"
            )
        else:
            for inner in self._opened(part, head):
                yield from self.unpacked(inner, depth + 1)

    def _opened(self, part: Part, head: bytes) -> Iterator[Part]:
        try:
            if head.startswith(kinds.ZIP):
                yield from self._zip(part)
            elif head.startswith(kinds.GZIP):
                with gzip.open(part.path, "rb") as source:
                    yield self._poured_from(cast("BinaryIO", source), part, part.name)
            else:
                with packed.opened(part.path) as source:
                    yield self._poured_from(source, part, part.name)
        except _DAMAGE as error:
            raise IncompleteInput(f"{part.name} is a damaged or cut archive: {error}") from error

    def _zip(self, part: Part) -> Iterator[Part]:
        entries = _entries(part)
        self._weigh(part, entries)
        with zipfile.ZipFile(part.path) as archive:
            for entry in entries:
                with archive.open(entry) as source:
                    name = f"{part.name}/{entry.filename}" if len(entries) > 1 else entry.filename
                    yield self._poured_from(cast("BinaryIO", source), part, name)

    def _weigh(self, part: Part, entries: list[zipfile.ZipInfo]) -> None:
        """What a zip archive says of itself already shows the simplest bombs."""
        self._bound(part, sum(entry.file_size for entry in entries))

    def _poured_from(self, source: BinaryIO, part: Part, name: str) -> Part:
        self._files += 1
        target = self._aside / f"unpacked-{self._files}"
        target.parent.mkdir(parents=True, exist_ok=True)
        alone = 0
        with target.open("wb") as file:
            while chunk := source.read(_CHUNK):
                alone += len(chunk)
                self._poured += len(chunk)
                self._bound(part, alone)
                file.write(chunk)
        return Part(name, target)

    def _bound(self, part: Part, size: int) -> None:
        """Raise BadInput where an archive grows beyond what it may."""
        limits = self._limits
        if max(size, self._poured) > limits.unpacked:
            raise BadInput(
                f"{part.name} unpacks to more than {limits.unpacked:,} bytes; "
                "where it is honest, raise unpacked in [limits] of the profile"
            )
        if size > _FREE and size > limits.ratio * part.path.stat().st_size:
            raise BadInput(
                f"{part.name} unpacks to more than {limits.ratio} times its size, as a zip bomb "
                "does; where it is honest, raise ratio in [limits] of the profile"
            )


def _entries(part: Part) -> list[zipfile.ZipInfo]:
    """The files in a zip archive. Raises BadInput where one may not be unpacked."""
    try:
        with zipfile.ZipFile(part.path) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    except _DAMAGE as error:
        raise IncompleteInput(f"{part.name} is a damaged or cut archive: {error}") from error
    except (NotImplementedError, ValueError, OSError) as error:
        raise BadInput(f"{part.name} is a zip archive that cannot be read: {error}") from error
    if len(entries) > _ENTRIES:
        raise BadInput(f"{part.name} holds {len(entries):,} files; {_ENTRIES:,} are the most")
    for entry in entries:
        _require_honest(part, entry)
    hidden = ("__MACOSX/", ".")
    kept = [entry for entry in entries if not entry.filename.startswith(hidden)]
    if not kept:
        raise BadInput(f"{part.name} is an archive without a file")
    return kept


def _require_honest(part: Part, entry: zipfile.ZipInfo) -> None:
    name = entry.filename
    steps = PurePosixPath(name.replace("\\", "/"))
    if steps.is_absolute() or ".." in steps.parts or PureWindowsPath(name).drive:
        raise BadInput(f"{part.name}: its entry {name!r} would leave the folder; nothing was read")
    if entry.flag_bits & 1:
        raise BadInput(f"{part.name}: its entry {name!r} is password-protected; unpack it first")
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise BadInput(f"{part.name}: its entry {name!r} is packed in another way than deflate")
