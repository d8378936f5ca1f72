"""The work folder of a demo: made anew, and nothing of somebody else's is ever replaced."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tallybook.errors import BadInput

MARK = "demo.json"


@dataclass(frozen=True, slots=True)
class Folder:
    """Where things lie in a demo's work folder."""

    root: Path

    @property
    def book(self) -> Path:
        """The book."""
        return self.root / "book"

    @property
    def cloud(self) -> Path:
        """The cloud's own folder."""
        return self.root / "cloud"

    @property
    def exports(self) -> Path:
        """What the cloud exported."""
        return self.cloud / "exports"

    @property
    def processes(self) -> Path:
        """What the processes printed."""
        return self.root / "processes"

    @property
    def out(self) -> Path:
        """What the runbooks left."""
        return self.root / "out"

    @property
    def planted(self) -> Path:
        """The ledgers of injector, cloud and killer: {kind: [codes]}."""
        return self.root / "planted.json"

    @property
    def report(self) -> Path:
        """The page that leads to the four reports."""
        return self.root / "report.html"


@contextmanager
def fresh(root: Path, settings: dict[str, Any]) -> Iterator[Folder]:
    """An empty work folder at ``root``, held until the end; an earlier demo's is replaced.

    Raises BadInput where anything else is in it, or a demo is running in it.
    """
    if root.exists() and not root.is_dir():
        raise BadInput(f"--dir {root} is a file")
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        holder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise BadInput(f"--dir {root}: cannot be made: {error.strerror}") from None
    try:
        _hold(holder, root)
        yield _made(Folder(root.absolute()), settings)
    finally:
        os.close(holder)


def _hold(holder: int, root: Path) -> None:
    try:
        fcntl.flock(holder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BadInput(
            f"--dir {root}: a demo is running there; wait for it or name another folder"
        ) from None


def _made(place: Folder, settings: dict[str, Any]) -> Folder:
    if any(place.root.iterdir()):
        _empty(place.root)
    (place.root / MARK).write_text(json.dumps(settings) + "\n", "utf-8")
    for folder in (place.cloud, place.exports, place.processes, place.out):
        folder.mkdir(mode=0o700)
    return place


def _empty(root: Path) -> None:
    """Empty an earlier demo's folder, its mark last: an interrupted emptying can be repeated."""
    mark = root / MARK
    if not mark.is_file() or mark.is_symlink():
        raise BadInput(
            f"--dir {root} is not empty and no earlier demo's; name another folder with --dir"
        )
    for path in root.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path != mark:
            path.unlink()
