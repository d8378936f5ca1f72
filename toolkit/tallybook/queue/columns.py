"""The columns of the table ``jobs`` and the statements that name them.

A write names only the columns that it sets: Python's sqlite3 takes its longest road for each None
that it binds, and SQLite passes by the indexes of a column that is not named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import compress, groupby, repeat
from operator import is_, itemgetter

from tallybook import statements
from tallybook.job import Job
from tallybook.order import Lock

COLUMNS = tuple(name.removesuffix("_json") for name in Job._fields)
_LOCK = Lock._fields
_NARROW = {"payload": "'' as payload", "result": "null as result"}
_KEYED = _NARROW | {"payload": "substr(payload, 1, 1) as payload"}
_ORDINAL = COLUMNS.index("ordinal")
_ALL = range(len(COLUMNS))
_MAY_BE_NULL = tuple(
    place for place, name in enumerate(Job._fields) if Job._field_defaults.get(name, "") is None
)
_optional = itemgetter(*_MAY_BE_NULL)
_NOTHING = (None,) * len(_MAY_BE_NULL)

_Row = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Write:
    """A statement, and what it binds of a job."""

    text: str
    row: Callable[[Job], _Row]


def statements_of_jobs() -> Mapping[str, str]:
    """The statements of this package; a row of jobs that they read or write is a ``Job``, a row of
    locks a ``Lock``."""
    filled = {
        "{columns}": ", ".join(COLUMNS),
        "{lock}": ", ".join(_LOCK),
        "{lock_marks}": ", ".join("?" * len(_LOCK)),
        "{keyed}": ", ".join(_KEYED.get(name, name) for name in COLUMNS),
        "{narrow}": ", ".join(_NARROW.get(name, name) for name in COLUMNS),
    }
    found = {
        name: text
        for file in ("queue.sql", "order.sql")
        for name, text in statements.load("tallybook.queue", file).items()
    }
    for name, text in found.items():
        for mark, words in filled.items():
            text = text.replace(mark, words)
        found[name] = text
    return found


_SQL = statements_of_jobs()


def additions(jobs: Iterable[Job]) -> Iterator[tuple[str, Iterator[_Row]]]:
    """Statements that insert ``jobs`` in their order, each with its rows."""
    for nulls, same in groupby(jobs, _nulls):
        write = _addition(nulls)
        yield write.text, map(write.row, same)


def changes(jobs: Iterable[tuple[Job, Job]]) -> Iterator[tuple[str, Iterator[_Row]]]:
    """Statements that update ``jobs``, of each (before, after), each with its rows."""
    for kept, same in groupby(jobs, _kept):
        write = _change(kept)
        yield write.text, (write.row(job) for _, job in same)


def _nulls(job: Job) -> _Row:
    """Which of the columns that may be null are."""
    optional = _optional(job)
    return () if optional == _NOTHING else tuple(map(is_, optional, repeat(None)))


def _kept(change: tuple[Job, Job]) -> _Row:
    """Which columns are as they were."""
    return tuple(map(is_, *change))


@cache
def _addition(nulls: _Row) -> Write:
    left_out = set(compress(_MAY_BE_NULL, nulls or repeat(True)))
    places = [place for place in _ALL if place not in left_out]
    text = _SQL["add"].replace("{set}", ", ".join(COLUMNS[place] for place in places))
    return Write(text.replace("{marks}", ", ".join("?" * len(places))), itemgetter(*places))


@cache
def _change(kept: _Row) -> Write:
    places = [place for place in _ALL if not kept[place]] or [_ORDINAL]
    named = ", ".join(f"{COLUMNS[place]} = ?" for place in places)
    return Write(_SQL["change"].replace("{changes}", named), itemgetter(*places, _ORDINAL))
