"""``tallybook analyze``: throughput, latency, leases, backlog, double runs, settings of a book."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tallybook.cli import output, tables
from tallybook.errors import BadInput

if TYPE_CHECKING:
    from tallybook.ops import Span, Warehouse

HELP = "throughput, latency, leases, backlog, double runs and settings, from the log alone"
_FINDINGS, _INCOMPLETE = 1, 4
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
    from tallybook.ops import past, windows

    if as_of == "now":
        return datetime.now(UTC)
    if past.names_a_line(as_of):
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

    rows = tables.plain(ops.throughput(warehouse, asked.span, by=asked.by))
    for row in rows:
        row["n"] = row["completions"]
    columns = [*tables.labels(rows, asked.by), "arrivals", "starts", "completions",
               "arrivals_per_s", "starts_per_s", "completions_per_s"]  # fmt: skip
    return Told({"groups": rows}, lambda: tables.table(rows, columns, rows_shown=None))


def _latency(warehouse: Warehouse, asked: Asked) -> Told:
    from tallybook import ops

    if asked.against:
        return _compared(warehouse, asked, asked.against)
    rows = tables.plain(ops.latency(warehouse, asked.span, by=asked.by))
    groups = [tables.nested(row) for row in rows]
    labels = tables.labels(rows, asked.by)
    return Told({"groups": groups}, lambda: tables.latency_text(groups, labels))


def _compared(warehouse: Warehouse, asked: Asked, before: Span) -> Told:
    from tallybook import ops

    rows = tables.plain(ops.compare(warehouse, before, asked.span, by=asked.by))
    columns = [*tables.labels(rows, asked.by), "measure", "before", "after", "difference", "ratio",
               "n_before", "n_after"]  # fmt: skip
    return Told({"groups": rows}, lambda: tables.table(rows, columns, rows_shown=None))


def _leases(warehouse: Warehouse, asked: Asked) -> Told:
    from tallybook import ops
    from tallybook.ops.leases import FINE

    found = ops.lease_states(warehouse, asked.span, at=asked.at)
    rows = tables.plain(found)
    wrong = [row for row in rows if row["status"] not in FINE or row["ended_at"] is not None]
    counts = tables.plain(
        found.group_by(asked.by or "status").len("leases").sort(asked.by or "status")
    )
    columns = ["status", "job_id", "worker", "lease_token", "detail", "command"]
    none = warehouse.silent.get("leases", "no lease is open, and each ended as it should")
    return Told(
        {"groups": counts, "leases": rows},
        lambda: tables.listed(counts, rows, columns, none),
        bool(wrong),
    )


def _backlog(warehouse: Warehouse, asked: Asked) -> Told:
    from tallybook import ops
    from tallybook.ops import questions

    rows = tables.plain(ops.backlog(warehouse, asked.span))
    found = ops.advice(warehouse, asked.span)
    depth = tables.plain(questions.depth(warehouse, asked.span)) if asked.span.every else []
    shown = {"groups": rows, "depth": depth, "advice": [asdict(one) for one in found]}
    columns = ["topic", "pending", "due", "leased", "arrivals_per_s", "completions_per_s",
               "service_per_s", "utilisation", "drain_s", "drain_low_s", "drain_high_s", "workers",
               "workers_needed"]  # fmt: skip

    def text() -> str:
        named = [row | {"topic": row["topic"] or "(all)"} for row in rows]
        parts = [tables.table(named, columns)]
        if depth:
            depths = ["window_end", "pending", "leased", "dead"]
            parts.append(tables.table(depth, depths, rows_shown=None))
        words = [f"{one.kind}, {one.topic or 'all topics'}: {one.words}" for one in found]
        return "\n\n".join([*parts, "\n".join(words or ["nothing is pending"])])

    return Told(shown, text)


def _double_runs(warehouse: Warehouse, asked: Asked) -> Told:
    from tallybook import ops

    rows = tables.plain(ops.double_runs(warehouse, asked.span))
    columns = ["job_id", "first_worker", "second_worker", "overlap_s", "winner_token",
               "winner_settle", "refused_tokens", "command"]  # fmt: skip
    none = "no two runs of a job overlapped"
    return Told({"groups": rows}, lambda: tables.table(rows, columns) if rows else none, bool(rows))


def _settings(warehouse: Warehouse, asked: Asked) -> Told:
    from tallybook import ops

    rows = tables.plain(ops.settings_review(warehouse, asked.span))
    columns = ["topic", "setting", "value", "verdict", "over", "n", "proposed", "detail"]
    none = "no job was claimed in this span: nothing is measured"
    none = warehouse.silent.get("settings", none)
    unsafe = any(row["verdict"] == "unsafe" for row in rows)
    return Told(
        {"groups": rows},
        lambda: tables.table(rows, columns, rows_shown=None) if rows else none,
        unsafe,
    )


_ANSWERS: Mapping[str, Callable[[Warehouse, Asked], Told]] = {
    "throughput": _throughput,
    "latency": _latency,
    "leases": _leases,
    "backlog": _backlog,
    "double-runs": _double_runs,
    "settings": _settings,
}
