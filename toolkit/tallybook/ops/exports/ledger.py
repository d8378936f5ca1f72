"""The ledger of a reading: every row in is a row out, or is told here with its place and reason."""

from dataclasses import dataclass

SHOWN = 200


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that could not be read: line (None where a format has none), reason, how it begins.

    ``offset`` is the byte of the unpacked text where it begins; ``column`` the one whose cell has
    no value of its type, None where the row as a whole cannot be read.
    """

    line: int | None
    reason: str
    text: str
    file: str = ""
    offset: int | None = None
    column: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a row begins: the file, the line from 1 and the byte of its unpacked text."""

    file: str
    line: int | None = None
    offset: int | None = None
