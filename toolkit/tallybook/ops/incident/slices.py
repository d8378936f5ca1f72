"""Slices of a span of time, and what is asked about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

import polars

from tallybook.errors import BadInput
from tallybook.ops import windows
from tallybook.ops.incident import tables
from tallybook.ops.incident.tables import Grains
from tallybook.ops.interrupts import interruptible
from tallybook.ops.warehouse import Warehouse
from tallybook.ops.windows import EPOCH, MICROSECOND, WHOLE, Instant, Span
from tallybook.statements import load

MEASURES = ("run_us", "wait_us", "total_us")
SHOWN = 50
_PLACES = 60
_DEVIATIONS, _LEAST = 4.0, 0.01
_LEASE = ("lease_token", "topic", "worker", "how", "error", "endpoint", "payload_size", "took_s",
          "total_s", "ended_at")  # fmt: skip
_ROOM = "tallybook.ops.incident"
_STATEMENTS = {
    **load(_ROOM, "slices.sql"),
    **load(_ROOM, "differences.sql"),
    **{f"at_{name}": text for name, text in load(_ROOM, "moments.sql").items()},
}


@dataclass(frozen=True, slots=True)
class Slice:
    """The grains from ``first`` up to, not including, ``last``, and the times that they reach,
    on the clock of ``zone``."""

    first: int
    last: int
    since: datetime
    until: datetime
    zone: str = "UTC"

    @property
    def span(self) -> Span:
        """The same as a span, for every other question of ops."""
        return Span(self.since, self.until, zone=self.zone)

    @property
    def width(self) -> int:
        """Grains to a window, so that some sixty windows show the slice."""
        return -(-(self.last - self.first) // _PLACES)


class Incident:
    """A span of a warehouse, ready to be asked about slices of it.

    It answers from what the log held when it was made; close it before the warehouse.
    """

    def __init__(self, warehouse: Warehouse, span: Span = WHOLE) -> None:
        self.grains: Grains = tables.over(warehouse, span)
        self._beside = tables.make(warehouse, self.grains)

    @property
    def whole(self) -> Slice:
        """The slice that is the whole span."""
        return self._slice(0, self.grains.count)

    def slice(self, since: Instant = None, until: Instant = None) -> Slice:
        """The grains that ``since`` to ``until`` touch; where one is not given, to the span's end.

        Raises BadInput for a time that is none, and where nothing of the span lies between.
        """
        zone = windows.named_zone(self.grains.zone)
        start, end = windows.instant(since, zone), windows.instant(until, zone)
        if start and end:
            windows.require_order(start, end)
        first = (start - self.grains.since) // self.grains.step if start else 0
        last = -(-(end - self.grains.since) // self.grains.step) if end else self.grains.count
        first, last = max(first, 0), min(last, self.grains.count)
        if first >= last:
            raise BadInput(
                f"nothing of {self.grains.since.isoformat()} to {self.grains.until.isoformat()} "
                f"lies between {since} and {until}"
            )
        return self._slice(first, last)

    def _slice(self, first: int, last: int) -> Slice:
        grains, zone = self.grains, windows.named_zone(self.grains.zone)
        since, until = (grains.start(grain).astimezone(zone) for grain in (first, last))
        return Slice(first, last, since, until, grains.zone)

    # what happened

    def flow(self) -> polars.DataFrame:
        """One row a grain of the span: since, arrivals, starts, completions."""
        return self._timed(self._ask("flow", count=self.grains.count), self.whole, 1, "grain")

    def summary(self, part: Slice) -> polars.DataFrame:
        """Two rows, inside true and false: grains, leases n that ended, failed, busy_s."""
        return self._ask("summary", part, count=self.grains.count)

    def latency(self, part: Slice) -> polars.DataFrame:
        """One row a window and measure (run_us, wait_us, total_us): since, n, p50, p95, p99 (s).

        Percentiles come from bands: they are right to 0.6 %.
        """
        return self._timed(self._ask("latency", part, width=part.width), part, part.width)

    def heat(self, part: Slice) -> polars.DataFrame:
        """One row a window and band of run time (from_s, to_s): since, until, leases n."""
        return self._timed(self._ask("heat", part, width=part.width), part, part.width)

    def lanes(self, part: Slice) -> polars.DataFrame:
        """One row a window and worker: since, until, held_s (seconds of leases held)."""
        return self._timed(self._ask("lanes", part, width=part.width), part, part.width)

    def taken(self, part: Slice, limit: int = 300) -> polars.DataFrame:
        """One row a lease taken from its holder: worker, how, since, until (within the slice)."""
        since, until = _micros(part.since), _micros(part.until)
        found = self._ask("taken", limit=limit, since=since, until=until)
        return found.select("worker", "how", since=_moment("from_us", part.zone),
                            until=_moment("until_us", part.zone))  # fmt: skip

    def errors(self, part: Slice) -> polars.DataFrame:
        """One row a window and error: since, until, leases n that ended so."""
        return self._timed(self._ask("errors", part, width=part.width), part, part.width)

    def names(self, part: Slice) -> polars.DataFrame:
        """One row a value of a dimension in the slice: id, dimension, name, leases n."""
        return self._ask("names", part)

    def worst(self, part: Slice, id: int | None = None, limit: int = SHOWN) -> polars.DataFrame:
        """One row a lease that ended in the slice, failed ones first, then the longest.

        Columns: job_id, idempotency_key, lease_token, topic, worker, how, error, endpoint,
        payload_size, took_s, total_s, ended_at. ``id`` keeps to a value that ``names`` gives.
        """
        found = self._ask("worst", part, id=id, limit=limit)
        jobs = self._ask("named", positions=found["job_position"].unique().to_list())
        named = found.join(jobs, on="job_position", how="left", maintain_order="left")
        ended = named.with_columns(ended_at=_moment("ended_us", part.zone))
        return ended.select("job_id", "idempotency_key", *_LEASE)

    def differences(self, part: Slice) -> polars.DataFrame:
        """One row a value and way in which the slice differs from the rest of the span, most first.

        Columns: dimension, name, way (occurs, fails, takes longer), excess (the share of the
        slice's leases or of their time beyond what the rest leads to expect), here, elsewhere
        (share, failing share, mean seconds), n, rest_n, deviations, id. Empty where the slice is
        the whole span.
        """
        return self._ask("differences", part, deviations=_DEVIATIONS, least=_LEAST)

    # what stood at an instant

    def end_of(self, grain: int) -> datetime:
        """The last microsecond of a grain: the instant that ``at`` it means."""
        return self.grains.start(grain + 1) - MICROSECOND

    def queue(self, grain: int) -> polars.DataFrame:
        """One row a topic: jobs pending, leased, done, dead, cancelled at the end of ``grain``."""
        return self._ask("at_queue", until_grain=grain + 1)

    def depth(self) -> polars.DataFrame:
        """One row a grain: since, and the jobs pending, leased and dead at its end."""
        found = self._ask("at_depth", count=self.grains.count)
        return self._timed(found.filter(polars.col("grain") >= 0), self.whole, 1, "grain")

    def leases(self, grain: int) -> polars.DataFrame:
        """One row a worker with open leases at the end of ``grain``: leases, oldest_s."""
        return self._ask("at_leases", at=_micros(self.end_of(grain)))

    def cache(self, grain: int, limit: int = SHOWN) -> tuple[int, polars.DataFrame]:
        """How many keys were cached at the end of ``grain``, and those written last: key,
        version, value, updated_at, job_id."""
        at = _micros(self.end_of(grain))
        keys = self._ask("at_cache_keys", at=at)["keys"].item()
        newest = self._ask("at_cache_newest", at=at, limit=limit)["position"].to_list()
        entries = self._ask("at_entries", positions=newest)
        zone = self.grains.zone
        return keys, entries.with_columns(polars.col("updated_at").dt.convert_time_zone(zone))

    def close(self) -> None:
        """Free the small tables."""
        self._beside.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def _ask(self, name: str, part: Slice | None = None, **values: Any) -> polars.DataFrame:
        """The frame of a named statement; a slice gives $first and $last."""
        text = _STATEMENTS[name]
        known: Mapping[str, Any] = (
            values | {"first": part.first, "last": part.last} if part else values
        )
        with interruptible():
            found: polars.DataFrame = self._beside.sql(text, known).pl()
        return found

    def _timed(
        self, found: polars.DataFrame, part: Slice, width: int, column: str = "place"
    ) -> polars.DataFrame:
        """The frame with since and until of each window instead of its number."""
        length = self.grains.step * width
        first = polars.lit(part.since.astimezone(UTC)).dt.convert_time_zone(part.zone)
        since = first + polars.col(column) * length
        last = polars.lit(part.until.astimezone(UTC)).dt.convert_time_zone(part.zone)
        until = polars.min_horizontal(since + length, last)
        return found.select(polars.exclude(column), since=since, until=until).select(
            "since", "until", polars.exclude("since", "until")
        )


def _micros(moment: datetime) -> int:
    return (moment - EPOCH) // MICROSECOND


def _moment(column: str, zone: str) -> polars.Expr:
    return polars.from_epoch(column, "us").dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
