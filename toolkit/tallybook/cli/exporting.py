"""``tallybook jobs export``: jobs by selection as CSV or JSON, to a file or to standard output."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tallybook import whole
from tallybook.cli import output, selecting
from tallybook.errors import BadInput
from tallybook.job import Job, Status
from tallybook.layout import Layout, find_book

if TYPE_CHECKING:
    from tallybook.book import BookView, Selection

_Row = dict[str, Any]
_PAGE = 500
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_JSON = ("payload_json", "result_json")


def add(actions: Any) -> argparse.ArgumentParser:
    """The action and its options."""
    parser: argparse.ArgumentParser = actions.add_parser("export", help="jobs as CSV or JSON")
    parser.add_argument("file", metavar="FILE", help="a new file, or - for standard output")
    selecting.add(parser, [str(status) for status in Status])
    parser.add_argument("--format", choices=("csv", "json"), default="csv", help="default csv")
    parser.add_argument("--limit", type=int, metavar="N", help="at most so many, oldest first")
    parser.add_argument(
        "--traceback", action="store_true", help="with the last traceback of each, from the log"
    )
    return parser


def run(args: argparse.Namespace) -> int:
    """0, also where no job matches."""
    from tallybook.book import Book

    if args.limit is not None and args.limit < 1:
        raise BadInput(f"--limit {args.limit}: use a number from 1 up")
    if args.file == "-" and args.json:
        raise BadInput("--json answers on standard output; export to a file then")
    with Book.read(find_book(args.book)) as book:
        asked = selecting.selection(args, book)
        jobs = _rows(book, _jobs(book, asked, args.limit), args)
        number = _to_output(jobs, args) if args.file == "-" else _to_file(jobs, args)
        nothing = selecting.nothing(book, args.topic)
    if args.file != "-":
        words = output.counted(number, "job") if number else nothing
        output.answer({"jobs": number, "file": args.file}, args.json, lambda: words)
    return 0


def _jobs(book: BookView, asked: Selection, limit: int | None) -> Iterator[Job]:
    left, after = limit if limit is not None else 2**62, 0
    while left and (jobs := book.selected(asked, min(_PAGE, left), after)):
        after, left = jobs[-1].ordinal, left - len(jobs)
        yield from jobs


def _rows(book: BookView, jobs: Iterator[Job], args: argparse.Namespace) -> Iterator[_Row]:
    """A row a job, with its traceback where that is asked for."""
    if not args.traceback:
        return (job._asdict() for job in jobs)
    found = list(jobs)
    told = _tracebacks(book.layout, {job.job_id for job in found})
    return (job._asdict() | {"traceback": told.get(job.job_id)} for job in found)


def _tracebacks(layout: Layout, job_ids: set[str]) -> dict[str, str]:
    """{job id: the traceback of its last failed run that had one}, by one walk over the log."""
    from tallybook.log.reader import history

    events = (event for event, _ in history(layout) if event.get("traceback"))
    return {e["job_id"]: e["traceback"] for e in events if e.get("job_id") in job_ids}


def _to_output(jobs: Iterator[_Row], args: argparse.Namespace) -> int:
    return _WRITERS[args.format](jobs, sys.stdout, args)


def _to_file(jobs: Iterator[_Row], args: argparse.Namespace) -> int:
    """Write a file whole or not at all. Raises BadInput where it is there already."""
    path = Path(args.file)
    if path.exists():
        raise BadInput(f"{path} is there already; name a new file")
    try:
        with whole.written(path) as aside, aside.open("w", encoding="utf-8", newline="") as file:
            return _WRITERS[args.format](jobs, file, args)
    except FileNotFoundError:
        raise BadInput(f"{path.parent} is no folder; name a file in one") from None


def _write_csv(jobs: Iterator[_Row], file: IO[str], args: argparse.Namespace) -> int:
    writer = csv.writer(file)
    columns = (*Job._fields, "traceback") if args.traceback else Job._fields
    writer.writerow(name.removesuffix("_json") for name in columns)
    number = 0
    for job in jobs:
        writer.writerow(_defused(value) for value in job.values())
        number += 1
    return number


def _defused(value: Any) -> Any:
    """A cell that no spreadsheet takes for a formula: a quote stands before its first letter."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _write_json(jobs: Iterator[_Row], file: IO[str], _: argparse.Namespace) -> int:
    number = 0
    file.write('{"jobs": [')
    for job in jobs:
        file.write((",\n" if number else "\n") + json.dumps(_shown(job), ensure_ascii=False))
        number += 1
    file.write("\n]}\n")
    return number


def _shown(fields: _Row) -> _Row:
    parsed = {name: fields.pop(name) for name in _JSON}
    return fields | {
        name.removesuffix("_json"): json.loads(text) if text else None
        for name, text in parsed.items()
    }


_WRITERS = {"csv": _write_csv, "json": _write_json}
