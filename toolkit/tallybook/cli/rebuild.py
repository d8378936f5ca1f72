"""``tallybook rebuild``: state.db, queue and cache, from the log, with a certificate."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from tallybook.cli import output
from tallybook.layout import find_book

if TYPE_CHECKING:
    from tallybook.recover import Rebuilt

HELP = "rebuild state.db (queue and cache) from the log"
INCOMPLETE = 4
_SHOWN = 10
_FIGURES = (
    "keys", "unknown_keys", "jobs", "unknown_jobs", "rescued", "payloads_lost", "events_read",
    "missing_events", "quarantined",
)  # fmt: skip


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument(
        "--from", dest="source", metavar="CHECKPOINT",
        help="begin with this checkpoint, or with a state.db that was set aside",
    )  # fmt: skip
    parser.add_argument(
        "--dry-run", action="store_true", help="only certify what a rebuild would bring"
    )
    parser.add_argument("--certificate", metavar="DIR", help="write the certificate there too")
    output.add_book(parser)
    output.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """0; 4 where anything is unknown."""
    from tallybook.recover import Steps, keeping, rebuild

    out = Path(args.certificate) if args.certificate else None
    if out:
        keeping.require_folder(out, "--certificate")
    reading, folding = output.Progress("segments read"), output.Progress("events folded")
    try:
        rebuilt = rebuild(
            find_book(args.book),
            source=Path(args.source) if args.source else None,
            dry_run=args.dry_run,
            out=out,
            steps=Steps(reading.show, folding.show),
        )
    finally:
        reading.close()
        folding.close()
    output.answer(asdict(rebuilt), args.json, text=lambda: told(rebuilt))
    return 0 if rebuilt.complete else INCOMPLETE


def told(rebuilt: Rebuilt) -> str:
    """What came back, what is missing, and where the paper lies."""
    shown = asdict(rebuilt)
    lines = [output.table([shown], _FIGURES), "", f"parity {rebuilt.parity}"]
    if rebuilt.checkpoint:
        lines.append(f"begun with the checkpoint {rebuilt.checkpoint}")
    lines += [
        f"lost: {output.seqs(hole.first_seq, hole.last_seq)} of writer {hole.writer}"
        + (f", between {hole.after_at or '?'} and {hole.before_at or '?'}")
        for hole in rebuilt.holes[:_SHOWN]
    ]
    lines += [
        f"edited: among {output.seqs(edit.first_seq, edit.last_seq)} of {edit.segment}"
        for edit in rebuilt.edits[:_SHOWN]
    ]
    left = max(len(rebuilt.holes) - _SHOWN, 0) + max(len(rebuilt.edits) - _SHOWN, 0)
    lines += [f"and {left} more, in the certificate"] if left else []
    lines += [f"old state set aside in {rebuilt.set_aside}"] if rebuilt.set_aside else []
    paper = Path(rebuilt.certificate).with_suffix(".html") if rebuilt.certificate else None
    lines += [f"certificate {paper}"] if paper else []
    lines += [] if rebuilt.complete else ["INCOMPLETE: " + _what(rebuilt)]
    lines += ["nothing was changed (--dry-run)"] if rebuilt.dry_run else []
    return "\n".join(lines)


def _what(rebuilt: Rebuilt) -> str:
    """In a few words, what is not known."""
    if rebuilt.missing_events:
        missing = output.counted(rebuilt.missing_events, "missing event")
        return f"{missing} may concern any key and any job; the certificate says which are proven"
    if rebuilt.edits or rebuilt.quarantined:
        return "lines of the log were edited or cannot be read; the certificate says which"
    return "payloads of jobs that can still run are lost; see log.payload in the settings"
