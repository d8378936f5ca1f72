"""A review of the settings: which of them the runs that were measured call unsafe, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import polars

from tallybook import settings
from tallybook.layout import Layout
from tallybook.ops import questions
from tallybook.ops.warehouse import Warehouse
from tallybook.ops.windows import WHOLE, Span
from tallybook.ops.wording import counted
from tallybook.settings import TopicSettings

# A lease this many times as long as a run, or a pause between two beats, bears a slow day.
_ROOM = 3
_FAILS_AGAIN = 0.5
_ENOUGH = 20

_SCHEMA = {
    "topic": polars.String, "setting": polars.String, "value": polars.Float64,
    "verdict": polars.String, "n": polars.Int64, "over": polars.Int64,
    "proposed": polars.Float64, "detail": polars.String,
}  # fmt: skip

Measured = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was measured against one setting of a topic: ``over`` of ``n`` were beyond it."""

    setting: str
    value: float | None
    n: int
    over: int
    detail: str
    proposed: float | None = None

    @property
    def verdict(self) -> str:
        """safe, unsafe, or not measured."""
        if self.over:
            return "unsafe"
        return "safe" if self.n else "not measured"


def settings_review(warehouse: Warehouse, span: Span = WHOLE) -> polars.DataFrame:
    """One row a topic and setting: value (seconds, or a count), verdict (safe, unsafe, not
    measured), over of n (how many runs, beats or jobs were beyond it), proposed (a value that
    bears what was measured; null where none is needed) and detail: the expected harm in words.

    Settings are lease and heartbeat (of the worker: ``--lease``), timeout_s, max_run_s,
    backoff_first_s, max_attempts and max_rescues. Empty where an imported log says nothing of them.
    Raises BadInput where book.toml cannot be read.
    """
    if "settings" in warehouse.silent:
        return polars.DataFrame(schema=_SCHEMA)
    rules = settings.load(Layout(warehouse.book).settings)
    since, until = questions.reach(warehouse, span)
    names = warehouse.frame("topics_seen", {"since": since, "until": until})["topic"].to_list()
    asked = {
        "since": since,
        "until": until,
        "topics": names,
        "timeouts_s": [rules.topic(name).timeout_s for name in names],
        "max_runs_s": [rules.topic(name).max_run_s for name in names],
    }
    rows = [
        {"topic": row["topic"], "verdict": found.verdict, **asdict(found)}
        for row in warehouse.frame("settings_review", asked).to_dicts()
        for judge in _JUDGES
        for found in (judge(row, rules.topic(row["topic"])),)
    ]
    return polars.DataFrame(rows, schema=_SCHEMA)


def _lease(row: Measured, _: TopicSettings) -> Verdict:
    n, over, lease = row["runs"], max(row["over_lease"], row["expired"]), row["lease_s"]
    longest = f"the longest took {row['run_max_s'] or 0:,.3f} s"
    if not over:
        return Verdict("lease", lease, n, 0, f"of {counted(n, 'run')} {longest}")
    harm = (
        f"of {counted(n, 'run')} {row['over_lease']:,} took longer than the lease of "
        f"{lease or 0:,.3f} s and hung on their heartbeat alone, {longest}; "
        f"{counted(row['expired'], 'lease')} ran out, {counted(row['refused'], 'result')} came "
        "too late"
    )
    return Verdict("lease", lease, max(n, over), over, harm, _above(row["run_max_s"], lease))


def _heartbeat(row: Measured, _: TopicSettings) -> Verdict:
    beats, late, lease = row["beats"], row["late_beats"], row["lease_s"]
    if not late:
        return Verdict("heartbeat", lease, beats, 0, f"{counted(beats, 'extension')} in time")
    harm = (
        f"of {counted(beats, 'extension')} {late:,} came later than half the lease, the longest "
        f"after {row['longest_gap_s']:,.3f} s: a run that holds its process so long loses its lease"
    )
    return Verdict("heartbeat", lease, beats, late, harm, _above(row["longest_gap_s"], lease))


def _timeout(row: Measured, rules: TopicSettings) -> Verdict:
    n, value = row["runs"], rules.timeout_s
    if value:
        over = row["near_timeout"]
        said = (
            f"of {counted(n, 'run')} {over:,} took more than 80 % of it, "
            f"{row['timed_out']:,} timed out"
        )
        return Verdict("timeout_s", value, n, over, said, _above(row["run_p99_s"], value, over))
    slow = int((row["run_max_s"] or 0) > (row["lease_s"] or float("inf")))
    said = f"none is set; of {counted(n, 'run')} 99 % took at most {row['run_p99_s'] or 0:,.3f} s"
    if slow:
        said += (
            f", the longest {row['run_max_s']:,.3f} s: a handler that hangs holds its lease "
            f"for {rules.max_run_s:,.0f} s"
        )
    return Verdict("timeout_s", 0.0, n, slow, said, _above(row["run_p99_s"], 0.0, slow))


def _max_run(row: Measured, rules: TopicSettings) -> Verdict:
    n, over = row["runs"], row["over_max_run"]
    said = f"of {counted(n, 'run')} {over:,} took longer"
    harm = (
        f"{said}: their leases ran out while they ran, and their jobs ran twice" if over else said
    )
    proposed = _above(row["run_max_s"], rules.max_run_s, over)
    return Verdict("max_run_s", rules.max_run_s, n, over, harm, proposed)


def _backoff(row: Measured, rules: TopicSettings) -> Verdict:
    again, failed, first = row["again"], row["failed_again"], rules.backoff_first_s
    said = f"of {counted(again, 'attempt')} after a failed one {failed:,} failed too"
    bad = again >= _ENOUGH and failed >= _FAILS_AGAIN * again
    if not bad:
        return Verdict("backoff_first_s", first, again, 0, said)
    harm = f"{said}: the other side needs longer than the delays leave it, and is asked in vain"
    return Verdict("backoff_first_s", first, again, failed, harm, first * 4)


def _attempts(row: Measured, rules: TopicSettings) -> Verdict:
    n, over, value = row["ends"], row["exhausted"], rules.max_attempts
    bears = sum(rules.backoff_s(number, 0.0) for number in range(1, value))
    said = f"{counted(over, 'job')} died of it; {value:,} attempts bear an outage of {bears:,.0f} s"
    return Verdict("max_attempts", float(value), n, over, said, float(value * 2) if over else None)


def _rescues(row: Measured, rules: TopicSettings) -> Verdict:
    over, value = row["killed"], rules.max_rescues
    said = f"{counted(over, 'job')} died since so many workers died or hung with them"
    return Verdict("max_rescues", float(value), row["ends"], over, said)


def _above(measured: float | None, value: float | None, wanted: int = 1) -> float | None:
    """A value with room above what was measured; None where none is wanted."""
    if not wanted or measured is None:
        return None
    proposed = round(measured * _ROOM, 3)
    return proposed if proposed > (value or 0.0) else None


_JUDGES: tuple[Callable[[Measured, TopicSettings], Verdict], ...] = (
    _lease, _heartbeat, _timeout, _max_run, _backoff, _attempts, _rescues,
)  # fmt: skip
