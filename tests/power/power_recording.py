"""A process recorded by strace: what it wrote, synced, renamed, unlinked and acknowledged."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tallybook.testing import Fault, crash_at, environment

SCRIPT = Path(__file__).parent / "power_script.py"
SYNCING = b"syncing "
_FOLLOWED = (
    "openat,write,pwrite64,fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat,ftruncate,"
    "truncate,mkdir,mkdirat,rmdir,lseek,sendfile,close"
)
_FORBIDDEN = (
    "writev,pwritev,pwritev2,copy_file_range,fallocate,link,linkat,symlink,symlinkat,dup,dup2,dup3"
)
_CALL = re.compile(r"(\w+)\((.*)\) += (-?\d+)")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happened, in order; ``name`` is that of a sync."""

    kind: str
    path: str = ""
    other: str = ""
    offset: int = 0
    data: bytes = b""
    start: int = 0
    size: int = 0
    name: str = ""


def record(root: Path, trace: Path) -> list[Step]:
    """Run the script on a book at ``root``; what it did below the parent's parent of ``root``.

    Before that two processes are killed: as the book is made, and as its first segment has bytes;
    and one opens the book and changes nothing.
    """
    found = []
    for faults, code, what in (
        ([crash_at("swap_renamed")], -9, "live"),
        ([crash_at("after_append")], -9, "live"),
        ([], 0, "look"),
        ([], 0, "live"),
    ):
        found += record_one(root, trace, what, faults, code)
    return found


def record_one(
    root: Path, trace: Path, what: str, faults: Sequence[Fault] = (), code: int = 0
) -> list[Step]:
    """Run one part of the script, which ends with ``code``."""
    command = ["strace", "-o", str(trace), "-xx", "-s", "4194304", "-e"]
    command += [f"trace={_FOLLOWED},{_FORBIDDEN}", sys.executable, str(SCRIPT), str(root), what]
    env = {**os.environ, **environment(*faults)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr
    return list(_named(_Reader(str(root.parent.parent)).steps(trace)))


def _named(steps: Iterator[Step]) -> Iterator[Step]:
    """The steps, each sync with its name: the script said it right before."""
    name = ""
    for step in steps:
        if step.kind == "ack" and step.data.startswith(SYNCING):
            name = step.data.removeprefix(SYNCING).strip().decode()
        elif step.kind == "sync":
            yield replace(step, name=name)
        else:
            yield step


class _Reader:
    """Turns calls into steps; follows which descriptor is which file."""

    def __init__(self, disk: str) -> None:
        self._disk = disk
        self._open: dict[int, str] = {}
        self._appends: set[int] = set()
        self._at: dict[int, int] = {}

    def steps(self, trace: Path) -> Iterator[Step]:
        for line in trace.read_text("ascii").splitlines():
            call = _CALL.match(line)
            if call and int(call[3]) >= 0:
                yield from self._step(call[1], call[2], int(call[3]))

    def _step(self, name: str, words: str, answer: int) -> Iterator[Step]:
        texts = [_bytes(text) for text in _TEXT.findall(words)]
        paths = [text.decode() for text in texts if self._is_ours(text)]
        numbers = [int(word) for word in re.findall(r"(?:^|, )(-?\d+)(?=,|$)", words)]
        if name == "openat":
            yield from self._opened(paths, words, answer)
        elif name in ("rename", "renameat", "renameat2"):
            yield from [Step("rename", *paths)] if paths else []
        elif name in ("unlink", "unlinkat", "mkdir", "mkdirat", "rmdir", "truncate"):
            size = numbers[-1] if name == "truncate" else 0
            yield from [Step(name.removesuffix("at"), paths[0], offset=size)] if paths else []
        elif numbers and (numbers[0] in self._open or numbers[0] == 1):
            self._at[numbers[0]] = answer if name == "lseek" else self._at.get(numbers[0], 0)
            yield from (
                self._on_descriptor(name, numbers, texts, words, answer) if name != "lseek" else []
            )

    def _opened(self, paths: list[str], words: str, fd: int) -> Iterator[Step]:
        self._open.pop(fd, None)
        if not paths:
            return
        self._open[fd], self._at[fd] = paths[0], 0
        self._appends.discard(fd)
        if "O_APPEND" in words:
            self._appends.add(fd)
        if "O_CREAT" in words:
            yield Step("create", paths[0])
        if "O_TRUNC" in words:
            yield Step("truncate", paths[0])
        yield Step("open", paths[0], other=str(fd))

    def _on_descriptor(
        self, name: str, numbers: list[int], texts: list[bytes], words: str, answer: int
    ) -> Iterator[Step]:
        fd = numbers[0]
        if fd == 1:
            yield from [Step("ack", data=texts[0])] if name == "write" else []
            return
        does: dict[str, Callable[[], Step]] = {
            "write": lambda: self._written(fd, texts[0]),
            "pwrite64": lambda: Step("write", "", str(fd), numbers[-1], texts[0]),
            "sendfile": lambda: self._copied(words, answer, fd),
            "ftruncate": lambda: Step("ftruncate", "", str(fd), numbers[-1]),
            "fsync": lambda: Step("sync", self._open[fd], str(fd)),
            "fdatasync": lambda: Step("sync", self._open[fd], str(fd)),
            "close": lambda: Step("close", self._open.pop(fd), str(fd)),
        }
        assert name in does, f"{name} on {self._open[fd]} is not followed yet: teach this reader"
        yield does[name]()

    def _copied(self, words: str, size: int, fd: int) -> Step:
        offset, self._at[fd] = self._at[fd], self._at[fd] + size
        source = int(words.split(", ")[1])
        start = int(re.findall(r"\[(\d+)\]", words)[0])
        return Step("copy", str(source), str(fd), offset, b"", start, size)

    def _written(self, fd: int, data: bytes) -> Step:
        if fd in self._appends:
            return Step("append", "", str(fd), 0, data)
        offset = self._at[fd]
        self._at[fd] += len(data)
        return Step("write", "", str(fd), offset, data)

    def _is_ours(self, text: bytes) -> bool:
        return text.startswith(self._disk.encode() + b"/") or text == self._disk.encode()


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))
