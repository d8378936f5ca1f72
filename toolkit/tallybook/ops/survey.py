"""What a book has to be read of: segments of its log, and those that lie in the archive."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tallybook import layout
from tallybook.layout import Layout, segment_name
from tallybook.ops import archive, openings
from tallybook.ops.archive import Entry
from tallybook.ops.openings import Opening

_ARCHIVE_FACTOR = 10


@dataclass(frozen=True, slots=True)
class Survey:
    """``paths`` are read line by line; ``archived`` as they lie in ``folder``; ``moved`` as well,
    with new positions, since a writer before theirs was not known when they were compacted."""

    node_id: str
    out: Path
    folder: Path
    paths: list[Path]
    openings: list[Opening]
    archived: list[Entry]
    moved: list[Entry]

    @property
    def text_bytes(self) -> int:
        """About how many bytes of text are to be loaded."""
        sizes = ((path.stat().st_size, path.suffix == ".zst") for path in self.paths)
        return sum(size * (_ARCHIVE_FACTOR if packed else 1) for size, packed in sizes)


def survey(place: Layout, out: Path | None = None, folder: Path | None = None) -> Survey:
    """Look at the log and the archive of a book; reads the first line of each segment."""
    paths = [path for path in place.segments() if path.stat().st_size]
    begun = openings.read(paths)
    node_id = _node_id(place, openings.ordered(begun))
    out = layout.out_dir(out, node_id)
    folder = folder or layout.archive_dir(out)
    entries = archive.usable(folder, place, paths)
    known = {one.segment: one for one in begun}
    pruned = [entry.opening for name, entry in entries.items() if name not in known]
    ordered = openings.ordered([*begun, *pruned])
    in_place, moved = _settled(entries, {one.segment: one.base for one in ordered})
    read = {entry.segment for entry in (*in_place, *moved)}
    left = [path for path in paths if segment_name(path) not in read]
    return Survey(node_id, out, folder, left, ordered, in_place, moved)


def _settled(
    entries: Mapping[str, Entry], bases: Mapping[str, int]
) -> tuple[list[Entry], list[Entry]]:
    """The entries whose positions are right as they lie there, and those where they are not."""
    found = list(entries.values())
    return (
        [entry for entry in found if entry.base == bases[entry.segment]],
        [entry for entry in found if entry.base != bases[entry.segment]],
    )


def _node_id(place: Layout, begun: list[Opening]) -> str:
    """The node that wrote the end of the log."""
    named = [one for one in begun if one.node_id]
    last = max(named, key=lambda one: (one.ordinal, one.segment), default=None)
    return str(last.node_id) if last else place.root.resolve().name
