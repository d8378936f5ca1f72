"""``tallybook worker``: run the handlers of a module."""

from __future__ import annotations

import argparse
import sys
import threading
from typing import TYPE_CHECKING

from tallybook.cli import output
from tallybook.errors import TallybookError
from tallybook.layout import find_book

if TYPE_CHECKING:
    from tallybook.worker.loop import Worker

INTERRUPTED = 130
HELP = "run the handlers of a module on the jobs of a book"


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("module", metavar="MODULE", help="importing it registers the handlers")
    parser.add_argument("--threads", type=int, default=4, metavar="N", help="default 4")
    parser.add_argument("--topics", default="", metavar="A,B", help="default: all with a handler")
    parser.add_argument("--lease", type=float, default=60.0, metavar="S", help="default 60")
    parser.add_argument(
        "--drain", action="store_true", help="end when nothing is pending or leased"
    )
    parser.add_argument("--name", help="name of this worker in the log; default: host and dice")
    output.add_book(parser)


def run(args: argparse.Namespace) -> int:
    """Work until stopped or drained; 0 then, 130 after Ctrl-C."""
    from tallybook.worker import handlers
    from tallybook.worker.loop import Worker

    worker = Worker(
        find_book(args.book),
        handlers.load(args.module),
        threads=args.threads,
        topics=[topic for topic in args.topics.split(",") if topic],
        lease_s=args.lease,
        drain=args.drain,
        name=args.name,
    )
    worker.stop_on_signals()
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(worker, done), daemon=True)
    watcher.start()
    try:
        worker.run()
    except TallybookError as error:
        if not worker.interrupted:
            raise
        sys.stderr.write(f"tallybook: {error}\n")
    finally:
        done.set()
        watcher.join()
    return INTERRUPTED if worker.interrupted else 0


def _watch(worker: Worker, done: threading.Event) -> None:
    """Show on a terminal how many runs ended."""
    progress = output.Progress("runs ended")
    while not done.wait(0.2):
        progress.show(worker.runs_ended)
    progress.close()
