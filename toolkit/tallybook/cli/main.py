"""``tallybook``: the table of commands, and the one place where an error becomes a line."""

from __future__ import annotations

import argparse
import errno
import logging
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn, TextIO

import tallybook
from tallybook.cli.output import Progress, plain
from tallybook.errors import BadInput, TallybookError, is_no_room
from tallybook.payload import visible

COMMANDS = {
    "demo": "run the main job on real airports, with planted faults that the runbooks must find",
    "init": "lay notebooks, runbooks and settings into a folder of your own",
    "enqueue": "enqueue one job, or many from standard input",
    "worker": "run the handlers of a module on the jobs of a book",
    "status": "what stands where now: jobs, workers, alerts",
    "jobs": "list, show, export, requeue, discard, cancel or release jobs",
    "locks": "list the resources that leased jobs have, or release one",
    "topic": "list, pause, resume or drain topics",
    "trace": "every event of one job or correlation id, in order",
    "log": "verify, follow or prune the log of a book",
    "cache": "list cache entries, show one, forget some, rebuild from the log",
    "checkpoint": "keep the whole state, so that folding it anew takes seconds",
    "compact": "bring closed segments of the log into an archive of Parquet files",
    "rebuild": "rebuild state.db (queue and cache) from the log",
    "analyze": "throughput, latency, leases, backlog, double runs and settings, from the log",
    "reconcile": "compare the cache, or a file, with an export",
    "plan": "show, apply or undo a repair plan of reconcile",
    "import": "import the job log of another system, or propose how to read it",
    "runbook": "list runbooks, run one and leave a report, or run them by a schedule",
    "lab": "open JupyterLab on a book",
}
_FILES = {"import": "importing"}  # a command whose name is a word of Python's
BAD_INPUT = 2
FAILURE = 3
INTERRUPTED = 130
_RIGHTS = (errno.EACCES, errno.EPERM, errno.EROFS)


class _Plain(logging.Formatter):
    """Lines that cannot steer a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return plain(super().format(record))


class _AboveProgress(logging.StreamHandler[TextIO]):
    """Lines that stand above the line of progress, where a terminal shows one."""

    def emit(self, record: logging.LogRecord) -> None:
        Progress.give_way()
        super().emit(record)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, with exit code 2."""

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"tallybook: {message}; see '{self.prog} --help'\n")
        raise SystemExit(BAD_INPUT)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    _log_to_stderr()
    given = list(sys.argv[1:] if arguments is None else arguments)
    if sys.stdout is None:
        sys.stderr.write("tallybook: standard output is closed; send it to /dev/null\n")
        return FAILURE
    try:
        return _dispatch(given)
    except KeyboardInterrupt:
        sys.stderr.write("tallybook: interrupted\n")
        return INTERRUPTED
    except TallybookError as error:
        _drop_output()
        sys.stderr.write(f"tallybook: {visible(str(error))}\n")
        return error.exit_code
    except BrokenPipeError:
        _drop_output()
        return FAILURE
    except OSError as error:
        return _disk_said(error)
    except Exception as error:  # noqa: BLE001 - the last resort: no traceback for a user
        return _unexpected(error)


def _drop_output() -> None:
    """Forget what a full or closed standard output did not take, so that no exit fails of it."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _disk_said(error: OSError) -> int:
    """What a disk or its rights are against: 2 where they are for a user to mend, else 3."""
    if os.environ.get("TALLYBOOK_DEBUG"):
        raise error
    what = error.filename if error.filename is not None else "a file"
    words = error.strerror or str(error)
    if error.errno in _RIGHTS:
        code, advice = BAD_INPUT, "run it as the owner of the file, or change who may use it"
    elif is_no_room(error):
        code, advice = FAILURE, "make room on the disk"
    else:
        code, advice = FAILURE, "look at that file and its disk"
    sys.stderr.write(f"tallybook: {visible(str(what))}: {words}; {advice}\n")
    return code


def _log_to_stderr() -> None:
    """Warnings of ours go to standard error; what libraries log stays with them."""
    handler = _AboveProgress(sys.stderr)
    handler.setFormatter(_Plain("tallybook: %(message)s"))
    ours = logging.getLogger("tallybook")
    ours.handlers[:] = [handler]
    ours.propagate = False


def _dispatch(given: list[str]) -> int:
    name = given[0] if given and given[0] in COMMANDS else None
    parser, command = _parser(name)
    args, unknown = parser.parse_known_args(given)
    if unknown:
        command.error(f"no such option or argument: {' '.join(unknown)}")
    if args.command is None:
        parser.print_help()
        return 0
    code = module_of(args.command).run(args)
    sys.stdout.flush()
    return int(code)


def _parser(chosen: str | None) -> tuple[argparse.ArgumentParser, argparse.ArgumentParser]:
    """The parser and that of the chosen command, whose module alone is loaded: help is quick."""
    parser = _Parser(
        prog="tallybook",
        description="A durable job queue whose log is the truth, and runbooks that read it.",
        epilog="exit codes: 0 clean, 1 findings or differences, 2 bad input, 3 failure, "
        "4 incomplete input, 130 interrupted",
    )
    parser.add_argument("--version", action="version", version=tallybook.__version__)
    found: argparse.ArgumentParser = parser
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, what in COMMANDS.items():
        command = commands.add_parser(name, help=what, description=what)
        if name == chosen:
            module_of(name).add(command)
            found = command
    return parser, found


def module_of(name: str) -> Any:
    """The module that has the options of a command and runs it."""
    try:
        return import_module(f"tallybook.cli.{_FILES.get(name, name)}")
    except ModuleNotFoundError as error:
        raise _missing(error) from None


def _missing(error: ModuleNotFoundError) -> TallybookError:
    package = (error.name or "").partition(".")[0]
    extra = "demo" if package == "airportsdata" else "ops"
    return BadInput(f"this command needs {package!r}; run: pip install 'tallybook[{extra}]'")


def _unexpected(error: Exception) -> int:
    if isinstance(error, ModuleNotFoundError) and not (error.name or "").startswith("tallybook"):
        sys.stderr.write(f"tallybook: {_missing(error)}\n")
        return BAD_INPUT
    if os.environ.get("TALLYBOOK_DEBUG"):
        raise error
    words = " ".join(str(error).split()) or "no further words"
    if type(error).__module__ == "sqlite3":
        sys.stderr.write(f"tallybook: SQLite: {visible(words)}; look at the disk\n")
        return FAILURE
    sys.stderr.write(
        f"tallybook: unexpected {type(error).__name__}: {words}; "
        "TALLYBOOK_DEBUG=1 shows the traceback\n"
    )
    return FAILURE
