"""``tallybook compact``: closed segments of the log become Parquet, which questions read faster."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tallybook.cli import output
from tallybook.layout import find_book

if TYPE_CHECKING:
    from tallybook.ops.archive import Entry
    from tallybook.ops.compacting import Compacted

HELP = "bring closed segments of the log into an archive of Parquet files"
INCOMPLETE = 4
_COLUMNS = ("segment", "rows", "quarantined", "bytes", "parquet_bytes", "proven")


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="where ops write; the archive is DIR/archive (default: ./tallybook-out/<node_id>)",
    )
    output.add_book(parser)
    output.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """0, also where nothing was left to do; 4 where lines cannot be read or a segment was left."""
    from tallybook.ops.compacting import compact

    done = compact(find_book(args.book), Path(args.out) if args.out else None)
    shown = {
        "archive": str(done.folder),
        "compacted": [_row(entry) for entry in done.made],
        "kept": len(done.kept),
        "quarantined": sum(len(entry.quarantine) for entry in (*done.made, *done.kept)),
        "left": [{"segment": one.segment, "reason": one.reason} for one in done.left],
    }
    output.answer(shown, args.json, text=lambda: _told(done, shown))
    return INCOMPLETE if shown["quarantined"] or done.left else 0


def _row(entry: Entry) -> dict[str, Any]:
    return {
        "segment": entry.segment,
        "rows": entry.rows,
        "quarantined": len(entry.quarantine),
        "bytes": entry.bytes,
        "parquet_bytes": entry.parquet_bytes,
        "proven": entry.hash is not None,
    }


def _told(done: Compacted, shown: dict[str, Any]) -> str:
    rows = [row | {"proven": "yes" if row["proven"] else "no"} for row in shown["compacted"]]
    lines = [output.table(rows, _COLUMNS)] if rows else []
    lines += [f"warning: {one.segment} was left: {one.reason}" for one in done.left]
    counts = f"{output.counted(len(rows), 'segment')} compacted, {len(done.kept)} kept"
    lines.append(f"{counts}; the archive is {done.folder}")
    if shown["quarantined"]:
        lines.append(f"INCOMPLETE: {output.counted(shown['quarantined'], 'line')} cannot be read")
    return "\n".join(lines)
