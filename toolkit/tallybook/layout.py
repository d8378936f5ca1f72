"""Where things lie: in a book, beside a clone, in the wheel.

book/
  book.toml           settings
  log/                writer.json and the segments <writer8>-<first seq>.ndjson
  state.db            fold of the log: jobs, cache, topics, position
  wake                touched where there is something to claim
  checkpoints/  metrics/  heartbeats/  plans/  profiles/
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tallybook.errors import BadInput

SEGMENT_SUFFIX = ".ndjson"
FOLDER_MODE = 0o700
FILE_MODE = 0o600


@dataclass(frozen=True, slots=True)
class Layout:
    """The places of one book."""

    root: Path

    @property
    def log(self) -> Path:
        """The folder of the log, which is also what the lock is taken on."""
        return self.root / "log"

    @property
    def writer(self) -> Path:
        """Who writes this log folder."""
        return self.log / "writer.json"

    @property
    def state(self) -> Path:
        """The SQLite file with the folded state."""
        return self.root / "state.db"

    @property
    def settings(self) -> Path:
        """The settings file of the book."""
        return self.root / "book.toml"

    @property
    def checkpoints(self) -> Path:
        """Whole states with their position."""
        return self.root / "checkpoints"

    @property
    def metrics(self) -> Path:
        """Rolling metrics, a CSV a day."""
        return self.root / "metrics"

    @property
    def latest(self) -> Path:
        """The last metrics, and the high-water mark of the log."""
        return self.metrics / "latest.json"

    @property
    def heartbeats(self) -> Path:
        """A file a living worker."""
        return self.root / "heartbeats"

    @property
    def wake(self) -> Path:
        """An empty file, opened and closed by who has jobs for waiting workers."""
        return self.root / "wake"

    @property
    def plans(self) -> Path:
        """Repair plans."""
        return self.root / "plans"

    @property
    def profiles(self) -> Path:
        """How to read exports."""
        return self.root / "profiles"

    def segments(self) -> list[Path]:
        """The segments, sorted by name."""
        return sorted(self.log.glob(f"*{SEGMENT_SUFFIX}"))

    def segment(self, writer: str, first_seq: int) -> Path:
        """The path of the segment of ``writer`` that begins with ``first_seq``."""
        return self.log / f"{writer[:8]}-{first_seq:012d}{SEGMENT_SUFFIX}"

    def make(self) -> None:
        """Create the folders of a book, readable by their owner alone."""
        for folder in (self.root, self.log, self.metrics, self.heartbeats):
            folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)


def is_book(path: Path) -> bool:
    """Whether ``path`` is a book: a folder with ``log/``, even when all else is lost."""
    return (path / "log").is_dir()


def require_book(path: Path) -> Layout:
    """The layout of an existing book; raises BadInput that says what to do."""
    if is_book(path):
        return Layout(path)
    if not path.exists():
        found = "there is nothing at that path"
    elif not path.is_dir():
        found = "that path is a file"
    else:
        found = "that folder has no log/ in it"
    raise BadInput(
        f"no book at {path}: {found}; name one with --book DIR or TALLYBOOK_BOOK, "
        "or make one with 'tallybook enqueue'"
    )


def find_book(explicit: str | Path | None = None) -> Path:
    """``explicit``, else TALLYBOOK_BOOK, else ``./book``; it need not exist."""
    return Path(explicit or os.environ.get("TALLYBOOK_BOOK") or "book")


def find_book_or_sample(explicit: str | Path | None = None) -> Path:
    """As ``find_book``; where neither is named and ``./book`` is none, the sample book."""
    if explicit or os.environ.get("TALLYBOOK_BOOK") or is_book(Path("book")):
        return find_book(explicit)
    here = Path.cwd()
    for folder in (here, *here.parents):
        if is_book(folder / "data-samples" / "book"):
            return folder / "data-samples" / "book"
    return carried("data-samples") / "book"


def carried(name: str) -> Path:
    """The folder ``name`` (notebooks, runbooks, data-samples) in the wheel or in the clone."""
    package = Path(__file__).parent
    inside = package / "carried" / name
    return inside if inside.is_dir() else package.parent.parent / name


def out_dir(explicit: str | Path | None, node_id: str) -> Path:
    """Where ops and runbooks write: ``--out``, else ``./tallybook-out/<node_id>``."""
    return Path(explicit) if explicit else Path("tallybook-out") / node_id
