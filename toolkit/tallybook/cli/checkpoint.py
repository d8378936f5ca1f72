"""``tallybook checkpoint``: keep the whole state, so that folding it anew takes seconds."""

from __future__ import annotations

import argparse

from tallybook.cli import output
from tallybook.layout import find_book, require_book

HELP = "keep the whole state, so that folding it anew takes seconds"


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    output.add_book(parser)
    output.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """0 once the checkpoint is on disk."""
    from tallybook.book import Book, checkpoints

    root = find_book(args.book)
    require_book(root)
    with Book.open(root, create=False) as book:
        made = checkpoints.make(book.layout, book.moment().wall())
    shown = {
        "checkpoint": made.path.name,
        "writer": made.position.writer,
        "seq": made.position.seq,
        "events": made.position.ordinal,
        "bytes": made.bytes,
    }
    output.answer(shown, args.json, text=lambda: output.table([shown], list(shown)))
    return 0
