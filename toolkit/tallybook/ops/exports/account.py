"""What was read of an export: its files, its rows and what is no row."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from tallybook.ops.exports import dialects
from tallybook.ops.exports.ledger import BadRow
from tallybook.ops.exports.profile import Rule
from tallybook.ops.exports.target import Target
from tallybook.ops.exports.texts import Text


@dataclass(slots=True)
class FileRead:
    """A file of which rows were read: how many stand before them in the target, and how to find
    the line of one again where it was not kept."""

    name: str
    before: int
    rows: int = 0
    bad: int = 0
    format: str = ""
    encoding: str = ""
    text: Text | None = None
    found: dialects.Found | None = None


@dataclass(slots=True)
class Reading:
    """An export as read into ``target``; ``bad`` rows are not in it, ``skipped`` lines no rows."""

    source: str
    target: Target
    rules: Mapping[str, Rule]
    layout: str = ""
    files: list[FileRead] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """How many rows are in the target."""
        return self.target.rows
