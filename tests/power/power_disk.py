"""A disk that may lose, at a power cut, all that was not synced.

A name (create, rename, unlink, mkdir) counts once its folder is synced, bytes once their file is.
What was not synced may be there all the same, in part and in any order: a cut says what is kept.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from power_recording import Step

Writes = list[tuple[int, bytes | None]]
Left = dict[str, bytes | None]
"""What a cut leaves: the bytes of each file by its path; None is a folder."""


@dataclass(eq=False)
class File:
    """Bytes on disk and the writes since the last sync; a write of None cuts at its offset."""

    is_folder: bool = False
    synced: bytes = b""
    size: int = 0
    pending: Writes = field(default_factory=list)

    def write(self, offset: int, data: bytes) -> None:
        self.pending.append((offset, data))
        self.size = max(self.size, offset + len(data))

    def cut(self, size: int) -> None:
        self.pending.append((size, None))
        self.size = size

    def sync(self) -> None:
        self.synced = self.content(self.pending)
        self.pending = []

    def content(self, kept: Writes) -> bytes:
        data = bytearray(self.synced)
        for offset, written in kept:
            if len(data) < offset:
                data += bytes(offset - len(data))
            if written is None:
                del data[offset:]
            else:
                data[offset : offset + len(written)] = written
        return bytes(data)


@dataclass(frozen=True, eq=False)
class Naming:
    """A change of names that is not on disk yet: ``gone`` goes, ``path`` comes."""

    folder: str
    path: str = ""
    gone: str = ""
    file: File | None = None


class Disk:
    """The disk after each step. Folders are files without bytes."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.names: dict[str, File] = {root: File(is_folder=True)}
        self.synced: dict[str, File] = dict(self.names)
        self.pending: list[Naming] = []
        self._fds: dict[str, File] = {}

    def do(self, step: Step) -> None:
        """Let ``step`` happen."""
        getattr(self, f"_{step.kind}")(step)

    def _create(self, step: Step) -> None:
        if step.path not in self.names:
            self._name(Naming(_folder(step.path), step.path, file=File()))

    def _mkdir(self, step: Step) -> None:
        self._name(Naming(_folder(step.path), step.path, file=File(is_folder=True)))

    def _open(self, step: Step) -> None:
        if step.path in self.names:
            self._fds[step.other] = self.names[step.path]

    def _rename(self, step: Step) -> None:
        assert _folder(step.path) == _folder(step.other), "a rename between folders"
        file = self.names[step.path]
        self._name(Naming(_folder(step.path), step.other, step.path, file))

    def _unlink(self, step: Step) -> None:
        self._name(Naming(_folder(step.path), gone=step.path))

    def _rmdir(self, step: Step) -> None:
        self._unlink(step)

    def _name(self, naming: Naming) -> None:
        self.pending.append(naming)
        _apply(self.names, naming)

    def _write(self, step: Step) -> None:
        self._fds[step.other].write(step.offset, step.data)

    def _append(self, step: Step) -> None:
        file = self._fds[step.other]
        file.write(file.size, step.data)

    def _copy(self, step: Step) -> None:
        source = self._fds[step.path]
        data = source.content(source.pending)[step.start : step.start + step.size]
        self._fds[step.other].write(step.offset, data)

    def _truncate(self, step: Step) -> None:
        self.names[step.path].cut(step.offset)

    def _ftruncate(self, step: Step) -> None:
        file = self._fds[step.other]
        if step.offset < file.size:
            file.cut(step.offset)

    def _sync(self, step: Step) -> None:
        file = self._fds[step.other]
        file.sync()
        if file.is_folder:
            for naming in [item for item in self.pending if item.folder == step.path]:
                _apply(self.synced, naming)
                self.pending.remove(naming)

    def _close(self, step: Step) -> None:
        self._fds.pop(step.other, None)

    def _ack(self, step: Step) -> None:
        pass

    def cuts(self, dice: random.Random) -> Iterator[tuple[str, Left]]:
        """What a power cut now may leave: names and bytes, with what was kept in words."""
        yield "what was synced alone", self._left([], _none)
        yield "all", self._left(self.pending, _all)
        for lost in self.pending:
            kept = [item for item in self.pending if item is not lost]
            yield f"all but {lost.path or lost.gone}", self._left(kept, _all)
            yield f"of names {lost.path or lost.gone} alone", self._left([lost], _all)
        for number in range(3):
            kept = [item for item in self.pending if dice.random() < 0.5]
            yield f"some {number}", self._left(kept, lambda file: _some(file, dice))
        yield "a last write with a hole", self._left(self.pending, lambda file: _holed(file, dice))
        yield "a torn last write", self._left(self.pending, lambda file: _torn(file, dice))

    def _left(self, kept: list[Naming], choose: Choice) -> Left:
        names = dict(self.synced)
        for naming in kept:
            _apply(names, naming)
        found: Left = {}
        for path, file in names.items():
            if all(above in names for above in _above(path, self.root)):
                found[path] = None if file.is_folder else file.content(choose(file))
        return found


PAGE = 4096
LONGEST_HEAD = 200
"""Bytes in which a line says when it was written."""
Choice = Callable[[File], Writes]


def _apply(names: dict[str, File], naming: Naming) -> None:
    if naming.gone:
        names.pop(naming.gone, None)
    if naming.file is not None:
        names[naming.path] = naming.file


def _folder(path: str) -> str:
    return str(Path(path).parent)


def _above(path: str, root: str) -> list[str]:
    return [str(part) for part in Path(path).parents if str(part).startswith(root)]


def _none(file: File) -> Writes:
    return []


def _all(file: File) -> Writes:
    return file.pending


def _some(file: File, dice: random.Random) -> Writes:
    return [item for item in file.pending if dice.random() < 0.5]


def _holed(file: File, dice: random.Random) -> Writes:
    """All writes, of the last one all pages but one: the disk writes pages in any order."""
    offset, data = file.pending[-1] if file.pending else (0, b"")
    written = data or b""
    pages = _pages(offset, len(written))
    if not pages:
        return file.pending
    page = dice.choice(pages)
    start, end = max(page - offset, 0), page + PAGE - offset
    kept = [(offset, written[:start]), (offset + end, written[end:])]
    return [*file.pending[:-1], *kept]


def _pages(offset: int, size: int) -> list[int]:
    """Where the pages of a write begin, but the last, and but those of which no reader can tell
    that nothing in them was acknowledged."""
    first = offset // PAGE * PAGE
    later = range(first + PAGE, (offset + size - 1) // PAGE * PAGE, PAGE)
    begins = [first] if size > PAGE and offset % 512 else []
    return begins + [page for page in later if page - offset > LONGEST_HEAD]


def _torn(file: File, dice: random.Random) -> Writes:
    """All writes, of the last one a part from its beginning on."""
    if not file.pending or file.pending[-1][1] is None:
        return file.pending
    offset, data = file.pending[-1]
    return [*file.pending[:-1], (offset, (data or b"")[: dice.randrange(len(data or b"x"))])]
