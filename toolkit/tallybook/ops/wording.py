"""Words that findings, notes and charts share."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from tallybook.layout import is_bucket, require_readable

_SHOWN = 3


def counted(number: int, word: str) -> str:
    """A number with its word, as in "1 line" and "2 lines"."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def with_count(title: str, count: int) -> str:
    """A title with how many it is about, as in "Rows that differ: 2"."""
    return f"{title}: {count:,}"


def some(words: Sequence[str]) -> str:
    """The first three of ``words``, and how many more there are."""
    left = len(words) - _SHOWN
    return "; ".join(words[:_SHOWN]) + (f"; and {left} more" if left > 0 else "")


def sentence(words: str) -> str:
    """``words`` with a large letter at their begin."""
    return words[:1].upper() + words[1:]


def command(book: Path, *words: str) -> str:
    """``tallybook`` with ``words``, to be copied: it names the book unless that is ``./book``."""
    return shlex.join(("tallybook", *words, *naming(book)))


def naming(book: Path) -> tuple[str, ...]:
    """The words that name a book in a command; none for ``./book``."""
    if is_bucket(book):
        return ("--book", str(require_readable(book)))
    here = book.resolve() == Path("book").resolve()
    return () if here else ("--book", str(book.resolve()))
