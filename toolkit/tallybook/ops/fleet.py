"""A fleet: the books of many nodes (``node=…/`` in a folder or bucket) as one warehouse.

Every segment of every node is loaded at once, as if one log had many writers; ``node_id`` of a row
is the name of its folder. A node that is empty, torn, of another version or no book at all is
told in ``nodes`` and ``notes`` and takes no other with it. A segment that lies in two nodes (a
book that was copied) is read once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars

from tallybook import layout
from tallybook.layout import Layout, segment_name
from tallybook.ops import archive, marks, openings, statements
from tallybook.ops import past as pasts
from tallybook.ops.imports import stored
from tallybook.ops.imports.stored import Import
from tallybook.ops.imports.writing import Record
from tallybook.ops.marks import Mark
from tallybook.ops.nodes import Node
from tallybook.ops.past import Cut, Place
from tallybook.ops.survey import Survey
from tallybook.ops.warehouse import Warehouse
from tallybook.ops.wording import counted

_NODES: dict[str, Any] = {"node_id": polars.String, "status": polars.String, "events": polars.Int64,
          "jobs": polars.Int64, "first_at": polars.Datetime("us", "UTC"),
          "last_at": polars.Datetime("us", "UTC"), "note": polars.String}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FleetLayout(Layout):
    """The folder of a fleet, with the node of each segment."""

    owners: Mapping[str, Node] = field(default_factory=dict)

    def manifest(self, segment: str) -> Path:
        """The manifest of a segment, in the book of its node."""
        return self.owners[segment].place.manifest(segment)


class Fleet(Warehouse):
    """The models over all nodes together; ``node_id`` tells them apart."""

    _by_node = True

    def __init__(self, root: Path, nodes: Sequence[Node], out: Path | None = None) -> None:
        self._nodes = list(nodes)
        self._copies: list[str] = []
        self._owners: dict[str, Node] = {}
        super().__init__(root, out)

    # what is other than of one book

    def _place(self, book: Path) -> Layout:
        owners = self._owners
        for node in self._nodes:
            had = bool(node.segments)
            own = {name for name in node.segments if self._is_first(name, node, owners)}
            node.paths = [path for path in node.paths if segment_name(path) in own]
            node.entries = [entry for entry in node.entries if entry.segment in own]
            if had and not own:
                node.status, node.note = "copy", "another node holds the same segments"
        return FleetLayout(book, owners)

    def _is_first(self, segment: str, node: Node, owners: dict[str, Node]) -> bool:
        owner = owners.setdefault(segment, node)
        if owner is not node:
            told = f"node {node.name} holds {segment} of node {owner.name} too"
            self._copies.append(f"{told}: it is read once")
        return owner is node

    def _survey(self, out: Path | None, folder: Path | None) -> Survey:
        begun = [replace(opening, node_id=node.name) for node in self._nodes
                 for opening in (*openings.read(node.paths),
                                 *(entry.opening for entry in node.entries))]  # fmt: skip
        target = layout.out_dir(out, "fleet")
        paths = [path for node in self._nodes for path in node.paths]
        ordered = openings.ordered(begun)
        return Survey("fleet", target, folder or layout.archive_dir(target), paths, ordered, [], [])

    def _attach(self) -> None:
        """Archives are read where they lie; positions and nodes are those of the fleet."""
        for rows in ("archived_rows", "imported_rows"):
            self._connection.execute(
                f"create macro {rows}() as table " + statements.model("no_rows")
            )
        self._entries = [entry for node in self._nodes for entry in node.entries]
        archive.note(self._connection, self._entries)
        self._attach_archives()
        self._attach_imports()

    def _attach_archives(self) -> None:
        self._archive_files = [
            str(archive.parquet(node.archive, entry.segment))
            for node in self._nodes
            for entry in node.entries
            if entry.rows
        ]
        if self._archive_files:
            archive.attach_nodes(self._connection, self._archive_files)

    def _attach_imports(self) -> None:
        stored.attach(self._connection, self._imported, whole=False)

    def _stored(self) -> str:
        return "stored_nodes"

    @property
    def imported(self) -> Record | None:
        """None: a fleet is not one imported book, though nodes of it may be."""
        return None

    def _imports(self) -> list[Import]:
        return [(node.name, node.imported, str(node.place.log / node.imported.events_file))
                for node in self._nodes if node.imported]  # fmt: skip

    def _marks_of(self) -> tuple[list[Mark], list[str]]:
        found: list[Mark] = []
        unasked: list[str] = []
        for node in self._nodes:
            seen, told = marks.read(node.place) if node.segments else ([], [])
            found += seen
            unasked += [f"node {node.name}: {one}" for one in told]
        return found, unasked

    def _pruned_of(self) -> Mapping[str, int]:
        ends: dict[str, int] = {}
        for node in self._nodes:
            ends |= layout.pruned_ends(node.place)
        return ends

    def _days(self) -> list[Path]:
        return [day for node in self._nodes for day in sorted(node.place.metrics.glob("*.csv"))]

    def _last_segments(self) -> set[str]:
        return {segment for (segment,) in self._rows(statements.query("last_segments"))}

    def _require_events(self) -> None:
        """A fleet without one event is empty, and its nodes say why."""

    def _cut(self, instant: Place) -> Cut:
        """A time alone cuts all nodes, each by its own clock."""
        return pasts.find_in_nodes(self._connection, instant)

    # what a notebook asks

    @property
    def silent(self) -> Mapping[str, str]:
        """What can be asked of a node alone, and what none of the nodes can say."""
        told = [stored.silent(node.imported) if node.imported else {}
                for node in self._nodes if node.segments or node.imported]  # fmt: skip
        common = {what: words for what, words in (told[0] if told else {}).items()
                  if all(what in other for other in told)}  # fmt: skip
        return common | {
            "state": "a fleet has no state.db: compare the cache of one node",
            "settings": "a fleet has no settings: each node has its own",
        }

    @property
    def notes(self) -> list[str]:
        """As of one book, each with its node; and the nodes that could not be read."""
        of_nodes = [f"node {node.name}: {node.status}: {node.note}" for node in self._nodes
                    if node.status in ("no book", "unreadable")]  # fmt: skip
        bad = [f"node {self._owner(told)}: {told}" for told in self._bad_lines_told()]
        lost = [f"node {node.name}: {note}" for node in self._nodes if node.imported
                for note in stored.notes(stored.unreadable(node.place))]  # fmt: skip
        return [*of_nodes, *bad, *lost, *self.losses]

    def _owner(self, told: str) -> str:
        """The node of a segment, or of a sentence that begins with its name."""
        return self._owners[told.split(" ")[0].rstrip(":")].name

    @property
    def warnings(self) -> list[str]:
        """As of one book; and the nodes that are empty, and the copies that were left out."""
        empty = [node.name for node in self._nodes if node.status == "empty"]
        words = f"{counted(len(empty), 'node')} without an event: {', '.join(empty[:5])}"
        told = [words] if empty else []
        told += [f"node {node.name}: {sentence}" for node in self._nodes if node.imported
                 for sentence in stored.warnings(node.imported)]  # fmt: skip
        return told + self._copies + super().warnings

    def nodes(self) -> polars.DataFrame:
        """One row a node: node_id, status, events, jobs, first_at, last_at, note.

        ``status`` is whole, incomplete (lines or ranges of its log are lost), empty, copy (of
        another node), unreadable or no book.
        """
        found = {row[0]: row[1:] for row in self._rows(statements.query("nodes"))}
        lost = {
            self._owner(file) for file in {line.file for line in self._bad_lines}
        } | self._holed()
        rows = []
        for node in self._nodes:
            status = "incomplete" if node.name in lost and node.segments else node.status
            counts = found.get(node.name, (0, 0, None, None))
            rows.append((node.name, status, *counts, node.note or None))
        return polars.DataFrame(rows, schema=_NODES, orient="row")

    def _holed(self) -> set[str]:
        """The nodes whose writers have holes."""
        writers = set(self.gaps["writer"].to_list())
        named = self._rows("select distinct writer, node_id from openings")
        short = {writer[:8]: node for writer, node in named}
        return {short[writer[:8]] for writer in writers if writer[:8] in short}

    def clock_skew(self) -> polars.DataFrame:
        """One row a pair of nodes that share correlation ids: how their clocks lie to each other.

        Where a job on ``node_id`` runs while ``other_id`` enqueues a job of the same correlation
        id, and clocks agree, the enqueue lies inside the run. ``shared`` counts such ids,
        ``before`` and ``after`` those whose enqueue lies outside, and ``skew_s`` is the median by
        which: below zero the clock of ``other_id`` is behind, null where all lie inside.
        """
        return self.frame("clock_skew")
