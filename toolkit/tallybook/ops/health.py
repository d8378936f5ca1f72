"""The health of a log: its segments, how it grows, when its clock was set, what is not kept."""

from __future__ import annotations

import polars

from tallybook.layout import Layout, segment_name
from tallybook.ops import questions
from tallybook.ops.finding import Finding
from tallybook.ops.thresholds import DEFAULTS, LogHealth
from tallybook.ops.warehouse import Warehouse
from tallybook.ops.windows import WHOLE, Span
from tallybook.ops.wording import command, counted

_MB = 1_000_000
_SIZES = {"segment": polars.String, "file": polars.String, "mb": polars.Float64}


def log_parts(warehouse: Warehouse) -> polars.DataFrame:
    """One row a segment, in order of history: segment, writer, events, first_seq, last_seq, missing
    (numbers inside it that no readable line carries), first_at, last_at, file, mb (of the file;
    null for one that was pruned and is read from the archive)."""
    place = Layout(warehouse.book)
    paths = place.segments() if place.log.is_dir() else []
    sizes = [(segment_name(path), path.name, path.stat().st_size / _MB) for path in paths]
    files = polars.DataFrame(sizes, schema=_SIZES, orient="row")
    parts = warehouse.frame("log_parts")
    return parts.join(files, on="segment", how="left", maintain_order="left")


def growth(warehouse: Warehouse, span: Span = WHOLE) -> polars.DataFrame:
    """One row a window and part of the log (jobs, cache, log, workers and topics): events."""
    return questions.by_window(warehouse, "growth", span)


def clock_moves(
    warehouse: Warehouse, span: Span = WHOLE, *, least_s: float = DEFAULTS.log_health.clock_s
) -> polars.DataFrame:
    """One row a time that the wall clock was set by ``least_s`` or more between two events of one
    boot: set_at, moved_s (negative: back), writer, seq, boot_id."""
    return warehouse.frame("clock_moves", {**span.bounds(), "least_s": least_s})


def repairs(warehouse: Warehouse, span: Span = WHOLE) -> polars.DataFrame:
    """One row a log.repaired: repaired_at, reason, lost_writer, first_lost_seq, last_lost_seq,
    writer, seq."""
    return warehouse.frame("repairs", span.bounds())


def findings(
    warehouse: Warehouse, span: Span = WHOLE, thresholds: LogHealth = DEFAULTS.log_health
) -> list[Finding]:
    """What is wrong with a log that can be read whole: clocks that were set, repairs, a checkpoint
    that is due, a segment that is too large. What cannot be read is said by ``incomplete``."""
    if warehouse.imported:
        return [Finding("clean", "info", "The log of another system: it has no segments of ours")]
    found = [
        _clock(warehouse, span, thresholds),
        _repaired(warehouse, span),
        _unkept(warehouse, thresholds),
        _large(warehouse, thresholds),
    ]
    parts = warehouse.frame("log_parts").height
    what = "What could be read of the log" if warehouse.notes else "The log"
    clean = Finding("clean", "info", f"{what} is sound, in {counted(parts, 'segment')}")
    return [one for one in found if one] or [clean]


def _clock(warehouse: Warehouse, span: Span, thresholds: LogHealth) -> Finding | None:
    moves = clock_moves(warehouse, span, least_s=thresholds.clock_s)
    if moves.is_empty():
        return None
    ids = tuple(f"{row['writer'][:8]}:{row['seq']}" for row in moves.to_dicts())
    words = [f"{row['set_at']:%Y-%m-%d %H:%M:%S}Z by {row['moved_s']:+,.3f} s"
             for row in moves.head(3).to_dicts()]  # fmt: skip
    told = "; ".join(words) + "; durations of that time are by the machine's own clock"
    act = command(warehouse.book, "analyze", "leases")
    title = f"Times that the clock was set while the log was written: {moves.height:,}"
    return Finding("clock_set", "warning", title, ids, told, act)


def _repaired(warehouse: Warehouse, span: Span) -> Finding | None:
    told = repairs(warehouse, span)
    if told.is_empty():
        return None
    ids = tuple(f"{row['writer'][:8]}:{row['seq']}" for row in told.to_dicts())
    reasons = told["reason"].drop_nulls().unique(maintain_order=True).to_list()
    title = f"Times that the log was repaired: {told.height:,}"
    verify = command(warehouse.book, "log", "verify")
    return Finding("repaired", "warning", title, ids, "; ".join(reasons[:3]), verify)


def _unkept(warehouse: Warehouse, thresholds: LogHealth) -> Finding | None:
    events, has_checkpoint = warehouse.frame("unkept").row(0)
    if events <= thresholds.unkept_events:
        return None
    since = "since the newest checkpoint" if has_checkpoint else "and there is no checkpoint"
    title = f"A fold of state.db reads {counted(events, 'event')}"
    told = f"{since}; borne are {thresholds.unkept_events:,}"
    return Finding("unkept", "warning", title, (), told, command(warehouse.book, "checkpoint"))


def _large(warehouse: Warehouse, thresholds: LogHealth) -> Finding | None:
    """Closed segments are compressed; a plain one that is large is the open one, or left plain."""
    parts = log_parts(warehouse).drop_nulls("mb")
    plain = parts.filter(polars.col("file") == polars.col("segment"))
    large = plain.filter(polars.col("mb") > thresholds.segment_mb)
    if large.is_empty():
        return None
    most = max(large["mb"].to_list())
    told = f"the largest has {most:,.1f} MB; borne are {thresholds.segment_mb:,.1f} MB"
    title = f"Plain segments that are large: {large.height:,}"
    compact = "in book.toml: [log] segment_bytes, segment_age_s"
    return Finding("large_segment", "warning", title, tuple(large["segment"]), told, compact)
