"""``tallybook rebuild``: state.db, queue and cache, from the log."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from tallybook.cli import output
from tallybook.layout import find_book

if TYPE_CHECKING:
    from tallybook.recover import Rebuilt

HELP = "rebuild state.db (queue and cache) from the log"
INCOMPLETE = 4


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    output.add_book(parser)
    output.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """0; 4 where the log has holes, so that something may be missing."""
    from tallybook.recover import rebuild

    progress = output.Progress("events folded")
    try:
        rebuilt = rebuild(find_book(args.book), progress=progress.show)
    finally:
        progress.close()
    shown = asdict(rebuilt)
    output.answer(shown, args.json, text=lambda: _told(rebuilt))
    return 0 if rebuilt.complete else INCOMPLETE


def _told(rebuilt: Rebuilt) -> str:
    shown = asdict(rebuilt)
    holes = shown.pop("holes")
    lines = [output.table([shown], list(shown))]
    lines += [
        f"lost: seq {hole['first_seq']} to {hole['last_seq']} of writer {hole['writer']}"
        for hole in holes
    ]
    lines += [] if rebuilt.complete else ["INCOMPLETE: jobs and keys may be missing or old"]
    return "\n".join(lines)
