"""Questions about the jobs of a warehouse: how many, how fast, how they ended, what happened."""

from datetime import datetime
from typing import Any

import polars

from tallybook.errors import BadInput
from tallybook.ops import statements, windows
from tallybook.ops.warehouse import Warehouse
from tallybook.ops.windows import AUTO, WHOLE, Span, Windows

GROUPS = ("topic", "worker", "error", "node")
RATES = ("topic", "worker")
MEASURES = ("wait", "run", "total")
_PERCENTILES = ("p50", "p90", "p95", "p99")
# Above so many jobs their times are ranked by a plan that spills to disk.
MOST_IN_MEMORY = 8_000_000
_UNTOLD = {"cache": "cache_keys", "workers": "workers"}


def overview(warehouse: Warehouse) -> polars.DataFrame:
    """One row: events, jobs by status, workers, keys, first_at, last_at, span_s.

    Of an imported log that says nothing of a cache, or names no workers, these are null.
    """
    frame = warehouse.frame("overview")
    untold = [name for what, name in _UNTOLD.items() if what in warehouse.silent]
    return frame.with_columns(polars.lit(None).cast(frame.schema[name]).alias(name)
                              for name in untold)  # fmt: skip


def model_columns(warehouse: Warehouse) -> polars.DataFrame:
    """One row a column that ``warehouse.sql`` can ask for: model, column, kind."""
    return warehouse.frame("model_columns")


def throughput(
    warehouse: Warehouse, span: Span = WHOLE, *, by: str | None = None
) -> polars.DataFrame:
    """One row a window, empty ones too: arrivals, starts, completions and each per second.

    A rate is over the seconds of the window that lie in the span (``covered_s``), and only what
    lies there is counted. ``window_start`` and ``window_end`` are in its zone.
    """
    _require_group(by, RATES)
    asked = divided(warehouse, span, span.every or AUTO)
    return _named(_asked(warehouse, "throughput", asked, span, by=by or ""), by)


def latency(warehouse: Warehouse, span: Span = WHOLE, *, by: str | None = None) -> polars.DataFrame:
    """One row a group of the jobs enqueued in the span, and a window of it if ``span.every``;
    times in seconds.

    n (jobs that ended), open (that did not), open_oldest_s (their longest age: a lower bound),
    then wait_ (due to first start), run_ (last run) and total_ (due to end), each as mean_s,
    p50_s, p90_s, p95_s, p99_s, max_s and negative. Percentiles are exact, by linear interpolation;
    null where nothing was measured. A group ``by="error"`` is the last error of its jobs.
    """
    _require_group(by, GROUPS)
    first, last, jobs = warehouse.frame("arrival_span").row(0)
    asked = _split(span.within(first, last), span, span.every)
    macro = "measured_at_once" if jobs <= MOST_IN_MEMORY else "measured_by_rank"
    found = _in_seconds(_asked(warehouse, "latency", asked, span, macro, by=by or ""))
    return _named(found.drop([] if span.every else ["window_start", "window_end"]), by)


def outcomes(warehouse: Warehouse, span: Span = WHOLE) -> polars.DataFrame:
    """One row an error_type and http_status: attempts retried and dead, jobs, an example job."""
    start, end = reach(warehouse, span)
    return warehouse.frame("outcomes", {"since": start, "until": end})


def depth(warehouse: Warehouse, span: Span = WHOLE) -> polars.DataFrame:
    """One row a window: jobs pending, leased and dead at its end."""
    return by_window(warehouse, "depth", span)


def latency_cells(warehouse: Warehouse, span: Span = WHOLE) -> polars.DataFrame:
    """One row a window of arrival and a band of total time (from_s, to_s): jobs; else nulls, 0."""
    return by_window(warehouse, "latency_cells", span, "arrival_span")


def failures(warehouse: Warehouse, span: Span = WHOLE) -> polars.DataFrame:
    """One row a window and reason with failed attempts: attempts; a window without has null, 0."""
    return by_window(warehouse, "failures", span)


def busy(warehouse: Warehouse, span: Span = WHOLE) -> polars.DataFrame:
    """One row a window and worker: held_s (seconds of leases held) and held (leases on average).

    A window in which no lease was held has one row, with null and 0.
    """
    return by_window(warehouse, "busy", span)


def cache_changes(warehouse: Warehouse, span: Span = WHOLE) -> polars.DataFrame:
    """One row a window: puts, invalidations, and the keys in the cache at its end."""
    return by_window(warehouse, "cache_changes", span)


def trace(warehouse: Warehouse, id: str) -> polars.DataFrame:
    """Every event of a job, correlation id, idempotency key or cache key, in order of history.

    Columns: at_s (since the first), occurred_at, event, job_id, worker, lease_token, what, seq,
    writer. Empty where nothing has that id.
    """
    return warehouse.frame("trace", {"id": id})


def reach(warehouse: Warehouse, span: Span, of: str = "log_span") -> tuple[datetime, datetime]:
    """The span, as far as it is open that of the log (or of the arrivals)."""
    first, last = warehouse.frame(of).row(0)[:2]
    return span.within(first, last)


def divided(warehouse: Warehouse, span: Span, every: str, of: str = "log_span") -> Windows:
    """The span in windows of ``every``; as one window where that is empty."""
    return _split(reach(warehouse, span, of), span, every)


def _split(reached: tuple[datetime, datetime], span: Span, every: str) -> Windows:
    start, end = reached
    if not every:
        return windows.whole(start, end)
    step = windows.length(every, end - start)
    return windows.split(start, end, step, windows.named_zone(span.zone))


def by_window(
    warehouse: Warehouse, name: str, span: Span, of: str = "log_span"
) -> polars.DataFrame:
    """The frame of a statement that gives rows by window."""
    return _asked(warehouse, name, divided(warehouse, span, span.every or AUTO, of), span)


def _asked(
    warehouse: Warehouse, name: str, asked: Windows, span: Span, *macros: str, **values: Any
) -> polars.DataFrame:
    for macro in ("timing", *macros):
        warehouse.sql(statements.query(macro))
    known, text = asked.parameters() | values, statements.query(name)
    taken = {key: value for key, value in known.items() if f"${key}" in text}
    return _in_zone(warehouse.frame(name, taken), span.zone)


def _in_seconds(found: polars.DataFrame) -> polars.DataFrame:
    """The measures of ``latency`` in seconds, a column each."""
    columns = [polars.col("n", "open").fill_null(0), polars.col("open_oldest_s")]
    for measure in MEASURES:
        ranked = polars.col(measure).list
        columns.append((polars.col(f"{measure}_mean") / 1e6).alias(f"{measure}_mean_s"))
        columns += [
            (ranked.get(place, null_on_oob=True) / 1e6).alias(f"{measure}_{mark}_s")
            for place, mark in enumerate(_PERCENTILES)
        ]
        columns.append((polars.col(f"{measure}_max") / 1e6).alias(f"{measure}_max_s"))
        columns.append(polars.col(f"{measure}_negative").fill_null(0))
    return found.select("window_start", "window_end", "group", *columns)


def _require_group(by: str | None, known: tuple[str, ...]) -> None:
    if by is not None and by not in known:
        raise BadInput(f"cannot group by {by!r}; choose {' or '.join(known)}")


def _named(frame: polars.DataFrame, by: str | None) -> polars.DataFrame:
    return frame.drop("group") if by is None else frame.rename({"group": by})


def _in_zone(frame: polars.DataFrame, zone: str) -> polars.DataFrame:
    moments = [name for name in ("window_start", "window_end") if name in frame.columns]
    return frame.with_columns(polars.col(moments).dt.convert_time_zone(zone))
