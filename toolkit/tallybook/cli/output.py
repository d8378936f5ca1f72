"""What commands print: one JSON object or clean text on standard output, progress on a terminal."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self, TypeVar

from tallybook.errors import TallybookError, unwritable
from tallybook.layout import FOLDER_MODE, find_book, is_book
from tallybook.payload import visible

T = TypeVar("T")
_PERIOD_S = 0.1


def add_book(parser: argparse.ArgumentParser) -> None:
    """The option that names the book."""
    parser.add_argument(
        "--book", metavar="DIR", help="the book (default: TALLYBOOK_BOOK, else ./book)"
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """The option that asks for one JSON object."""
    parser.add_argument("--json", action="store_true", help="answer with one JSON object")


def names_new_book(given: str | None) -> bool:
    """Whether ``--book`` or TALLYBOOK_BOOK, which may be mistyped, names a book to be made."""
    named = bool(given or os.environ.get("TALLYBOOK_BOOK"))
    return named and not is_book(find_book(given))


def tell_new_book(given: str | None) -> None:
    """Say where a new book is."""
    where = plain(str(find_book(given).absolute()))
    sys.stderr.write(f"tallybook: made a new book at {where}\n")


def answer(shown: Mapping[str, Any], as_json: bool, text: Callable[[], str]) -> None:
    """Print ``shown`` as JSON, or what ``text`` makes for a person."""
    line = json.dumps(shown, ensure_ascii=False, indent=1) if as_json else plain(text())
    try:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise TallybookError(f"standard output: {error.strerror}") from error


def listed(name: str, found: Sequence[T], limit: int, show: Callable[[T], Any]) -> dict[str, Any]:
    """The first ``limit`` of ``found`` as ``name``; ``more`` says whether there are others."""
    return {name: [show(one) for one in found[:limit]], "more": len(found) > limit}


def and_more(text: str, shown: Mapping[str, Any]) -> str:
    """A list as text, which says where there are others than those shown."""
    return f"{text}\nand more: see --limit" if shown["more"] else text


def plain(text: str) -> str:
    """Lines with no control characters but tabs in them: nothing can steer a terminal."""
    return "\n".join("\t".join(map(visible, line.split("\t"))) for line in text.split("\n"))


@contextmanager
def writing_under(folder: Path) -> Iterator[None]:
    """The folder of ``--out``, made where it is missing. Raises BadInput where it is no place to
    write, NoRoom where its disk takes no more."""
    try:
        folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise unwritable(f"--out {folder}: {Path(error.filename or folder).name}", error) from None


def counted(number: int, word: str) -> str:
    """A number with its word, as in "1 line" and "2 lines"."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def seqs(first: int, last: int) -> str:
    """A range of lines of the log, as in "seq 3" and "seq 3 to 5"."""
    return f"seq {first}" if first == last else f"seq {first} to {last}"


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Rows under their column names; numbers to the right, absent values as ``-``."""
    cells = [[_cell(row.get(column)) for column in columns] for row in rows]
    heads = [column.replace("_", " ") for column in columns]
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    right = [all(_is_number(row.get(c)) for row in rows) and bool(rows) for c in columns]
    lines = [_line(heads, widths, right), _line(["-" * width for width in widths], widths, right)]
    return "\n".join(lines + [_line(row, widths, right) for row in cells])


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    parts = [
        cell.rjust(width) if is_right else cell.ljust(width)
        for cell, width, is_right in zip(cells, widths, right, strict=True)
    ]
    return "  ".join(parts).rstrip()


def _cell(value: Any) -> str:
    text = "-" if value is None else str(value)
    return visible(text)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) or value is None


class Progress:
    """One line on a terminal that says how far ``label`` is; silent in a pipe."""

    _drawn: Progress | None = None

    def __init__(self, label: str, total: int | None = None) -> None:
        self._label = label
        self._total = total
        self._shown = sys.stderr.isatty()
        self._last = 0.0
        self._width = 0

    def show(self, done: int, total: int | None = None) -> None:
        """``done`` of ``total`` are done; drawn ten times a second at most."""
        total = self._total if total is None else total
        now = time.monotonic()
        if not self._shown or (now - self._last < _PERIOD_S and done != total):
            return
        self._last = now
        of = "" if total is None else f" of {total:,}"
        line = f"{self._label}: {done:,}{of}"[: shutil.get_terminal_size().columns - 1]
        sys.stderr.write("\r" + line.ljust(self._width))
        sys.stderr.flush()
        self._width = len(line)
        Progress._drawn = self

    @classmethod
    def give_way(cls) -> None:
        """Take the line that is drawn off the terminal; it comes again when it is next shown."""
        if cls._drawn and cls._drawn._width:
            sys.stderr.write("\r" + " " * cls._drawn._width + "\r")

    def close(self) -> None:
        """End the line."""
        if self._width:
            sys.stderr.write("\n")
            self._width = 0


class Stages:
    """Progress through named stages, each on a line of its own that stays."""

    def __init__(self) -> None:
        self._name = ""
        self._progress = Progress("")

    def show(self, name: str, done: int, total: int | None = None) -> None:
        """The stage ``name`` has done ``done`` of ``total``."""
        if name != self._name:
            self._progress.close()
            self._name, self._progress = name, Progress(name)
        self._progress.show(done, total)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.close()
