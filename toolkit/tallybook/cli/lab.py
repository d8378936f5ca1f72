"""``tallybook lab``: JupyterLab on the notebooks and runbooks."""

from __future__ import annotations

import argparse
import sys

from tallybook.cli import output

HELP = "open the notebooks and runbooks in JupyterLab"


def add(parser: argparse.ArgumentParser) -> None:
    """Book, port and browser."""
    output.add_book(parser)
    parser.add_argument("--port", type=int, metavar="P", help="default: the first free from 8888")
    parser.add_argument("--out", metavar="DIR", help="default ./tallybook-out/<node>")
    parser.add_argument("--no-browser", action="store_true", help="print the address only")


def run(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C; the address goes to standard output once the server answers."""
    from tallybook import layout
    from tallybook.lab import server
    from tallybook.runbook import folder

    book = layout.require_readable(layout.find_book_or_sample(args.book))
    place = server.prepare(layout.out_dir(args.out, folder.node_of(book)), args.port)

    def ready(url: str) -> None:
        sys.stdout.write(f"JupyterLab at {url}\nbook {book}, folder {place.root}; Ctrl-C ends it\n")
        sys.stdout.flush()

    server.serve(place, book, browser=not args.no_browser, ready=ready)
    return 0
