"""``tallybook``: the table of commands, and the one place where an error becomes a line."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

import tallybook
from tallybook.errors import BadInput, TallybookError

COMMANDS = {
    "demo": "run the main job on real airports, with planted faults that the runbooks must find",
    "enqueue": "enqueue one job, or many from standard input",
    "worker": "run the handlers of a module on the jobs of a book",
    "status": "what stands where now: jobs, workers, alerts",
    "jobs": "list jobs, show one, or take its lease from its holder",
    "trace": "every event of one job or correlation id, in order",
    "log": "verify, follow or prune the log of a book",
    "cache": "list cache entries, show one, forget some, rebuild from the log",
    "checkpoint": "keep the whole state, so that folding it anew takes seconds",
    "rebuild": "rebuild state.db (queue and cache) from the log",
    "reconcile": "compare the cache, or a file, with an export",
    "runbook": "list runbooks, or run one and leave a report",
    "lab": "open JupyterLab on a book",
}
BAD_INPUT = 2
FAILURE = 3
INTERRUPTED = 130


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, with exit code 2."""

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"tallybook: {message}; see '{self.prog} --help'\n")
        raise SystemExit(BAD_INPUT)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    _log_to_stderr()
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _dispatch(given)
    except KeyboardInterrupt:
        sys.stderr.write("tallybook: interrupted\n")
        return INTERRUPTED
    except TallybookError as error:
        sys.stderr.write(f"tallybook: {error}\n")
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE
    except Exception as error:  # noqa: BLE001 - the last resort: no traceback for a user
        return _unexpected(error)


def _log_to_stderr() -> None:
    """Warnings of ours go to standard error; what libraries log stays with them."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("tallybook: %(message)s"))
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
    code = _module(args.command).run(args)
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
            _module(name).add(command)
            found = command
    return parser, found


def _module(name: str) -> Any:
    try:
        return import_module(f"tallybook.cli.{name}")
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
    sys.stderr.write(
        f"tallybook: unexpected {type(error).__name__}: {words}; "
        "TALLYBOOK_DEBUG=1 shows the traceback\n"
    )
    return FAILURE


if __name__ == "__main__":
    sys.exit(main())
