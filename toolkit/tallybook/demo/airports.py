"""The real input: airports of the PyPI package ``airportsdata``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tallybook.demo.faults import lowest
from tallybook.errors import BadInput

TOPIC = "airports.sync"
FEWEST = 20
COLUMNS = (
    "icao",
    "iata",
    "name",
    "city",
    "subd",
    "country",
    "elevation",
    "lat",
    "lon",
    "tz",
    "lid",
)


@dataclass(frozen=True, slots=True)
class Airport:
    """One record: its ICAO code and all its columns."""

    icao: str
    row: dict[str, Any]

    @property
    def idempotency_key(self) -> str:
        """The key of its one job."""
        return f"airport-{self.icao}"


def record_of(finding_id: str) -> str:
    """The ICAO code behind an idempotency key or a cache key."""
    return finding_id.removeprefix("airport-")


def airports(jobs: int | None, seed: int) -> list[Airport]:
    """``jobs`` airports chosen by ``seed``, or all (None), sorted by code.

    Raises BadInput when there are not as many.
    """
    table = _table()
    if jobs is not None and not FEWEST <= jobs <= len(table):
        raise BadInput(f"--jobs {jobs}: write {FEWEST} to {len(table)}, or all")
    codes = sorted(table) if jobs is None else sorted(lowest(seed, "record", table, jobs))
    return [Airport(code, {name: table[code][name] for name in COLUMNS}) for code in codes]


def _table() -> dict[str, dict[str, Any]]:
    import airportsdata

    return {code: dict(airport) for code, airport in airportsdata.load("ICAO").items()}
