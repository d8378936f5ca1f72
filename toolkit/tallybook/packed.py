"""Files of text that may lie compressed: both halves read a closed segment through this.

``<name>`` and ``<name>.zst`` are the same text; an offset is always one in the text.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

SUFFIX = ".zst"
_LEVEL = 6
_CHUNK = 1 << 20


class Unreadable(ValueError):
    """The archive is damaged: what comes after this place cannot be read."""


def is_packed(path: Path) -> bool:
    """Whether ``path`` names an archive."""
    return path.suffix == SUFFIX


def packed(path: Path) -> Path:
    """Where the archive of a plain file lies."""
    return path.with_name(path.name + SUFFIX)


@contextmanager
def reading(path: Path) -> Iterator[BinaryIO]:
    """The text at ``path``, also where it was compressed since ``path`` was listed.

    Raises FileNotFoundError where it is there in neither form, and Unreadable, also while it is
    read, where an archive is damaged.
    """
    file = _opened(path)
    try:
        with file:
            yield file
    except (zstd.ZstdError, EOFError) as error:
        raise Unreadable(f"damaged archive: {error}") from None


def _opened(path: Path) -> BinaryIO:
    try:
        return _open(path)
    except FileNotFoundError:
        if is_packed(path):
            raise
        return _open(packed(path))


def _open(path: Path) -> BinaryIO:
    if is_packed(path):
        return cast("BinaryIO", zstd.ZstdFile(path, "rb"))
    return path.open("rb")


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The text of any Zstandard file, whatever its name; raises Unreadable where it is damaged."""
    try:
        with zstd.ZstdFile(path, "rb") as archive:
            yield cast("BinaryIO", archive)
    except (zstd.ZstdError, EOFError) as error:
        raise Unreadable(f"damaged archive: {error}") from None


def pack(source: BinaryIO, target: BinaryIO) -> None:
    """Write the archive of ``source`` to ``target``."""
    with zstd.ZstdFile(target, "wb", level=_LEVEL) as archive:
        while chunk := source.read(_CHUNK):
            archive.write(chunk)


def unpack(path: Path, target: BinaryIO) -> None:
    """Write the text of any Zstandard file to ``target``; raises Unreadable where it is damaged."""
    with opened(path) as archive:
        for chunk in chunks(archive):
            target.write(chunk)


def chunks(file: BinaryIO) -> Iterator[bytes]:
    """The text of an open file in large pieces."""
    while chunk := file.read(_CHUNK):
        yield chunk
