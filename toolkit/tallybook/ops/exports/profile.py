"""A profile: how one kind of export is to be read, pinned, so that nothing is guessed twice.

docs/exports.md is its specification.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

TYPES = ("text", "integer", "decimal", "timestamp", "date", "boolean")
EPOCHS = ("epoch_s", "epoch_ms", "epoch_us")
MEBIBYTE = 1024 * 1024
_SCALED = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_DIGITS, _SCALE = 38, 9


@dataclass(frozen=True, slots=True)
class Rule:
    """The table ``[columns.NAME]`` as far as it says how the cells of a column are written.

    ``format`` is that of a date or time in strptime's marks, or epoch_s, epoch_ms, epoch_us;
    ``zone`` that of times without one, ``decimal`` and ``thousands`` the marks of a number,
    ``null`` the words that mean no value. ``encoded = "url"`` stands for percent-encoded text.
    """

    type: str = "text"
    format: str = ""
    zone: str = "UTC"
    decimal: str = "."
    thousands: str = ""
    null: tuple[str, ...] = ()
    encoded: str = ""

    @property
    def kind(self) -> str:
        """The type without its digits: decimal for decimal(38,2)."""
        return self.type.partition("(")[0]

    @property
    def digits(self) -> tuple[int, int]:
        """How many digits a decimal has, and how many of them after the point."""
        found = _SCALED.fullmatch(self.type)
        return (int(found[1]), int(found[2])) if found else (_DIGITS, _SCALE)

    @property
    def is_number(self) -> bool:
        """Whether its cells are numbers."""
        return self.kind in ("integer", "decimal")

    @property
    def is_time(self) -> bool:
        """Whether its cells are dates or times."""
        return self.kind in ("timestamp", "date")

    @property
    def rewrites(self) -> bool:
        """Whether a cell may be written otherwise than in standard notation."""
        marks = self.is_number and (self.decimal != "." or self.thousands)
        times = self.is_time and (self.format or self.zone != "UTC")
        return bool(self.null or self.encoded or marks or times)


def is_type(name: str) -> bool:
    """Whether a column can have this type."""
    found = _SCALED.fullmatch(name)
    if found:
        return 1 <= int(found[1]) <= _DIGITS and int(found[2]) <= int(found[1])
    return name in TYPES


@dataclass(frozen=True, slots=True)
class Dialect:
    """The table ``[read]``: how the text of a CSV is written. What is None is found out.

    ``header`` is the line of the header, counted from 1; 0 where there is none, and ``columns``
    then names the columns. ``blanks`` says that blanks may stand before an opening quote. ``sheet``
    is the one of a workbook, ``each`` the list of a JSON object that has the rows.
    """

    encoding: str | None = None
    delimiter: str | None = None
    quote: str = '"'
    escape: str = '"'
    header: int | None = None
    columns: tuple[str, ...] = ()
    blanks: bool = False
    sheet: str = ""
    each: str = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """The table ``[limits]``: what one export may take of this machine.

    ``memory`` is what the tables may take before they spill to disk; ``unpacked`` what an archive
    may unpack to, in bytes, and ``ratio`` how much larger than itself; ``row`` the largest row.
    """

    memory: str = "1GB"
    unpacked: int = 64 * 1024 * MEBIBYTE
    ratio: int = 300
    row: int = 16 * MEBIBYTE


@dataclass(frozen=True, slots=True)
class Profile:
    """How to read one kind of export.

    ``layout`` is empty where the file itself says what it is. ``rules`` has a rule for each column
    that is no plain text, ``every`` holds for the others. ``comparing`` has, by column, what its
    table says beyond the reading (a tolerance, another name, …): reconcile checks and uses it.
    ``covers`` says up to where the export goes, for what knows a log beside it.
    ``last_rows`` is how many rows the export had when the profile was written. ``is_own`` says that
    a rule for a column which is not there is an error; a profile that tallybook carries has rules
    for columns that an export may leave out.
    """

    name: str = ""
    about: str = ""
    layout: str = ""
    dialect: Dialect = field(default_factory=Dialect)
    rules: Mapping[str, Rule] = field(default_factory=dict)
    every: Rule = field(default_factory=Rule)
    comparing: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    covers: str = ""
    last_rows: int | None = None
    is_own: bool = True
