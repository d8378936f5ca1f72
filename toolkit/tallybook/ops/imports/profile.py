"""A profile: how to read the job log of another system. docs/profiles.md is its specification."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Rows = Literal["jobs", "states", "events"]
Source = tuple[tuple[str, ...], ...]

UNITS = {"s": 1_000_000, "ms": 1000, "us": 1, "ns": 0.001}
TIMES = ("submit", "start", "end", "until", "at")


@dataclass(frozen=True, slots=True)
class Reading:
    """The table ``[read]``: what kind of file it is."""

    format: str = "csv"
    rows: Rows = "jobs"
    delimiter: str = ","
    header: bool = True
    columns: tuple[str, ...] = ()
    comment: str = ""
    each: str = ""
    end: str = ""
    pattern: str = ""

    @property
    def quote(self) -> str | None:
        """The character around a cell; none where cells stand between tabs or blanks."""
        return None if self.delimiter in ("\t", "blanks") else '"'


@dataclass(frozen=True, slots=True)
class Times:
    """The table ``[time]``: how times are written. ``unit`` is that of the durations."""

    format: str = "iso"
    zone: str = "UTC"
    absent: tuple[str, ...] = ()
    origin: str = ""
    year: int = 0
    unit: str = "s"

    @property
    def has_year(self) -> bool:
        """Whether a time can be told from these times alone, or with the year that is given."""
        marks = ("%Y", "%y", "%s", "%c", "%x")
        return bool(self.year) or "%" not in self.format or any(m in self.format for m in marks)


@dataclass(frozen=True, slots=True)
class Profile:
    """How to read one kind of log.

    ``columns`` gives each field its source: one part or more, joined by ``/``, and each part one
    column or alternatives, of which the first that is there counts.
    """

    name: str
    about: str
    reading: Reading
    columns: Mapping[str, Source]
    times: Times
    words: Mapping[str, tuple[str, ...]]
    fixed: Mapping[str, str] = field(default_factory=dict)
    filter: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    text: str = ""

    @property
    def named(self) -> list[str]:
        """Every column or path that the profile names."""
        sources = [name for source in self.columns.values() for part in source for name in part]
        return list(dict.fromkeys([*sources, *self.filter]))

    @property
    def times_given(self) -> list[str]:
        """The fields that are instants."""
        return [name for name in TIMES if name in self.columns]
