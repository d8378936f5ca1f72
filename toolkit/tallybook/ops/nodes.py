"""The nodes of a fleet: a book each, in a folder ``node=NAME``, and what is wrong with it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path

from tallybook import layout
from tallybook.errors import BadInput, TallybookError
from tallybook.layout import NODE_MARK, Layout, segment_name
from tallybook.ops import archive
from tallybook.ops.archive import Entry
from tallybook.ops.imports import stored
from tallybook.ops.imports.writing import Record


@dataclass(slots=True)
class Node:
    """One node of a fleet: its book, its segments, or why there are none.

    ``paths`` are read line by line, ``entries`` from the archive beside the log.
    """

    name: str
    place: Layout
    paths: list[Path] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    imported: Record | None = None
    status: str = "whole"
    note: str = ""

    @property
    def segments(self) -> list[str]:
        """The names of all that it is read of."""
        return [*map(segment_name, self.paths), *(entry.segment for entry in self.entries)]

    @property
    def archive(self) -> Path:
        """Where its compacted segments lie."""
        return layout.archive_dir(self.place.root)


def nodes_in(root: Path) -> list[Node]:
    """The nodes of a folder, by name; empty where it has no folder ``node=…``."""
    folders = sorted(path for path in root.glob(f"{NODE_MARK}*") if path.is_dir())
    return [node_at(path.name.removeprefix(NODE_MARK), path) for path in folders]


def listed(books: Iterable[str | Path]) -> list[Node]:
    """Books that are named one by one; raises BadInput where two have one name."""
    nodes = [
        node_at(path.resolve().name.removeprefix(NODE_MARK), path) for path in map(Path, books)
    ]
    names = [node.name for node in nodes]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise BadInput(f"two books are named {twice[0]}: nodes are told apart by their folders")
    for node in nodes:
        layout.require_readable_book(node.place.root)
    return nodes


def chosen(nodes: Sequence[Node], pattern: str) -> list[Node]:
    """The nodes whose name fits ``pattern``; raises BadInput where none does."""
    found = [node for node in nodes if fnmatchcase(node.name, pattern)]
    if not found:
        some = ", ".join(node.name for node in nodes[:5])
        raise BadInput(f"no node is named like {pattern!r}; there are {some}")
    return found


def node_at(
    name: str, root: Path, *, in_place: bool = True, entries: Mapping[str, Entry] | None = None
) -> Node:
    """The node whose book is ``root``; its status and note say what is wrong with it, if anything.

    Where events are not ``in_place``, those of an imported log are not looked for. ``entries`` are
    those of its archive, where they are known.
    """
    node = Node(name, Layout(root))
    try:
        if not layout.is_book(root):
            return replace(node, status="no book", note="the folder has no log/ in it")
        imported = stored.read(node.place, in_place=in_place)
        there = [path for path in node.place.segments() if path.stat().st_size]
        entries = archive.usable(node.archive, node.place, there) if entries is None else entries
        paths = [path for path in there if segment_name(path) not in entries]
    except OSError as error:
        return replace(node, status="unreadable", note=f"{error.filename}: {error.strerror}")
    except TallybookError as error:
        return replace(node, status="unreadable", note=str(error))
    if not paths and not entries and not imported:
        return replace(node, status="empty", note="its log has no events")
    return replace(node, paths=paths, entries=list(entries.values()), imported=imported)
