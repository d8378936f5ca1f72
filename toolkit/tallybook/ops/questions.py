"""Questions about the jobs of a warehouse: how many, how fast, how they ended, what happened."""

from datetime import datetime, timedelta
from typing import Any

import polars

from tallybook.errors import BadInput
from tallybook.ops import windows
from tallybook.ops.warehouse import Warehouse
from tallybook.ops.windows import Instant, Window

GROUPS = ("topic", "worker")


def overview(warehouse: Warehouse) -> polars.DataFrame:
    """One row: events, jobs by status, workers, keys, first_at, last_at, span_s."""
    return warehouse.frame("overview")


def throughput(
    warehouse: Warehouse,
    *,
    every: str = "auto",
    since: Instant = None,
    until: Instant = None,
    zone: str = "UTC",
) -> polars.DataFrame:
    """One row a window, empty ones too: arrivals, starts, completions and each per second.

    A rate is over the seconds of the window that lie between ``since`` and ``until``.
    ``window_start`` and ``window_end`` are in ``zone``.
    """
    spans = _windows(warehouse, every, since, until, zone)
    covered = [window.covered_s for window in spans]
    return _in_zone(warehouse.frame("throughput", {**_bounds(spans), "covered": covered}), zone)


def latency(
    warehouse: Warehouse,
    *,
    by: str | None = None,
    every: str | None = None,
    since: Instant = None,
    until: Instant = None,
    zone: str = "UTC",
) -> polars.DataFrame:
    """One row a group and window of the jobs enqueued in it, times in seconds.

    n (jobs that ended), open (that did not), open_oldest_s (their longest age: a lower bound),
    then wait_ (due to first start), run_ (last run) and total_ (due to end), each as mean_s,
    p50_s, p90_s, p95_s, p99_s, max_s and negative. Percentiles are exact, by linear interpolation;
    null where nothing was measured.
    """
    if by is not None and by not in GROUPS:
        raise BadInput(f"cannot group by {by!r}; choose topic or worker")
    spans = _windows(warehouse, every, since, until, zone, "arrival_span")
    found = warehouse.frame("latency", {**_bounds(spans), "by": by or ""})
    found = found.drop([] if every else ["window_start", "window_end"])
    named = found.drop("group") if by is None else found.rename({"group": by})
    return _in_zone(named, zone)


def outcomes(
    warehouse: Warehouse, *, since: Instant = None, until: Instant = None, zone: str = "UTC"
) -> polars.DataFrame:
    """One row an error_type and http_status: attempts retried and dead, jobs, an example job."""
    start, end = span(warehouse, since, until, zone)
    return warehouse.frame("outcomes", {"since": start, "until": end})


def depth(
    warehouse: Warehouse,
    *,
    every: str = "auto",
    since: Instant = None,
    until: Instant = None,
    zone: str = "UTC",
) -> polars.DataFrame:
    """One row a window: jobs pending, leased and dead at its end."""
    return _by_window(warehouse, "depth", every, since, until, zone)


def latency_cells(
    warehouse: Warehouse,
    *,
    every: str = "auto",
    since: Instant = None,
    until: Instant = None,
    zone: str = "UTC",
) -> polars.DataFrame:
    """One row a window of arrival and a band of total time (from_s, to_s): jobs; else nulls, 0."""
    return _by_window(warehouse, "latency_cells", every, since, until, zone, "arrival_span")


def failures(
    warehouse: Warehouse,
    *,
    every: str = "auto",
    since: Instant = None,
    until: Instant = None,
    zone: str = "UTC",
) -> polars.DataFrame:
    """One row a window and reason with failed attempts: attempts; a window without has null, 0."""
    return _by_window(warehouse, "failures", every, since, until, zone)


def busy(
    warehouse: Warehouse,
    *,
    every: str = "auto",
    since: Instant = None,
    until: Instant = None,
    zone: str = "UTC",
) -> polars.DataFrame:
    """One row a window and worker: held_s (seconds of leases held) and held (leases on average).

    A window in which no lease was held has one row, with null and 0.
    """
    return _by_window(warehouse, "busy", every, since, until, zone)


def cache_changes(
    warehouse: Warehouse,
    *,
    every: str = "auto",
    since: Instant = None,
    until: Instant = None,
    zone: str = "UTC",
) -> polars.DataFrame:
    """One row a window: puts, invalidations, and the keys in the cache at its end."""
    return _by_window(warehouse, "cache_changes", every, since, until, zone)


def trace(warehouse: Warehouse, id: str) -> polars.DataFrame:
    """Every event of a job, correlation id, idempotency key or cache key, in order of history.

    Columns: at_s (since the first), occurred_at, event, job_id, worker, lease_token, what, seq,
    writer. Empty where nothing has that id.
    """
    return warehouse.frame("trace", {"id": id})


def span(
    warehouse: Warehouse, since: Instant, until: Instant, zone: str = "UTC", of: str = "log_span"
) -> tuple[datetime, datetime]:
    """The asked span, else that of the log (or of the arrivals); its end is not part of it."""
    named = windows.named_zone(zone)
    first, last = warehouse.frame(of).row(0)
    epoch = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
    start = windows.instant(since, named) or first or epoch
    end = windows.instant(until, named) or (last or start) + timedelta(microseconds=1)
    if since and until and end <= start:
        raise BadInput(f"since {since} is not before until {until}")
    return start, max(end, start + timedelta(microseconds=1))


def _windows(
    warehouse: Warehouse,
    every: str | None,
    since: Instant,
    until: Instant,
    zone: str,
    of: str = "log_span",
) -> list[Window]:
    start, end = span(warehouse, since, until, zone, of)
    if every is None:
        return [Window(start, end, (end - start).total_seconds())]
    step = windows.length(every, end - start)
    return windows.split(start, end, step, windows.named_zone(zone))


def _by_window(
    warehouse: Warehouse,
    name: str,
    every: str,
    since: Instant,
    until: Instant,
    zone: str,
    of: str = "log_span",
) -> polars.DataFrame:
    spans = _windows(warehouse, every, since, until, zone, of)
    return _in_zone(warehouse.frame(name, _bounds(spans)), zone)


def _bounds(spans: list[Window]) -> dict[str, Any]:
    return {
        "starts": [window.start_at for window in spans],
        "ends": [window.end_at for window in spans],
    }


def _in_zone(frame: polars.DataFrame, zone: str) -> polars.DataFrame:
    moments = [name for name in ("window_start", "window_end") if name in frame.columns]
    return frame.with_columns(polars.col(moments).dt.convert_time_zone(zone))
