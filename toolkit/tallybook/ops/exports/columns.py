"""How the cells of a column are written, and what type and rule that suggests."""

# ruff: noqa: S608 - statements are put together from positions
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import duckdb

from tallybook.ops.exports.target import Target

NULL_WORDS = ("NA", "N/A", "n/a", "#N/A", "NULL", "null", "None", "NaN", "nan", "nil", "-", "\\N")
_MOST = 0.9
_NAMED_ID = ("id", "key", "code", "zip", "postal", "phone", "number", "no", "sku", "account")
_SAMPLES = 3


@dataclass(frozen=True, slots=True)
class Column:
    """A column of an export: how many cells it has and how they are written.

    ``shapes`` counts the filled cells by how they look; ``words`` those that may mean no value.
    ``other`` is the row (from 1) and the text of the first cell that looks unlike most.
    """

    name: str
    cells: int
    nulls: int
    filled: int
    different: int
    shapes: Mapping[str, int]
    scale: int
    day_first: int
    month_first: int
    mark: str
    longest: int
    long_numbers: int
    rounded: int
    words: Mapping[str, int]
    samples: tuple[str, ...]
    other: tuple[int, str] | None = None

    def only(self, *shapes: str) -> bool:
        """Whether every filled cell has one of these shapes."""
        return bool(self.filled) and sum(self.shapes.get(s, 0) for s in shapes) == self.filled

    @property
    def is_id(self) -> bool:
        """Whether its name is that of an id: such a column is text, whatever its digits."""
        words = self.name.lower().replace("-", "_").replace(" ", "_").split("_")
        return self.name.endswith(("Id", "ID", "Key")) or any(w in _NAMED_ID for w in words)

    def rule(self) -> dict[str, Any]:
        """The fields of [columns.NAME] that its cells suggest; empty for text."""
        if self.is_id:
            return {}
        if self.only("integer") and self.longest < 19:
            return {"type": "integer"}
        if self.only("integer", "decimal") and self.shapes.get("decimal"):
            return {"type": f"decimal(38,{self.scale})"}
        if self.only("comma", "integer") and self.shapes.get("comma"):
            return {"type": f"decimal(38,{self.scale})", "decimal": ",", "thousands": "."}
        if self.only("grouped", "integer", "decimal") and self.shapes.get("grouped"):
            return {"type": f"decimal(38,{max(self.scale, 2)})", "thousands": ","}
        if self.only("boolean"):
            return {"type": "boolean"}
        return self._time()

    def _time(self) -> dict[str, Any]:
        if self.only("date"):
            return {"type": "date"}
        if self.only("timestamp", "date"):
            return {"type": "timestamp"}
        if self.only("slashed") and bool(self.day_first) != bool(self.month_first):
            first, second = ("%d", "%m") if self.day_first else ("%m", "%d")
            return {"type": "date", "format": f"{first}{self.mark}{second}{self.mark}%Y"}
        return {}

    def suspicious(self) -> list[str]:
        """What looks wrong, in words."""
        said = []
        name = f"column {self.name!r}"
        if damaged := self.shapes.get("damaged"):
            said.append(f"{name}: damaged ids? {damaged:,} cells are written like 9.91E+15, as a "
                        "spreadsheet does to long numbers")  # fmt: skip
        if self.long_numbers > 2 and self.rounded == self.long_numbers:
            said.append(f"{name}: damaged ids? all {self.rounded:,} numbers of 16 digits and more "
                        "end in zeros, as a spreadsheet leaves them")  # fmt: skip
        if self.only("slashed") and not self.day_first and not self.month_first:
            said.append(f"{name}: ambiguous dates: no day is above 12, so {self.samples[0]!r} "
                        "means two days; write its format into the profile")  # fmt: skip
        if self.day_first and self.month_first:
            said.append(f"{name}: dates of both kinds: {self.day_first:,} begin with the day, "
                        f"{self.month_first:,} with the month")  # fmt: skip
        if self.other:
            row, word = self.other
            said.append(f"{name}: mixed types: most cells look alike, and row {row:,} has {word!r}")
        for word, times in self.words.items():
            said.append(f"{name}: {times:,} cells say {word!r}; where that means no value, write "
                        "null into the profile")  # fmt: skip
        return said


@cache
def _statement() -> str:
    return (Path(__file__).parent / "sql" / "column.sql").read_text("utf-8")


def look(connection: duckdb.DuckDBPyConnection, target: Target, at: int) -> Column:
    """One column of a target of text, over all its rows."""
    connection.execute(
        f"create or replace temp view cells as select rowid + 1 as n, r{at} as cell "
        f"from {target.name}"
    )
    (found,) = connection.execute(_statement(), {"words": list(NULL_WORDS)}).fetchall()
    words = connection.execute(
        "select cell, count(*) from cells where list_contains($1, cell) group by all order by all",
        [list(NULL_WORDS)],
    ).fetchall()
    samples = connection.execute(
        "select distinct cell from (select cell from cells where cell <> '' limit 1000) limit $1",
        [_SAMPLES],
    ).fetchall()
    cells, nulls, filled, different, shapes, scale, day, month, mark, longest, long, rounded = found
    counted = dict(shapes or {})
    return Column(
        target.columns[at], cells, nulls, filled, different, counted, scale or 0, day, month,
        mark or "", longest or 0, long, rounded, dict(words),
        tuple(sample for (sample,) in samples), _unlike(connection, counted, filled),
    )  # fmt: skip


def _unlike(
    connection: duckdb.DuckDBPyConnection, shapes: Mapping[str, int], filled: int
) -> tuple[int, str] | None:
    """The first cell that is no number, where most are; text among text says nothing."""
    numbers = sum(shapes.get(shape, 0) for shape in ("integer", "decimal"))
    if numbers == filled or numbers < _MOST * filled or "zeros" in shapes:
        return None
    found = connection.execute(
        "select n, cell from cells where cell <> '' and not list_contains($1, cell) "
        "and not number_shape(cell) order by n limit 1",
        [list(NULL_WORDS)],
    ).fetchall()
    return (found[0][0], found[0][1][:60]) if found else None
