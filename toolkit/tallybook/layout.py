"""Where things lie: in a book, beside a clone, in the wheel.

book/
  book.toml           settings
  log/                writer.json, anchor.json, the segments <writer8>-<first seq>.ndjson;
                      closed ones become <name>.zst with <stem>.manifest.json
                      (of an imported book: imported.json and a Parquet file of events)
  state.db            fold of the log: jobs, cache, topics, position
  cache.json          the cache again, where the settings ask for it
  wake                touched where there is something to claim
  checkpoints/  metrics/  heartbeats/  plans/  profiles/
  rebuilt/<time>/     of each rebuild: its certificate, and the state that it set aside
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tallybook import packed
from tallybook.errors import BadInput

SEGMENT_SUFFIX = ".ndjson"
MANIFEST_SUFFIX = ".manifest.json"
NODE_MARK = "node="
FOLDER_MODE = 0o700
FILE_MODE = 0o600
_BUCKET = re.compile(r"^(s3|gs|gcs):/+")


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
    def anchor(self) -> Path:
        """Up to where the log was pruned, and what holds the chain there."""
        return self.log / "anchor.json"

    @property
    def state(self) -> Path:
        """The SQLite file with the folded state."""
        return self.root / "state.db"

    @property
    def cache_file(self) -> Path:
        """The cache as one JSON file, where the settings ask for it."""
        return self.root / "cache.json"

    @property
    def settings(self) -> Path:
        """The settings file of the book."""
        return self.root / "book.toml"

    @property
    def checkpoints(self) -> Path:
        """Whole states with their position."""
        return self.root / "checkpoints"

    @property
    def rebuilt(self) -> Path:
        """A folder a rebuild: its certificate, and the state that it set aside."""
        return self.root / "rebuilt"

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

    @property
    def imported(self) -> Path:
        """What was imported, in a book of another system's log: events lie beside it as Parquet."""
        return self.log / "imported.json"

    @property
    def unreadable(self) -> Path:
        """The rows that an import could not read."""
        return self.root / "unreadable.ndjson"

    def segments(self) -> list[Path]:
        """The file of each segment that was not pruned, sorted by name.

        Where a segment lies there both plain and compressed, the archive counts once its manifest
        is there.
        """
        files = {path.name for path in self.log.iterdir()}
        names = {name.removesuffix(packed.SUFFIX) for name in files if not name.startswith(".")}
        ends = pruned_ends(self)
        return [
            self.log / _counting(name, files)
            for name in sorted(names)
            if name.endswith(SEGMENT_SUFFIX) and first_seq(name) > ends.get(name[:8], -1)
        ]

    def manifest(self, segment: str) -> Path:
        """The manifest of the segment of that name."""
        return self.log / (segment.removesuffix(SEGMENT_SUFFIX) + MANIFEST_SUFFIX)

    def checkpoint(self, writer: str, seq: int) -> Path:
        """The checkpoint of the state after ``seq`` of ``writer``."""
        return self.checkpoints / f"{writer[:8]}-{seq:012d}.db"

    def segment(self, writer: str, first_seq: int) -> Path:
        """The path of the segment of ``writer`` that begins with ``first_seq``."""
        return self.log / f"{writer[:8]}-{first_seq:012d}{SEGMENT_SUFFIX}"

    def make(self) -> None:
        """Create the folders of a book, readable by their owner alone."""
        for folder in (self.root, self.log, self.metrics, self.heartbeats):
            folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)


def _counting(name: str, files: set[str]) -> str:
    """The file that holds the segment ``name`` among the ``files`` of the log folder."""
    archive = name + packed.SUFFIX
    has_manifest = name.removesuffix(SEGMENT_SUFFIX) + MANIFEST_SUFFIX in files
    return archive if archive in files and (has_manifest or name not in files) else name


def segment_name(path: Path) -> str:
    """The name of the segment in ``path``: that of its plain file, compressed or not."""
    return path.name.removesuffix(packed.SUFFIX)


def first_seq(segment: str) -> int:
    """The sequence of the first line, by the name of the segment; 0 where it has none."""
    digits = segment.partition("-")[2].partition(".")[0]
    return int(digits) if digits.isdecimal() else 0


def pruned_ends(layout: Layout) -> Mapping[str, int]:
    """{first eight digits of a writer: the last of its lines that was pruned}."""
    try:
        anchor = json.loads(layout.anchor.read_bytes())
        return {writer[:8]: int(end["seq"]) for writer, end in anchor["ends"].items()}
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BadInput(
            f"{layout.anchor}: not readable; it says up to where the log was pruned: "
            "put it back from a backup"
        ) from None


def is_fleet(path: Path) -> bool:
    """Whether ``path`` is a folder of nodes: no book itself, and with a folder ``node=…``."""
    return not is_book(path) and any(found.is_dir() for found in path.glob(f"{NODE_MARK}*"))


def is_bucket(named: str | Path) -> bool:
    """Whether ``named`` is the address of a bucket; as a path it has lost a slash."""
    return _BUCKET.match(str(named)) is not None


def is_readable(path: str | Path) -> bool:
    """Whether ops can read it: a book, a folder of nodes, or the address of a bucket."""
    return is_bucket(path) or is_book(Path(path)) or is_fleet(Path(path))


def require_readable(named: str | Path) -> Path | str:
    """The book, folder of nodes or bucket that ``named`` is; raises BadInput for anything else.

    A folder comes back as its whole path. Whether a bucket is there is not asked.
    """
    if is_bucket(named):
        return _BUCKET.sub(r"\1://", str(named))
    path = Path(named)
    return (path if is_fleet(path) else require_readable_book(path).root).resolve()


def is_book(path: Path) -> bool:
    """Whether ``path`` is a book: a folder with ``log/``, even when all else is lost."""
    return (path / "log").is_dir()


def require_book(path: Path) -> Layout:
    """The layout of an existing book of a queue; raises BadInput that says what to do."""
    place = require_readable_book(path)
    if place.imported.exists():
        raise BadInput(
            f"{path} is the imported log of another system: it has no queue, no cache and no log "
            "of ours; ask it with 'tallybook analyze', 'tallybook runbook run' or a notebook"
        )
    return place


def require_place(root: Path, create: bool) -> None:
    """Raise BadInput where no book is at ``root`` nor, with ``create``, can be made there."""
    if is_book(root) or not create:
        require_book(root)
        return
    if root.exists() and not root.is_dir():
        raise BadInput(f"{root} is a file; a book is a folder")
    if root.is_dir() and any(root.iterdir()) and not _could_be_book(root):
        raise BadInput(f"{root} is a folder with other files in it; name an empty or a new one")


def _could_be_book(root: Path) -> bool:
    """Whether nothing but settings lie there: a book that is about to begin."""
    return {path.name for path in root.iterdir()} <= {"book.toml", "profiles", "plans"}


def require_readable_book(path: Path) -> Layout:
    """The layout of an existing book, of a queue or imported; raises BadInput for any other."""
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


def archive_dir(out: Path) -> Path:
    """Where compacted segments lie in the folder of ``out_dir``."""
    return out / "archive"
