"""Words that findings, notes and charts share."""

import shlex
from pathlib import Path

from tallybook.layout import is_bucket, require_readable


def counted(number: int, word: str) -> str:
    """A number with its word, as in "1 line" and "2 lines"."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def command(book: Path, *words: str) -> str:
    """``tallybook`` with ``words``, to be copied: it names the book unless that is ``./book``."""
    return shlex.join(("tallybook", *words, *naming(book)))


def naming(book: Path) -> tuple[str, ...]:
    """The words that name a book in a command; none for ``./book``."""
    if is_bucket(book):
        return ("--book", str(require_readable(book)))
    here = book.resolve() == Path("book").resolve()
    return () if here else ("--book", str(book.resolve()))
