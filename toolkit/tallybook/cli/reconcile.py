"""``tallybook reconcile``: the cache of a book, or any file, against an export."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from tallybook.cli import output, ruling
from tallybook.errors import BadInput

if TYPE_CHECKING:
    from tallybook.ops import Reconciliation, Warehouse

HELP = "compare the cache, or a file, with an export"
_DIFFERENT, _INCOMPLETE = 1, 4
_SHOWN = 10


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument(
        "export", metavar="EXPORT", help="CSV, TSV, NDJSON, JSON array or Parquet; gzip or not"
    )
    parser.add_argument(
        "--local", metavar="FILE", help="compare this file instead of the cache of the book"
    )
    parser.add_argument(
        "--key", metavar="COLUMN", action="append", required=True, help="again for more columns"
    )
    parser.add_argument("--out", metavar="DIR", help="write every difference as NDJSON there")
    parser.add_argument(
        "--memory", metavar="SIZE", help="use no more than this, like 2GB; else 1200MB"
    )
    output.add_book(parser)
    output.add_json(parser)
    ruling.add(parser)


def run(args: argparse.Namespace) -> int:
    """0 where all rows match, 1 where some do not, 4 where something could not be read."""
    from tallybook import ops

    rules = ruling.rules(args)
    if args.out:
        _require_folder(Path(args.out))
    with output.Stages() as stages:
        asked = {"key": args.key, "columns": rules, "out": args.out, "progress": stages.show}
        if args.memory:
            asked["memory"] = args.memory
        if args.local:
            found, notes = ops.reconcile(args.local, args.export, **asked), []
        else:
            with _warehouse(args.book) as warehouse:
                found = ops.reconcile(warehouse, args.export, **asked)
                notes = warehouse.notes
    with found:
        return _answer(args, found, notes)


def _answer(args: argparse.Namespace, found: Reconciliation, notes: list[str]) -> int:
    if args.out:
        _write(found, Path(args.out))
    shown = found.as_json()
    shown["warnings"] = [*notes, *shown["warnings"]]
    output.answer(shown, args.json, text=lambda: _text(found, shown["warnings"]))
    if notes or not found.complete:
        return _INCOMPLETE
    return 0 if found.clean else _DIFFERENT


def _warehouse(book: str | None) -> Warehouse:
    from tallybook import ops
    from tallybook.layout import find_book

    return ops.open(find_book(book))


def _require_folder(folder: Path) -> None:
    """Raise BadInput where the files of ``--out`` cannot be written; asked before the long work."""
    above = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not above.is_dir():
        raise BadInput(f"--out {folder}: {above} is a file; name a folder")
    if not os.access(above, os.W_OK | os.X_OK):
        raise BadInput(f"--out {folder}: no right to write into {above}")


def _write(found: Reconciliation, folder: Path) -> None:
    """Three files that keep null apart from '' and every key as it is."""
    summary = json.dumps(found.as_json(), ensure_ascii=False, indent=1) + "\n"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / "reconciliation.json").write_text(summary, "utf-8")
        found.differences.write_ndjson(folder / "differences.ndjson")
        found.rows.write_ndjson(folder / "rows.ndjson")
        found.unreadable.write_ndjson(folder / "unreadable.ndjson")
    except OSError as error:
        raise BadInput(f"--out {folder}: cannot be written: {error.strerror or error}") from None


def _text(found: Reconciliation, warnings: list[str]) -> str:
    statuses = [{"status": status.replace("_", " "), "rows": count}
                for status, count in found.statuses.items() if count]  # fmt: skip
    parts = [
        f"{output.counted(found.rows_local, 'row')} local, "
        f"{output.counted(found.rows_cloud, 'row')} in the cloud",
        output.table(statuses, ["status", "rows"]),
    ]
    if found.differences.height:
        columns = [{"column": column, "changed cells": cells}
                   for column, cells in found.changed_cells_by_column.items()]  # fmt: skip
        parts.append(output.table(columns, ["column", "changed cells"]))
        parts.append(_first(found))
    if found.unreadable.height:
        bad = found.unreadable.head(_SHOWN).to_dicts()
        parts.append(output.table(bad, ["side", "line", "column", "reason", "text"]))
    for side, only in (("local", found.columns_only_local), ("cloud", found.columns_only_cloud)):
        if only:
            parts.append(f"columns only on the {side} side: {', '.join(only)}")
    return "\n\n".join([*parts, *(f"note: {warning}" for warning in warnings)])


def _first(found: Reconciliation) -> str:
    shown = output.table(
        found.differences.head(_SHOWN).to_dicts(), ["key", "column", "local", "cloud"]
    )
    left = found.differences.height - _SHOWN
    return shown + (
        f"\nand {output.counted(left, 'more changed cell')}; --out DIR writes all"
        if left > 0
        else ""
    )
