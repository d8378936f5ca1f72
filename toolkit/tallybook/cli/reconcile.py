"""``tallybook reconcile``: the cache of a book, or any file, against an export."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

from tallybook.cli import explaining, inspecting, output, ruling
from tallybook.errors import BadInput

if TYPE_CHECKING:
    from tallybook.ops import Explained, Reconciliation, Warehouse
    from tallybook.recover.plans import Plan

HELP = "compare the cache, or a file, with an export"
_DIFFERENT, _INCOMPLETE = 1, 4
_SHOWN = 10
_FIRST_ROWS = """
    select status, key, coalesce(local_row, cloud_row) as "row"
    from rows where status <> 'differs'
    qualify row_number() over (partition by status order by key, local_row, cloud_row) <= {shown}
    order by status, key, "row"
"""


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument(
        "export",
        metavar="EXPORT",
        help="a file, a pattern, a folder of parts or a URL: CSV, JSON, Parquet, ORC, XLSX, …",
    )
    parser.add_argument(
        "--local", metavar="FILE", help="compare this file instead of the cache of the book"
    )
    parser.add_argument(
        "--key", metavar="COLUMN", action="append", default=[], help="again for more columns"
    )
    parser.add_argument(
        "--profile", metavar="P", help="how the export is read: a name, or a .toml file"
    )
    parser.add_argument(
        "--inspect", action="store_true", help="say what the export is and propose a profile"
    )
    parser.add_argument(
        "--out", metavar="DIR", help="write every difference there, and a page to look at"
    )
    parser.add_argument(
        "--format", choices=("csv", "parquet", "ndjson"), default="csv",
        help="of what --out writes; default csv",
    )  # fmt: skip
    parser.add_argument(
        "--memory", metavar="SIZE", help="use no more than this, like 2GB; else 1200MB"
    )
    output.add_book(parser)
    output.add_json(parser)
    ruling.add(parser)
    explaining.add(parser)


def run(args: argparse.Namespace) -> int:
    """0 where all rows match or are in flight, 1 where some do not, 4 where something could not be
    read."""
    if args.out:
        _require_folder(Path(args.out))
    if args.inspect:
        return inspecting.run(args)
    if not args.key:
        raise BadInput("name the column of the key with --key; --inspect shows the columns")
    from tallybook.ops.exports import choosing

    rules = ruling.rules(args)
    with output.Stages() as stages:
        asked = {"key": args.key, "columns": rules, "out": args.out, "progress": stages.show}
        if args.memory:
            asked["memory"] = args.memory
        if args.profile:
            asked["profile"] = choosing.load(args.profile)
        told = _found(args, asked)
    with told.reconciliation:
        return _answer(args, told)


@dataclass(frozen=True, slots=True)
class _Told:
    """The comparison; where a book was asked, also what its log says, and the plan if any."""

    reconciliation: Reconciliation
    explained: Explained | None = None
    notes: Sequence[str] = ()
    plan: tuple[Path, Plan] | None = None
    recorded: Mapping[str, Any] = field(default_factory=dict)


def _found(args: argparse.Namespace, asked: Mapping[str, Any]) -> _Told:
    """What is found; with ``--again TIME`` by a second look, where rows are in flight."""
    from tallybook import ops

    if args.local and not args.explain:
        explaining.require_no_log(args)
        return _Told(ops.reconcile(args.local, args.export, **asked))
    wait_s = explaining.wait_s(args)
    told = _looked(args, asked, is_last=not wait_s)
    if not wait_s:
        return told
    if told.explained and told.explained.keys("in_flight"):
        time.sleep(wait_s)
    told.reconciliation.close()
    return _looked(args, asked)


def _looked(args: argparse.Namespace, asked: Mapping[str, Any], *, is_last: bool = True) -> _Told:
    """One look at book and export; only the last one is recorded and planned for."""
    from tallybook import ops

    planner = explaining.Planner(args) if args.plan else None
    profile = asked.get("profile")
    flight = explaining.flight(args, profile)
    with _warehouse(args.book) as warehouse:
        recorder = explaining.Recorder(args, warehouse, flight.covers)
        explained = ops.explain(warehouse, args.export, local=args.local, flight=flight, **asked)
        if not is_last:
            return _Told(explained.reconciliation, explained)
        plan = planner.write(warehouse, explained, profile) if planner else None
        recorded = recorder.record(explained, whole=not warehouse.notes)
        return _Told(explained.reconciliation, explained, warehouse.notes, plan, recorded)


def _answer(args: argparse.Namespace, told: _Told) -> int:
    found = told.reconciliation
    if args.out:
        _write(told, Path(args.out), args.format)
    shown = found.as_json()
    shown["warnings"] = [*told.notes, *shown["warnings"]]
    if args.explain and told.explained:
        shown |= told.explained.as_json()
    if told.plan:
        shown |= {"plan": str(told.plan[0]), "actions": told.plan[1].counts()}
    shown |= told.recorded
    output.answer(shown, args.json, text=lambda: _text(told, args, shown["warnings"]))
    if told.notes or not found.complete:
        return _INCOMPLETE
    is_in_flight = told.explained is not None and told.explained.verdict == "in_flight"
    return 0 if found.clean or is_in_flight else _DIFFERENT


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


def _write(told: _Told, folder: Path, kind: str) -> None:
    with output.writing_under(folder):
        told.reconciliation.write(folder, kind)
        if told.explained:
            told.explained.write(folder, kind)


def _text(told: _Told, args: argparse.Namespace, warnings: list[str]) -> str:
    found, explained = told.reconciliation, told.explained
    statuses = [{"status": status.replace("_", " "), "rows": count}
                for status, count in found.statuses.items() if count]  # fmt: skip
    parts = [
        *([found.apart] if found.apart else []),
        f"{output.counted(found.rows_local, 'row')} local, "
        f"{output.counted(found.rows_cloud, 'row')} in the cloud",
        output.table(statuses, ["status", "rows"]),
        *_changed(found, args.out),
        *_unpaired(found),
        *_unread(found),
    ]
    if args.explain and explained:
        parts.append(explaining.text(explained))
    for side, only in (("local", found.columns_only_local), ("cloud", found.columns_only_cloud)):
        if only:
            parts.append(f"columns only on the {side} side: {', '.join(only)}")
    if told.plan:
        parts.append(explaining.planned(*told.plan))
    parts += explaining.verified(told.recorded)
    covers = explaining.covers(args, explained)
    notes = [f"note: {one}" for one in (*covers, *warnings) if one != found.apart]
    return "\n\n".join([*parts, *notes, *([f"all of it is in {args.out}"] if args.out else [])])


def _changed(found: Reconciliation, out: str | None) -> Iterator[str]:
    """Changed cells by column, and the first of them."""
    if not found.changed_cells:
        return
    columns = [{"column": column, "changed cells": cells}
               for column, cells in found.changed_cells_by_column.items()]  # fmt: skip
    yield output.table(columns, ["column", "changed cells"])
    first = found.relation("differences").limit(_SHOWN).pl().to_dicts()
    shown = output.table([_apart(cell) for cell in first], ["key", "column", "local", "cloud"])
    left = found.changed_cells - len(first)
    more = f"\nand {output.counted(left, 'more changed cell')}" if left else ""
    yield shown + more + ("; --out DIR writes all" if left and not out else "")


def _apart(cell: dict[str, Any]) -> dict[str, Any]:
    """A changed cell whose two texts do not look the same: else they are shown with escapes."""
    local, cloud = cell["local"], cell["cloud"]
    if None in (local, cloud) or _looks(local) != _looks(cloud):
        return cell
    return cell | {"local": ascii(local), "cloud": ascii(cloud)}


def _looks(text: str) -> str:
    return " ".join(normalize("NFKC", text).split())


def _unpaired(found: Reconciliation) -> Iterator[str]:
    """The first rows of each status that has no partner to differ from."""
    if found.apart:
        return
    first = found.sql(_FIRST_ROWS.format(shown=_SHOWN)).pl().to_dicts()
    if first:
        told = [row | {"status": row["status"].replace("_", " ")} for row in first]
        yield output.table(told, ["status", "key", "row"])


def _unread(found: Reconciliation) -> Iterator[str]:
    bad = found.relation("unreadable").limit(_SHOWN).pl().to_dicts()
    if bad:
        yield output.table(bad, ["side", "line", "column", "reason", "text"])
