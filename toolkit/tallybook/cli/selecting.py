"""The options with which a person says which jobs are meant."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from tallybook.clock import to_text
from tallybook.errors import BadInput

if TYPE_CHECKING:
    from tallybook.book import BookView, Selection

_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_LONGEST_S = 36_500 * 86400
UNBOUNDED = 100
_AGE = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)([smhdw])")


def add(parser: argparse.ArgumentParser, statuses: Sequence[str]) -> None:
    """The filters; of ``statuses`` one may be chosen."""
    parser.add_argument("--status", choices=statuses)
    parser.add_argument("--topic", metavar="TOPIC", help="of this topic")
    parser.add_argument("--error", metavar="TEXT", help="in the type or words of the last error")
    parser.add_argument(
        "--older-than", metavar="AGE", help="last changed so long ago or earlier, as 90s 5m 2h 7d"
    )
    parser.add_argument("--newer-than", metavar="AGE", help="last changed since then")


def add_bounds(parser: argparse.ArgumentParser, first: str) -> None:
    """How many may be taken: of more than ``UNBOUNDED`` one of the two must be given."""
    parser.add_argument("--limit", type=int, metavar="N", help=f"at most so many, {first} first")
    parser.add_argument("--all", action="store_true", help="however many they are")


def check_bounds(args: argparse.Namespace) -> None:
    """Raises BadInput for bounds that bound nothing, or contradict each other."""
    if args.limit is not None and args.limit < 1:
        raise BadInput(f"--limit {args.limit}: use a number from 1 up")
    if args.limit is not None and args.all:
        raise BadInput("give --limit or --all, not both")


def require_few(args: argparse.Namespace, found: int, what: str, rule: str) -> None:
    """Raises BadInput where ``found`` are more than one takes without having said how many."""
    if found > UNBOUNDED and args.limit is None and not args.all:
        raise BadInput(
            f"more than {UNBOUNDED} {what}; say how many to {rule} with --limit N, or --all "
            "(--all --dry-run counts them)"
        )


def is_asked(args: argparse.Namespace) -> bool:
    """Whether any filter was given."""
    given = (args.status, args.topic, args.error, args.older_than, args.newer_than)
    return any(value is not None for value in given)


def selection(args: argparse.Namespace, book: BookView) -> Selection:
    """What the filters say, with ages as instants before now. Raises BadInput for a bad age."""
    from tallybook.book import Selection

    now = book.moment().now
    older_than, newer_than = (
        None if age is None else to_text(now - _age(option, age))
        for option, age in (("--older-than", args.older_than), ("--newer-than", args.newer_than))
    )
    return Selection(args.status, args.topic, args.error, older_than, newer_than)


def _age(option: str, text: str) -> timedelta:
    found = _AGE.fullmatch(text)
    age_s = float(found[1]) * _UNITS_S[found[2]] if found else None
    if age_s is None or age_s > _LONGEST_S:
        raise BadInput(f"{option} {text}: write a number and s, m, h, d or w, as in 2h")
    return timedelta(seconds=age_s)


def nothing(book: BookView, topic: str | None) -> str:
    """The words where no job matches; a topic that no job has is named."""
    if topic is None or topic in book.counts():
        return "no jobs match"
    known = ", ".join(sorted(book.counts())) or "none"
    return f"no jobs match: no job has topic {topic!r}; topics with jobs: {known}"
