"""``tallybook analyze``: throughput, latency, leases, backlog, double runs, settings of a book."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tallybook.cli import output
from tallybook.errors import BadInput

if TYPE_CHECKING:
    import polars

    from tallybook.ops import Span, Warehouse

HELP = "throughput, latency, leases, backlog, double runs and settings, from the log alone"
_FINDINGS, _INCOMPLETE = 1, 4
_WRITER = 8
_SHOWN = 20
_MEASURES = ("wait", "run", "total")
_MARKS = ("mean", "p50", "p90", "p95", "p99", "max")
_GROUPS = {
    "throughput": ("topic", "worker"),
    "latency": ("topic", "worker", "error", "node"),
    "leases": ("status", "topic", "worker"),
}
_BY_WINDOW = ("throughput", "latency", "backlog")
_WHAT = {
    "throughput": "jobs that arrived, started and were completed, by window",
    "latency": "how long jobs waited, ran and took in all",
    "leases": "leases that are open, and those that did not end as they should",
    "backlog": "what is pending, when it is gone, and what to do about it",
    "double-runs": "runs of one job that overlapped",
    "settings": "lease, timeout, backoff and limits against the runs that were measured",
}


@dataclass(frozen=True, slots=True)
class Told:
    """An answer: as JSON, as text, and whether there is something in it for a person to do."""

    shown: Mapping[str, Any]
    text: Callable[[], str]
    is_finding: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as it was typed; ``at`` is when leases are judged, None for the end of the log."""

    span: Span
    by: str | None
    against: Span | None
    as_of: datetime | str | None
    at: datetime | None = None


def add(parser: argparse.ArgumentParser) -> None:
    """The questions and their options."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="|".join(_WHAT))
    for name, what in _WHAT.items():
        _add(actions.add_parser(name, help=what, description=what), name)


def _add(action: argparse.ArgumentParser, name: str) -> None:
    action.add_argument("--since", metavar="TIME", help="from then on, as 2026-11-29T22:00")
    action.add_argument("--until", metavar="TIME", help="up to then, not including it")
    action.add_argument("--zone", default="UTC", metavar="ZONE", help="as Europe/Berlin")
    if name in _BY_WINDOW:
        action.add_argument("--every", default="", metavar="LENGTH", help="30s, 5m, 1h, 1d, auto")
    if name in _GROUPS:
        action.add_argument("--by", choices=_GROUPS[name], help="one row a group")
    if name == "latency":
        action.add_argument("--against", metavar="TIME/TIME", help="compare with that period")
    action.add_argument("--as-of", metavar="TIME", help="what was known then; or now")
    output.add_book(action)
    output.add_json(action)


def run(args: argparse.Namespace) -> int:
    """0; 1 where leases, double runs or settings are found wrong; 4 where the log has holes."""
    from tallybook import ops
    from tallybook.layout import find_book

    asked = _asked(args)
    with ExitStack() as stack:
        whole = stack.enter_context(ops.open(find_book(args.book)))
        warehouse = stack.enter_context(whole.as_of(asked.as_of)) if asked.as_of else whole
        # Heartbeats tell of the end of the log alone, so leases are judged by the whole of it.
        judged = whole if args.action == "leases" else warehouse
        told = _ANSWERS[args.action](judged, replace(asked, at=_moment(asked, warehouse)))
        notes, warnings = whole.notes, whole.warnings
    shown = {**told.shown, "complete": not notes, "warnings": [*notes, *warnings]}
    output.answer(shown, args.json, lambda: _text(told, [*notes, *warnings]))
    if notes:
        return _INCOMPLETE
    return _FINDINGS if told.is_finding else 0


def _asked(args: argparse.Namespace) -> Asked:
    from tallybook.ops import Span

    span = Span(args.since, args.until, getattr(args, "every", ""), args.zone)
    against = _period(args.against, args.zone) if getattr(args, "against", None) else None
    return Asked(span, getattr(args, "by", None), against, _place(args.as_of, args.zone))


def _place(as_of: str | None, zone: str) -> datetime | str | None:
    """The instant of ``--as-of``; text where it names a position, as ``writer:seq``."""
    from tallybook.ops import windows

    if as_of == "now":
        return datetime.now(UTC)
    writer, colon, seq = (as_of or "").partition(":")
    if colon and seq.isdecimal() and len(writer) >= _WRITER:
        return as_of
    return windows.instant(as_of, windows.named_zone(zone))


def _moment(asked: Asked, warehouse: Warehouse) -> datetime | None:
    from tallybook.ops import questions, windows

    if isinstance(asked.as_of, str):
        return questions.reach(warehouse, windows.WHOLE)[1] - windows.MICROSECOND
    return asked.as_of


def _period(given: str, zone: str) -> Span:
    from tallybook.ops import Span

    since, slash, until = given.partition("/")
    if not (since and slash and until):
        raise BadInput(f"--against {given!r}: write two times, as 2026-11-28/2026-11-29")
    return Span(since, until, zone=zone)


def _text(told: Told, warnings: Sequence[str]) -> str:
    return "\n\n".join([told.text(), *(f"note: {warning}" for warning in warnings)])


# the answers


def _throughput(warehouse: Warehouse, asked: Asked) -> Told:
    from tallybook import ops

    rows = _plain(ops.throughput(warehouse, asked.span, by=asked.by))
    for row in rows:
        row["n"] = row["completions"]
    columns = [*_labels(rows, asked.by), "arrivals", "starts", "completions", "arrivals_per_s",
               "starts_per_s", "completions_per_s"]  # fmt: skip
    return Told({"groups": rows}, lambda: _table(rows, columns, rows_shown=None))


def _latency(warehouse: Warehouse, asked: Asked) -> Told:
    from tallybook import ops

    if asked.against:
        return _compared(warehouse, asked, asked.against)
    rows = _plain(ops.latency(warehouse, asked.span, by=asked.by))
    groups = [_nested(row) for row in rows]
    labels = _labels(rows, asked.by)
    return Told({"groups": groups}, lambda: _latency_text(groups, labels))


def _compared(warehouse: Warehouse, asked: Asked, before: Span) -> Told:
    from tallybook import ops

    rows = _plain(ops.compare(warehouse, before, asked.span, by=asked.by))
    columns = [*_labels(rows, asked.by), "measure", "before", "after", "difference", "ratio",
               "n_before", "n_after"]  # fmt: skip
    return Told({"groups": rows}, lambda: _table(rows, columns, rows_shown=None))


def _leases(warehouse: Warehouse, asked: Asked) -> Told:
    from tallybook import ops
    from tallybook.ops.leases import FINE

    found = ops.lease_states(warehouse, asked.span, at=asked.at)
    rows = _plain(found)
    wrong = [row for row in rows if row["status"] not in FINE or row["ended_at"] is not None]
    counts = _plain(found.group_by(asked.by or "status").len("leases").sort(asked.by or "status"))
    columns = ["status", "job_id", "worker", "lease_token", "detail", "command"]
    none = warehouse.silent.get("leases", "no lease is open, and each ended as it should")
    return Told(
        {"groups": counts, "leases": rows},
        lambda: _listed(counts, rows, columns, none),
        bool(wrong),
    )


def _backlog(warehouse: Warehouse, asked: Asked) -> Told:
    from tallybook import ops
    from tallybook.ops import questions

    rows, found = _plain(ops.backlog(warehouse, asked.span)), ops.advice(warehouse, asked.span)
    depth = _plain(questions.depth(warehouse, asked.span)) if asked.span.every else []
    shown = {"groups": rows, "depth": depth, "advice": [asdict(one) for one in found]}
    columns = ["topic", "pending", "due", "leased", "arrivals_per_s", "completions_per_s",
               "service_per_s", "utilisation", "drain_s", "drain_low_s", "drain_high_s", "workers",
               "workers_needed"]  # fmt: skip

    def text() -> str:
        named = [row | {"topic": row["topic"] or "(all)"} for row in rows]
        parts = [_table(named, columns)]
        if depth:
            depths = ["window_end", "pending", "leased", "dead"]
            parts.append(_table(depth, depths, rows_shown=None))
        words = [f"{one.kind}, {one.topic or 'all topics'}: {one.words}" for one in found]
        return "\n\n".join([*parts, "\n".join(words or ["nothing is pending"])])

    return Told(shown, text)


def _double_runs(warehouse: Warehouse, asked: Asked) -> Told:
    from tallybook import ops

    rows = _plain(ops.double_runs(warehouse, asked.span))
    columns = ["job_id", "first_worker", "second_worker", "overlap_s", "winner_token",
               "winner_settle", "refused_tokens", "command"]  # fmt: skip
    none = "no two runs of a job overlapped"
    return Told({"groups": rows}, lambda: _table(rows, columns) if rows else none, bool(rows))


def _settings(warehouse: Warehouse, asked: Asked) -> Told:
    from tallybook import ops

    rows = _plain(ops.settings_review(warehouse, asked.span))
    columns = ["topic", "setting", "value", "verdict", "over", "n", "proposed", "detail"]
    none = "no job was claimed in this span: nothing is measured"
    none = warehouse.silent.get("settings", none)
    unsafe = any(row["verdict"] == "unsafe" for row in rows)
    return Told(
        {"groups": rows}, lambda: _table(rows, columns, rows_shown=None) if rows else none, unsafe
    )


_ANSWERS: Mapping[str, Callable[[Warehouse, Asked], Told]] = {
    "throughput": _throughput,
    "latency": _latency,
    "leases": _leases,
    "backlog": _backlog,
    "double-runs": _double_runs,
    "settings": _settings,
}


# how they look


def _plain(frame: polars.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame, with times as text."""
    return [
        {name: value.isoformat() if isinstance(value, datetime) else value
         for name, value in row.items()}
        for row in frame.to_dicts()
    ]  # fmt: skip


def _labels(rows: Sequence[Mapping[str, Any]], by: str | None) -> list[str]:
    window = ["window_start"] if rows and "window_start" in rows[0] else []
    return [*window, *([by] if by else [])]


def _nested(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of latency with one object a measure."""
    measured = {
        f"{measure}_s": {
            **{mark: row[f"{measure}_{mark}_s"] for mark in _MARKS},
            "negative": row[f"{measure}_negative"],
        }
        for measure in _MEASURES
    }
    flat = {name: value for name, value in row.items() if not name.startswith(_MEASURES)}
    return flat | measured


def _latency_text(groups: Sequence[Mapping[str, Any]], labels: Sequence[str]) -> str:
    rows = [
        {name: group[name] for name in (*labels, "n", "open", "open_oldest_s")}
        | {"time": measure, **group[f"{measure}_s"]}
        for group in groups
        for measure in _MEASURES
    ]
    columns = [*labels, "n", "open", "open_oldest_s", "time", *_MARKS, "negative"]
    return _table(rows, columns, rows_shown=None) + "\n\ntimes in seconds"


def _listed(
    counts: Sequence[Mapping[str, Any]],
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[str],
    none: str,
) -> str:
    if not rows:
        return none
    return "\n\n".join([_table(counts, list(counts[0])), _table(rows, columns)])


def _table(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str], rows_shown: int | None = _SHOWN
) -> str:
    """A table of the first rows, which says how many more there are."""
    shown = output.table([_rounded(row) for row in rows[:rows_shown]], columns)
    left = len(rows) - len(rows[:rows_shown])
    more = f"\nand {output.counted(left, 'more row')}; --json gives all" if left else ""
    return shown + more


def _rounded(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row whose numbers fit a table: six digits that count."""
    return {
        name: float(f"{value:.6g}") if isinstance(value, float) else value
        for name, value in row.items()
    }
