"""``tallybook import jobs``: a job log of another system into a book of its own."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tallybook.cli import output
from tallybook.errors import BadInput

if TYPE_CHECKING:
    from tallybook.ops.imports import Imported

HELP = "import the job log of another system, or propose how to read it"
_INCOMPLETE = 4
_SHOWN = 10


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    kinds = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    jobs = kinds.add_parser("jobs", help="a job log", description=HELP)
    jobs.add_argument("file", metavar="FILE", nargs="+", help="one log in one file or more")
    jobs.add_argument("--profile", metavar="P", help="a name, or the path of a .toml file")
    jobs.add_argument("--inspect", action="store_true", help="propose a profile, write nothing")
    jobs.add_argument(
        "--set", metavar="TABLE.FIELD=VALUE", action="append", default=[], dest="changes",
        help="change a value of the profile, as in time.zone=Europe/Berlin",
    )  # fmt: skip
    jobs.add_argument("--replace", action="store_true", help="replace the import in the book")
    jobs.add_argument("--book", metavar="DIR", help="the new book")
    output.add_json(jobs)


def run(args: argparse.Namespace) -> int:
    """0 where every row was read, 4 where some could not be."""
    if args.inspect:
        return _inspect(args)
    if not args.profile:
        raise BadInput("name a --profile; --inspect proposes one, and 'tallybook import jobs "
                       f"--help' has more; there are {', '.join(_names())}")  # fmt: skip
    if not args.book:
        raise BadInput("name the new book with --book DIR")
    from tallybook.ops import imports

    profile = imports.load(args.profile, args.changes)
    found = imports.import_jobs(args.file, profile, args.book, replace=args.replace)
    output.answer(_shown(found), args.json, text=lambda: _text(found))
    return 0 if found.complete else _INCOMPLETE


def _names() -> list[str]:
    from tallybook.ops import imports

    return imports.built_in()


def _shown(found: Imported) -> dict[str, Any]:
    return {
        "book": str(found.book),
        "profile": found.profile,
        **asdict(found.counts),
        "unknown_words": found.unknown_words,
        "unreadable_rows": [asdict(bad) for bad in found.unreadable],
        "silent": dict(found.silent),
    }


def _text(found: Imported) -> str:
    from tallybook.ops.imports.stored import COUNTED

    counts = asdict(found.counts)
    read = [{"rows": counts[name], "": words} for name, words in _READ.items()
            if counts[name] or name in ("rows", "jobs", "events")]  # fmt: skip
    told = [{"rows": counts[name], "": words} for name, words in COUNTED.items() if counts[name]]
    parts = [f"{found.book}: imported with the profile {found.profile}",
             output.table(read, ["rows", ""])]  # fmt: skip
    if told:
        parts.append(output.table(told, ["rows", ""]))
    if found.unknown_words:
        words = [{"word": word, "rows": rows} for word, rows in found.unknown_words.items()]
        advice = "the profile does not say what these words mean; add them, then use --replace"
        parts.append(output.table(words, ["word", "rows"]) + "\n" + advice)
    if found.unreadable:
        bad = [asdict(one) for one in found.unreadable[:_SHOWN]]
        parts.append(output.table(bad, ["file", "line", "reason", "text"]))
        parts.append(f"{found.book}/unreadable.ndjson has every row that could not be read")
    notes = [f"note: {silence}" for silence in found.silent.values()]
    return "\n\n".join([*parts, "\n".join([*notes, _next(found)])])


_READ = {
    "rows": "rows in the files",
    "jobs": "jobs",
    "events": "events written",
    "ignored": "rows of events that the profile ignores",
    "superseded": "rows that a later state of their job replaces",
    "left_out": "rows left out by the filter",
    "unreadable": "rows that cannot be read",
}


def _next(found: Imported) -> str:
    return f"next: tallybook analyze latency --by topic --book {found.book}"


def _inspect(args: argparse.Namespace) -> int:
    from tallybook.ops.imports import inspecting

    if len(args.file) > 1:
        sys.stderr.write(f"tallybook: only {args.file[0]} is inspected\n")
    found = inspecting.inspect(args.file[0], args.profile, args.changes)
    output.answer(found.as_json(), args.json, text=found.text)
    return 0
