"""``tallybook jobs requeue``, ``discard`` and ``cancel``: many jobs in bounded changes."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tallybook import steering
from tallybook.cli import output, selecting
from tallybook.errors import BadInput
from tallybook.job import Job
from tallybook.layout import find_book

if TYPE_CHECKING:
    from tallybook.book import Book, Selection

_A_CHANGE = 500
_MOST_IDS = 1000
_WHAT = {
    "requeue": "dead or cancelled jobs are pending again, with all their attempts",
    "discard": "dead letters are given up",
    "cancel": "pending jobs end at once; of leased ones the runs are told to",
}
_EVENTS = {
    "requeue": ("requeued",),
    "discard": ("discarded",),
    "cancel": ("cancelled", "cancel_requested"),
}


def add(actions: Any) -> list[argparse.ArgumentParser]:
    """The three actions and their options."""
    return [_add(actions, rule, what) for rule, what in _WHAT.items()]


def _add(actions: Any, rule: str, what: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(rule, help=what)
    parser.add_argument("job_ids", nargs="*", metavar="ID", help="these jobs; else by filter")
    selecting.add(parser, steering.FITTING[rule])
    selecting.add_bounds(parser, "oldest")
    parser.add_argument("--reason", default="by hand", help="for the log; default: by hand")
    parser.add_argument("--dry-run", action="store_true", help="say how many; change nothing")
    return parser


def run(args: argparse.Namespace) -> int:
    """0, also where no job matches."""
    from tallybook.book import Book
    from tallybook.payload import checked_text

    _check(args)
    reason = checked_text("--reason", args.reason) or ""
    with Book.open(find_book(args.book), create=False) as book:
        chosen = _named(book, args) if args.job_ids else _selected(book, args)
        steered = _steer(book, args, chosen, reason)
        nothing = selecting.nothing(book, args.topic)
    shown = {"dry_run": args.dry_run, "matched": steered.matched, "job_ids": steered.job_ids}
    shown |= {name: steered.counts[f"job.{name}"] for name in _EVENTS[args.action]}
    if args.action == "requeue":
        shown["passed_over"] = 0 if args.dry_run else steered.passed_over
    output.answer(shown, args.json, text=lambda: _told(args, steered, nothing))
    return 0


@dataclass
class _Steered:
    matched: int = 0
    job_ids: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def passed_over(self) -> int:
        """Jobs that matched and to which nothing was done."""
        return self.matched - self.counts.total()


def _check(args: argparse.Namespace) -> None:
    selecting.check_bounds(args)
    if args.job_ids and (selecting.is_asked(args) or args.limit is not None or args.all):
        raise BadInput("give ids, or filters with --limit or --all, not both")


def _steer(
    book: Book, args: argparse.Namespace, chosen: Iterator[list[Job]], reason: str
) -> _Steered:
    steered, progress = _Steered(), output.Progress(args.action)
    try:
        for jobs in chosen:
            job_ids = [job.job_id for job in jobs]
            events = [] if args.dry_run else book.steer(args.action, job_ids, reason)
            steered.matched += len(jobs)
            steered.counts.update(event.name for event in events)
            steered.job_ids += job_ids[: _MOST_IDS - len(steered.job_ids)]
            progress.show(steered.matched)
    finally:
        progress.close()
    return steered


def _named(book: Book, args: argparse.Namespace) -> Iterator[list[Job]]:
    """The jobs of the ids given. Raises BadInput where one cannot be steered so, or is unknown."""
    fitting = steering.FITTING[args.action]
    jobs = []
    for job_id in dict.fromkeys(args.job_ids):
        job = book.job(job_id)
        if job is None:
            raise BadInput(f"no job {job_id}; see: tallybook jobs list")
        if job.status not in fitting:
            words = " or ".join(fitting)
            raise BadInput(
                f"job {job_id} is {job.status}; {args.action} takes jobs that are {words}"
            )
        jobs.append(job)
    return (jobs[n : n + _A_CHANGE] for n in range(0, len(jobs), _A_CHANGE))


def _selected(book: Book, args: argparse.Namespace) -> Iterator[list[Job]]:
    """The jobs that the filters choose. Raises BadInput where they are many and unbounded."""
    asked = selecting.selection(args, book)
    statuses = [args.status] if args.status else _unless_told(args.action)
    selections = [replace(asked, status=status) for status in statuses]
    if args.limit is None and not args.all:
        few = selecting.UNBOUNDED + 1
        found = sum(len(book.selected(selection, few)) for selection in selections)
        selecting.require_few(args, found, "jobs match", args.action)
    return _pages(book, selections, args.limit)


def _unless_told(rule: str) -> tuple[str, ...]:
    """Requeue takes dead letters alone unless cancelled jobs are asked for."""
    return steering.FITTING[rule][:1] if rule == "requeue" else steering.FITTING[rule]


def _pages(book: Book, selections: list[Selection], limit: int | None) -> Iterator[list[Job]]:
    """Pages of jobs in order of age; what was steered is never looked at again."""
    left = limit if limit is not None else 2**62
    for selection in selections:
        after = 0
        while left and (jobs := book.selected(selection, min(_A_CHANGE, left), after)):
            after, left = jobs[-1].ordinal, left - len(jobs)
            yield jobs


def _told(args: argparse.Namespace, steered: _Steered, nothing: str) -> str:
    if not steered.matched:
        return nothing
    if args.dry_run:
        return f"{output.counted(steered.matched, 'job')} would be taken; nothing was changed"
    counts = (f"{steered.counts[f'job.{name}']:,} {name}" for name in _EVENTS[args.action])
    words = ", ".join(counts).replace("cancel_requested", "told to stop")
    if args.action == "requeue" and steered.passed_over:
        words += f", {steered.passed_over:,} passed over: another job has their idempotency key"
    return words
