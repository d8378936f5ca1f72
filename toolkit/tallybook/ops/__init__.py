"""ops: answers about books, from their files alone.

It never imports the runtime and never writes into a book, so it also serves a copy of a log on a
laptop. It rests on five steps:

    look        what is there: segments, how they begin, the archive       survey, openings, archive
    load        segments become one table, line by line accounted for      loading, judge, refusals
    order       writers by their links, then seq; doubles and holes        openings, history
    models      a SQL view each, its grain on the first line               models/*.sql
    questions   one statement each, values only as parameters              queries/*.sql

``open`` gives a ``Warehouse``, an in-memory DuckDB over the files of one book:

    warehouse = ops.open("book")
    warehouse.sql("from jobs where status = 'dead'").pl()
    warehouse.quarantine, warehouse.gaps, warehouse.notes     # what is missing, always said

Each question is a function here that takes the warehouse, most a ``Span`` of time too, and gives
a Polars frame: ``overview``, ``throughput``, ``latency``, ``compare``, ``outcomes``,
``lease_states``, ``double_runs``, ``backlog`` (with ``advice`` in words), ``settings_review``,
``trace``, ``cache_as_of``, ``compare_cache``, ``cache_parity``, ``dead_letters``, ``log_parts``;
``coverage`` says whether a question could have found anything. A detector (``answer_lost``,
``dead``, …) gives one row a job that it finds; ``findings`` turns them into what a runbook says.
``reconcile`` compares two tables, or the cache with an export; ``explain`` says why they differ,
``read_export`` reads an export to a typed relation and its ledger. ``charts`` draws. Where a log
cannot speak of a thing, ``or_silence`` says so in place of its rows.

Everything heavy (DuckDB, Polars, Altair) loads at first use: ``from tallybook import ops`` is free.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tallybook.ops import charts as charts
    from tallybook.ops import findings as findings
    from tallybook.ops import letters as letters
    from tallybook.ops import weeks as weeks
    from tallybook.ops.advised import oldest_due as oldest_due
    from tallybook.ops.backlogs import Advice as Advice
    from tallybook.ops.backlogs import advice as advice
    from tallybook.ops.backlogs import backlog as backlog
    from tallybook.ops.backlogs import capacity as capacity
    from tallybook.ops.cached import cache_as_of as cache_as_of
    from tallybook.ops.cached import cache_parity as cache_parity
    from tallybook.ops.cached import compare_cache as compare_cache
    from tallybook.ops.cached import key_changes as key_changes
    from tallybook.ops.cached import surviving_cache as surviving_cache
    from tallybook.ops.covering import Coverage as Coverage
    from tallybook.ops.covering import coverage as coverage
    from tallybook.ops.detectors import answer_lost as answer_lost
    from tallybook.ops.detectors import dead as dead
    from tallybook.ops.detectors import delivered_twice as delivered_twice
    from tallybook.ops.detectors import expired_leases as expired_leases
    from tallybook.ops.detectors import late_settles as late_settles
    from tallybook.ops.detectors import open_jobs as open_jobs
    from tallybook.ops.detectors import retried as retried
    from tallybook.ops.exports.export import Export as Export
    from tallybook.ops.exports.export import Ledger as Ledger
    from tallybook.ops.exports.export import read_export as read_export
    from tallybook.ops.exports.shown import export_columns as export_columns
    from tallybook.ops.findings import Finding as Finding
    from tallybook.ops.health import clock_moves as clock_moves
    from tallybook.ops.health import growth as growth
    from tallybook.ops.health import log_parts as log_parts
    from tallybook.ops.health import repairs as repairs
    from tallybook.ops.leases import double_runs as double_runs
    from tallybook.ops.leases import lease_states as lease_states
    from tallybook.ops.leases import releasable as releasable
    from tallybook.ops.leases import stuck_leases as stuck_leases
    from tallybook.ops.letters import dead_letters as dead_letters
    from tallybook.ops.opening import open_warehouse as open
    from tallybook.ops.periods import compare as compare
    from tallybook.ops.periods import halves as halves
    from tallybook.ops.questions import latency as latency
    from tallybook.ops.questions import model_columns as model_columns
    from tallybook.ops.questions import outcomes as outcomes
    from tallybook.ops.questions import overview as overview
    from tallybook.ops.questions import throughput as throughput
    from tallybook.ops.questions import trace as trace
    from tallybook.ops.reconciling import Explained as Explained
    from tallybook.ops.reconciling import Flight as Flight
    from tallybook.ops.reconciling import Reconciliation as Reconciliation
    from tallybook.ops.reconciling import explain as explain
    from tallybook.ops.reconciling import explain_cache as explain_cache
    from tallybook.ops.reconciling import reconcile as reconcile
    from tallybook.ops.reconciling import reconcile_cache as reconcile_cache
    from tallybook.ops.reconciling import recorded as recorded
    from tallybook.ops.reviewing import settings_review as settings_review
    from tallybook.ops.silence import or_silence as or_silence
    from tallybook.ops.warehouse import Warehouse as Warehouse
    from tallybook.ops.windows import Span as Span

_PLACES = {
    "Advice": "backlogs:Advice",
    "Coverage": "covering:Coverage",
    "Explained": "reconciling:Explained",
    "Export": "exports.export:Export",
    "Finding": "findings:Finding",
    "Flight": "reconciling:Flight",
    "Ledger": "exports.export:Ledger",
    "Reconciliation": "reconciling:Reconciliation",
    "Span": "windows:Span",
    "Warehouse": "warehouse:Warehouse",
    "advice": "backlogs:advice",
    "answer_lost": "detectors:answer_lost",
    "backlog": "backlogs:backlog",
    "model_columns": "questions:model_columns",
    "key_changes": "cached:key_changes",
    "capacity": "backlogs:capacity",
    "cache_as_of": "cached:cache_as_of",
    "cache_parity": "cached:cache_parity",
    "charts": "charts:",
    "clock_moves": "health:clock_moves",
    "compare": "periods:compare",
    "compare_cache": "cached:compare_cache",
    "coverage": "covering:coverage",
    "dead": "detectors:dead",
    "dead_letters": "letters:dead_letters",
    "delivered_twice": "detectors:delivered_twice",
    "double_runs": "leases:double_runs",
    "expired_leases": "detectors:expired_leases",
    "explain": "reconciling:explain",
    "explain_cache": "reconciling:explain_cache",
    "export_columns": "exports.shown:export_columns",
    "findings": "findings:",
    "growth": "health:growth",
    "halves": "periods:halves",
    "late_settles": "detectors:late_settles",
    "latency": "questions:latency",
    "lease_states": "leases:lease_states",
    "letters": "letters:",
    "log_parts": "health:log_parts",
    "oldest_due": "advised:oldest_due",
    "open": "opening:open_warehouse",
    "open_jobs": "detectors:open_jobs",
    "or_silence": "silence:or_silence",
    "outcomes": "questions:outcomes",
    "overview": "questions:overview",
    "read_export": "exports.export:read_export",
    "reconcile": "reconciling:reconcile",
    "reconcile_cache": "reconciling:reconcile_cache",
    "recorded": "reconciling:recorded",
    "releasable": "leases:releasable",
    "repairs": "health:repairs",
    "retried": "detectors:retried",
    "settings_review": "reviewing:settings_review",
    "stuck_leases": "leases:stuck_leases",
    "surviving_cache": "cached:surviving_cache",
    "throughput": "questions:throughput",
    "trace": "questions:trace",
    "weeks": "weeks:",
}

__all__ = [
    "Advice",
    "Coverage",
    "Explained",
    "Export",
    "Finding",
    "Flight",
    "Ledger",
    "Reconciliation",
    "Span",
    "Warehouse",
    "advice",
    "answer_lost",
    "backlog",
    "cache_as_of",
    "cache_parity",
    "capacity",
    "charts",
    "clock_moves",
    "compare",
    "compare_cache",
    "coverage",
    "dead",
    "dead_letters",
    "delivered_twice",
    "double_runs",
    "expired_leases",
    "explain",
    "explain_cache",
    "export_columns",
    "findings",
    "growth",
    "halves",
    "key_changes",
    "late_settles",
    "latency",
    "lease_states",
    "letters",
    "log_parts",
    "model_columns",
    "oldest_due",
    "open",
    "open_jobs",
    "or_silence",
    "outcomes",
    "overview",
    "read_export",
    "reconcile",
    "reconcile_cache",
    "recorded",
    "releasable",
    "repairs",
    "retried",
    "settings_review",
    "stuck_leases",
    "surviving_cache",
    "throughput",
    "trace",
    "weeks",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _PLACES[name].partition(":")
    loaded = import_module(f"{__name__}.{module}")
    return getattr(loaded, attribute) if attribute else loaded
