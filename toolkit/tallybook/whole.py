"""Files that are whole or not there: written beside their place, put on disk, then renamed in."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tallybook.layout import FILE_MODE

_RUST = re.compile(r"\(os error ([0-9]+)\)")  # Polars: "File too large (os error 27)", no errno


@contextmanager
def written(path: Path) -> Iterator[Path]:
    """The file to write instead of ``path``, whose place it takes when all went well.

    It is there, empty and ours alone. Whatever goes wrong, ``path`` is as it was and nothing stays
    beside it; an OSError that names no file names ``path``.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        os.close(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, FILE_MODE))
        yield aside
        aside.chmod(FILE_MODE)  # of a writer that made a file of its own
        sync(aside)
        aside.replace(path)
    except OSError as error:
        number = error.errno or int((_RUST.search(str(error)) or [0, 0])[1])
        raise OSError(number, os.strerror(number) if number else str(error), str(path)) from error
    finally:
        aside.unlink(missing_ok=True)


def put(path: Path, content: bytes) -> Path:
    """Make ``content`` that of ``path``."""
    with written(path) as aside:
        aside.write_bytes(content)
    return path


def append(fd: int, text: bytes) -> None:
    """Put ``text`` behind the last line of a file, on disk: what does not fit is taken back. A last
    line that was torn is closed before."""
    size = os.fstat(fd).st_size
    torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
    whole = b"\n" * torn + text
    try:
        if os.write(fd, whole) < len(whole):
            raise OSError(28, "No space left on device")
    except OSError:
        os.ftruncate(fd, size)
        raise
    os.fsync(fd)


def sync(path: Path) -> None:
    """Put a file or a folder on disk."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
