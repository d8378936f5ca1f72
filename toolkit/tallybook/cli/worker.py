"""``tallybook worker``: run the handlers of a module."""

from __future__ import annotations

import argparse
import logging
import os
import socket
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
    parser.add_argument(
        "--processes", type=int, metavar="N", help="N workers under a parent that restarts them"
    )
    parser.add_argument("--topics", default="", metavar="A,B", help="default: all with a handler")
    parser.add_argument("--lease", type=float, default=60.0, metavar="S", help="default 60")
    parser.add_argument(
        "--drain", action="store_true", help="end when nothing is pending or leased"
    )
    parser.add_argument(
        "--grace", type=float, default=30.0, metavar="S",
        help="how long a run that is to stop may take; default 30",
    )  # fmt: skip
    parser.add_argument("--name", help="name of this worker in the log; default: host and dice")
    output.add_book(parser)


def run(args: argparse.Namespace) -> int:
    """Work until stopped or drained; 0 then, 130 after Ctrl-C."""
    if sys.stderr.isatty():
        logging.getLogger("tallybook.worker").setLevel(logging.INFO)
    return _parent(args) if args.processes is not None else _worker(args)


def _parent(args: argparse.Namespace) -> int:
    from tallybook.ids import new_worker_id
    from tallybook.worker.parent import Parent

    command = [sys.executable, "-m", "tallybook", "worker", args.module]
    command += ["--threads", str(args.threads), "--lease", str(args.lease)]
    command += ["--grace", str(args.grace)]
    command += ["--topics", args.topics, "--book", str(find_book(args.book))]
    command += ["--drain"] * args.drain
    name = args.name or new_worker_id(socket.gethostname())
    if output.names_new_book(args.book):
        output.tell_new_book(args.book)
    return Parent(command, name, args.processes, drain=args.drain).run()


def _worker(args: argparse.Namespace) -> int:
    from tallybook.worker import handlers
    from tallybook.worker.loop import Worker
    from tallybook.worker.parent import PARENT_VARIABLE

    parent_pid = os.environ.pop(PARENT_VARIABLE, "")
    worker = Worker(
        find_book(args.book),
        handlers.load(args.module),
        threads=args.threads,
        topics=[topic for topic in args.topics.split(",") if topic],
        lease_s=args.lease,
        drain=args.drain,
        grace_s=args.grace,
        name=args.name,
        parent_pid=int(parent_pid) if parent_pid.isdigit() else None,
    )
    worker.stop_on_signals()
    if output.names_new_book(args.book) and not parent_pid:
        output.tell_new_book(args.book)
    return _watched(worker, is_shown=not parent_pid and sys.stderr.isatty())


def _watched(worker: Worker, *, is_shown: bool) -> int:
    """Run ``worker``; on a terminal show how many runs ended."""
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(worker, done), daemon=True)
    if is_shown:
        watcher.start()
    try:
        worker.run()
    except TallybookError as error:
        if not worker.interrupted:
            raise
        sys.stderr.write(f"tallybook: {error}\n")
    finally:
        done.set()
        if is_shown:
            watcher.join()
    return INTERRUPTED if worker.interrupted else 0


def _watch(worker: Worker, done: threading.Event) -> None:
    progress = output.Progress("runs ended")
    while not done.wait(0.2):
        progress.show(worker.runs_ended)
    progress.close()
