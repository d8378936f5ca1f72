"""``tallybook checkpoint``: keep the whole state, so that folding it anew takes seconds."""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tallybook.cli import output
from tallybook.errors import BadInput
from tallybook.layout import find_book, require_book

if TYPE_CHECKING:
    from tallybook.book.checkpoints import Checkpoint

HELP = "keep the whole state, so that folding it anew takes seconds"


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--out", metavar="DIR", help="write it as Parquet too, into a folder there")
    output.add_book(parser)
    output.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """0 once the checkpoint is on disk."""
    from tallybook.book import Book, checkpoints

    root = find_book(args.book)
    require_book(root)
    if args.out:
        _require_ops(Path(args.out))
    with Book.open(root, create=False) as book:
        made = checkpoints.make(book.layout, book.moment().wall())
        parquet = _written(made, Path(args.out)) if args.out else None
    shown: dict[str, Any] = {
        "checkpoint": made.path.name,
        "writer": made.position.writer,
        "seq": made.position.seq,
        "events": made.position.ordinal,
        "bytes": made.bytes,
    }
    if parquet:
        shown["parquet"] = str(parquet)
    output.answer(shown, args.json, text=lambda: output.table([shown], list(shown)))
    return 0


def _require_ops(folder: Path) -> None:
    from tallybook.recover import keeping

    if not find_spec("pyarrow"):
        raise BadInput("--out writes Parquet: it needs the extra ops: pip install 'tallybook[ops]'")
    keeping.require_folder(folder, "--out")


def _written(made: Checkpoint, folder: Path) -> Path:
    from tallybook.recover import columnar

    return columnar.write(made, folder)
