"""``cache rebuild --from CHANGES --profile P``: a cache from another system's change log."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tallybook import whole
from tallybook.cli import output
from tallybook.errors import BadInput

if TYPE_CHECKING:
    from tallybook.recover.changelogs import ChangedCache

_INCOMPLETE = 4
_SHOWN = 10
_UNSEEN = "a change log has no numbers without a hole: what is missing in it cannot be seen"


def run(args: argparse.Namespace) -> int:
    """0; 4 where a line cannot be read, or a cell was never sent. No book is asked or changed."""
    from tallybook.recover import keeping, profile
    from tallybook.recover.changelogs import ChangedCache

    if args.source is None:
        raise BadInput("--profile says how to read a change log: name it with --from")
    if args.as_of or args.covers or args.format != "ndjson":
        raise BadInput("--profile: --as-of, --covers and --format are not for a change log")
    if args.out:
        keeping.require_folder(Path(args.out), "--out")
    columns = () if args.key == "key" else tuple(args.key.split(","))
    found = ChangedCache(profile.load(args.profile), columns)
    found.read(Path(args.source))
    out = Path(args.out) if args.out and not args.dry_run else None
    shown = _shown(found, out)
    if out:
        _write(found, out, shown)
    output.answer(shown, args.json, text=lambda: _told(shown))
    return 0 if shown["complete"] else _INCOMPLETE


def _shown(found: ChangedCache, out: Path | None) -> dict[str, Any]:
    return {
        "keys": len(found.rows),
        "jobs": 0,
        "events_read": found.events_read,
        "gaps": 0,
        "quarantined": len(found.bad),
        "unknown_keys": len(found.unknown),
        "parity": found.parity,
        "put": found.put,
        "invalidated": found.invalidated,
        "skipped": found.skipped,
        "tables": found.tables,
        "first_at": found.first_at or None,
        "last_at": found.last_at or None,
        "unknown": sorted(found.unknown),
        "bad": [
            {"file": one.segment, "line": one.line, "byte_offset": one.byte_offset,
             "reason": one.reason}
            for one in found.bad
        ],
        "cache": str(out / "cache.ndjson") if out else None,
        "statements": [_UNSEEN],
        "complete": not found.bad and not found.unknown,
    }  # fmt: skip


def _write(found: ChangedCache, out: Path, shown: dict[str, Any]) -> None:
    with output.writing_under(out):
        path = out / "cache.ndjson"
        with whole.written(path) as aside, aside.open("w", encoding="utf-8") as file:
            for key in sorted(found.rows):
                cell = found.rows[key]
                entry = {"key": key, "value": cell.value, "version": cell.version}
                told = entry | {"origin": "cloud", "updated_at": cell.at}
                file.write(json.dumps(told, ensure_ascii=False) + "\n")
        paper = json.dumps(shown, ensure_ascii=False, indent=1) + "\n"
        whole.put(out / "certificate.json", paper.encode())


def _told(shown: dict[str, Any]) -> str:
    figures = ("keys", "events_read", "put", "invalidated", "skipped", "quarantined")
    lines = [output.table([shown], figures), ""]
    lines += [f"{table}: {output.counted(n, 'change')}" for table, n in shown["tables"].items()]
    lines += [f"{bad['file']} line {bad['line']}: {bad['reason']}" for bad in shown["bad"][:_SHOWN]]
    left = len(shown["bad"]) - _SHOWN
    lines += [f"and {left} more lines that cannot be read"] if left > 0 else []
    lines += [f"unknown: {key} has cells that were never sent" for key in shown["unknown"][:_SHOWN]]
    lines += [f"parity {shown['parity']}", f"note: {_UNSEEN}"]
    return "\n".join(lines + ([f"cache {shown['cache']}"] if shown["cache"] else []))
