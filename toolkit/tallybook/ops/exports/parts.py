"""The files of an export: one file, a pattern, a folder of parts or a place in a bucket."""

import glob
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tallybook.errors import BadInput, IncompleteInput
from tallybook.ops import storage

_SIDE = (".crc", ".md5", ".sha256", ".sha1", ".checksum", ".asc", ".sig")
_UNFINISHED = (".part", ".crdownload", ".tmp", ".partial", ".filepart")


@dataclass(frozen=True, slots=True)
class Part:
    """A file of an export: ``name`` as people know it, ``path`` where its bytes lie."""

    name: str
    path: Path

    @property
    def bare(self) -> str:
        """The name in small letters and without the endings of its packing."""
        name = self.name.lower()
        while name.endswith((".gz", ".zst", ".zip")):
            name = name.rpartition(".")[0]
        return name


@dataclass(slots=True)
class Found:
    """What stands at a place: the parts, and beside them files that say something about them."""

    source: str
    parts: list[Part]
    beside: list[Part] = field(default_factory=list)

    def named(self, ending: str) -> list[Part]:
        """The files, parts or not, whose path ends so."""
        return [part for part in (*self.parts, *self.beside) if part.name.endswith(ending)]


def find(given: str | Path, aside: Path) -> Found:
    """The files at ``given``; those of a bucket are fetched into ``aside``.

    Raises BadInput where there is none.
    """
    text = str(given)
    if "://" in text:
        return _sorted_out(text, _fetched(text, aside))
    path = Path(given)
    if path.is_dir():
        return _sorted_out(text, _below(path))
    if path.is_file():
        return Found(text, [Part(path.name, path)], list(_sidecars(path)))
    if any(mark in text for mark in "*?["):
        matched = [Path(name) for name in sorted(glob.glob(text))]  # noqa: PTH207 - an absolute pattern
        files = [Part(str(match), match) for match in matched if match.is_file()]
        if not files:
            raise BadInput(f"cannot read {text}: no file has such a name")
        return _sorted_out(text, files)
    if path.exists():
        raise BadInput(f"cannot read {text}: it is no file; pipe it into a file first")
    raise BadInput(f"cannot read {text}: there is no such file")


def _sidecars(path: Path) -> Iterator[Part]:
    for ending in _SIDE:
        beside = path.with_name(path.name + ending)
        if beside.is_file():
            yield Part(beside.name, beside)
    for ending in ("_schema.json", ".schema.json"):
        beside = path.with_name(path.name.partition(".")[0] + ending)
        if beside.is_file():
            yield Part(beside.name, beside)


def _below(folder: Path) -> list[Part]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return [Part(str(path.relative_to(folder)), path) for path in files]


def _sorted_out(source: str, files: list[Part]) -> Found:
    """Files that a program keeps for itself, or that speak of others, are no parts."""
    found = Found(source, [])
    for part in files:
        name = part.name.rpartition("/")[2]
        if name.lower().endswith(_UNFINISHED):
            raise _unfinished(source, part)
        hidden = name.startswith((".", "_")) or "/_temporary/" in f"/{part.name}"
        aside = hidden or name.lower().endswith(_SIDE) or name.upper().endswith("SUMS")
        (found.beside if aside else found.parts).append(part)
    if not found.parts:
        raise BadInput(f"cannot read {source}: there is no file of an export in it")
    return found


def _unfinished(source: str, part: Part) -> IncompleteInput:
    return IncompleteInput(f"{source}: {part.name} is a download that has not ended; fetch it anew")


def _fetched(url: str, aside: Path) -> list[Part]:
    """The files below a place in a bucket, fetched."""
    files, root = storage.file_system(url, {})
    root = root.rstrip("/")
    target = aside / "fetched"
    found: list[Part] = []
    for path in storage.listed(url, files, root):
        name = path.removeprefix(root).strip("/") or path.rpartition("/")[2]
        place = target / str(len(found))
        storage.fetch(url, files, path, place)
        found.append(Part(name, place))
    return found


@dataclass(frozen=True, slots=True)
class Stamped:
    """A file that is read more than once, and what tells that it is still the same."""

    path: Path
    stamp: tuple[int, int]

    @classmethod
    def of(cls, path: Path) -> Self:
        """The file as it is now."""
        return cls(path, _stamp(path))

    def require_same(self) -> None:
        """Raise IncompleteInput where the file was written to since."""
        if not self.path.exists() or _stamp(self.path) != self.stamp:
            raise IncompleteInput(f"{self.path} was changed while it was read; compare again once "
                                  "nothing writes to it")  # fmt: skip


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns
