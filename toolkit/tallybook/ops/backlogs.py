"""The backlog: how fast it grows or shrinks, when it is gone, how many workers that takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any

import polars

from tallybook.ops import questions
from tallybook.ops.warehouse import Warehouse
from tallybook.ops.windows import WHOLE, Span
from tallybook.ops.wording import command, counted

# Above this share of their time workers have no room for a burst.
_FULL = 0.8
_IDLE = 0.5
_SLOWER = 1.5
_UNANSWERED = 0.1
_ENOUGH = 20
# Two standard deviations of a difference of two counts: 95 of 100 times it is not chance.
_SURE = 1.96

_COLUMNS = (
    "topic", "pending", "due", "leased", "window_s", "arrivals", "completions",
    "arrivals_per_s", "completions_per_s", "service_per_s", "runs", "run_mean_s", "workers",
    "slots", "utilisation", "drain_s", "drain_low_s", "drain_high_s", "slots_needed",
    "workers_needed", "jobs_per_claim", "failed", "unanswered", "early_p50_s", "late_p50_s",
)  # fmt: skip
_CAPACITY = (
    "topic", "arrivals_per_s", "service_per_s", "run_mean_s", "workers", "slots", "utilisation",
    "slots_needed", "workers_needed",
)  # fmt: skip
_WHOLE_NUMBERS = ("slots_needed", "workers_needed")


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do about a backlog, in words, with the numbers that it rests on.

    ``kind`` is more workers, slower intake, cloud slow, batch too small, topic paused or drains;
    ``topic`` is None where it is about all of them.
    """

    kind: str
    topic: str | None
    words: str
    numbers: Mapping[str, float | int | None]
    command: str = ""


def backlog(warehouse: Warehouse, span: Span = WHOLE) -> polars.DataFrame:
    """One row for all topics (topic null), then one a topic: what stands at the end of the span
    (pending, due of those, leased), and the rates in it.

    service_per_s is what the workers could complete when busy all the time: completions over
    utilisation, the share of their threads (slots) that ran. drain_s is how long the pending jobs
    take at service_per_s against arrivals_per_s; drain_low_s to drain_high_s is that with both
    rates off by 1.96 standard deviations of what was counted; null: never. slots_needed and
    workers_needed keep up with the arrivals at 80 % utilisation.
    """
    rows = _rows(warehouse, span)
    kinds = dict.fromkeys(_WHOLE_NUMBERS, polars.Int64)
    frame = polars.DataFrame(rows, infer_schema_length=None, schema_overrides=kinds)
    return frame.select(_COLUMNS) if rows else frame


def capacity(warehouse: Warehouse, span: Span = WHOLE) -> polars.DataFrame:
    """The part of ``backlog`` that says what the load takes, and headroom: how many times the
    arrivals of the span the workers could serve; null where none arrived or none was served.
    """
    found = backlog(warehouse, span)
    if found.is_empty():
        return found
    served = polars.col("service_per_s") / polars.col("arrivals_per_s")
    known = polars.col("arrivals_per_s") > 0
    return found.select(*_CAPACITY, headroom=polars.when(known).then(served))


def advice(warehouse: Warehouse, span: Span = WHOLE) -> list[Advice]:
    """What to do about the backlog, the most telling first; empty where nothing is pending."""
    found = [one for row in _rows(warehouse, span) for one in _advise(warehouse, row)]
    return sorted(found, key=lambda one: (_ORDER.index(one.kind), one.topic or ""))


def _rows(warehouse: Warehouse, span: Span) -> list[dict[str, Any]]:
    since, until = questions.reach(warehouse, span)
    counted_rows = warehouse.frame("backlog", {"since": since, "until": until}).to_dicts()
    if not counted_rows:
        return []
    busy = counted_rows[0]["run_sum_s"]
    idle = ", ".join(row["topic"] for row in counted_rows if row["topic"] and _untaken(row))
    return [row | _judged(row, busy) | {"untaken": idle} for row in counted_rows]


def _untaken(row: Mapping[str, Any]) -> bool:
    """Whether jobs of a topic are due, and no worker took any: there may be no handler for it."""
    taken = row["claimed"] or row["leased"] or row["runs"]
    return bool(row["due"] and not taken and not row["is_paused"])


def _judged(row: Mapping[str, Any], busy_s: float) -> dict[str, Any]:
    window, slots, done = row["window_s"], row["slots"], row["completions"]
    utilisation = min(1.0, busy_s / (slots * window)) if slots else None
    arrivals, completions = row["arrivals"] / window, done / window
    service = completions / utilisation if utilisation else completions
    cost_s = row["run_sum_s"] / done if done else None
    slots_needed = ceil(arrivals * cost_s / _FULL) if cost_s is not None else None
    each = slots / row["workers"] if row["workers"] and row["topic"] is None else 1
    low, middle, high = _drain(row, service, utilisation or 1.0)
    return {
        "arrivals_per_s": arrivals,
        "completions_per_s": completions,
        "service_per_s": service,
        "run_mean_s": row["run_sum_s"] / row["runs"] if row["runs"] else None,
        "utilisation": utilisation,
        "drain_s": middle,
        "drain_low_s": low,
        "drain_high_s": high,
        "slots_needed": slots_needed,
        "workers_needed": None if slots_needed is None else ceil(slots_needed / each),
        "jobs_per_claim": row["claimed"] / row["claims"] if row["claims"] else None,
    }


def _drain(
    row: Mapping[str, Any], service: float, utilisation: float
) -> tuple[float | None, float | None, float | None]:
    """The time that the pending jobs take: at best, as it is, at worst; None: never."""
    if not row["pending"]:
        return 0.0, 0.0, 0.0
    window = row["window_s"]
    net = service - row["arrivals"] / window
    spread = _SURE * sqrt(row["arrivals"] + row["completions"] / utilisation**2) / window
    rates = (net + spread, net, net - spread)
    low, middle, high = (row["pending"] / rate if rate > 0 else None for rate in rates)
    return low, middle, high


def _advise(warehouse: Warehouse, row: Mapping[str, Any]) -> list[Advice]:
    if not row["pending"]:
        return []
    if row["is_paused"]:
        words = f"{counted(row['pending'], 'job')} of it wait until it is resumed"
        resume = command(warehouse.book, "topic", "resume", row["topic"])
        return [_told(row, "topic paused", words, ("pending",), resume)]
    found = [one for judge in _JUDGES if (one := judge(row))]
    return found if row["topic"] is None else [one for one in found if one.kind == "cloud slow"]


def _slow(row: Mapping[str, Any]) -> Advice | None:
    """The other side: slower than it was, or giving no answer."""
    enough = min(row["early_runs"], row["late_runs"]) >= _ENOUGH
    if enough and row["late_p50_s"] >= _SLOWER * row["early_p50_s"]:
        words = (f"the median run took {row['late_p50_s']:.3f} s in the second half of the span, "
                 f"{row['early_p50_s']:.3f} s in the first")  # fmt: skip
        return _told(row, "cloud slow", words, ("early_p50_s", "late_p50_s", "runs"))
    if row["runs"] >= _ENOUGH and row["unanswered"] >= _UNANSWERED * row["runs"]:
        words = (f"{row['unanswered']:,} of {counted(row['runs'], 'run')} ended in HTTP 429, "
                 "HTTP 5xx, a lost answer or a timeout")  # fmt: skip
        return _told(row, "cloud slow", words, ("unanswered", "runs"))
    return None


def _intake(row: Mapping[str, Any]) -> Advice | None:
    if not _grows(row) or not _slow(row):
        return None
    words = (f"{_rates(row)}; more workers would only ask the slow side more often")  # fmt: skip
    return _told(row, "slower intake", words, ("arrivals_per_s", "completions_per_s", "pending"))


def _workers(row: Mapping[str, Any]) -> Advice | None:
    full = row["utilisation"] is not None and row["utilisation"] >= _FULL
    if not full or not _grows(row) or _slow(row):
        return None
    words = (f"{_rates(row)}; {counted(row['workers'], 'worker')} with "
             f"{counted(row['slots'], 'thread')} in all busy {row['utilisation']:.0%} of the time: "
             f"{counted(row['slots_needed'], 'thread')} keep up")  # fmt: skip
    numbers = ("arrivals_per_s", "completions_per_s", "utilisation", "slots", "slots_needed",
               "workers", "workers_needed")  # fmt: skip
    return _told(row, "more workers", words, numbers)


def _batch(row: Mapping[str, Any]) -> Advice | None:
    """Jobs are due and workers wait: the way between two runs is too long."""
    idle = row["utilisation"] is not None and row["utilisation"] < _IDLE
    if not idle or row["runs"] < _ENOUGH or row["due"] < _ENOUGH:
        return None
    words = (f"{counted(row['due'], 'job')} due while threads run only "
             f"{row['utilisation']:.0%} of the time, with {row['jobs_per_claim']:.1f} jobs a claim "
             f"and runs of {row['run_mean_s']:.4f} s: claim more at once")  # fmt: skip
    return _told(row, "batch too small", words,
                 ("due", "utilisation", "jobs_per_claim", "run_mean_s"))  # fmt: skip


def _drains(row: Mapping[str, Any]) -> Advice | None:
    if row["drain_s"] is None:
        return None
    worst = "never" if row["drain_high_s"] is None else f"{row['drain_high_s']:,.1f} s"
    words = (f"{counted(row['pending'], 'job')} pending, gone in {row['drain_s']:,.1f} s "
             f"({row['drain_low_s']:,.1f} s to {worst})")  # fmt: skip
    if row["untaken"]:
        words += f", but no worker took a job of {row['untaken']} in this span"
    return _told(row, "drains", words, ("pending", "drain_s", "drain_low_s", "drain_high_s"))


_JUDGES: tuple[Callable[[Mapping[str, Any]], Advice | None], ...] = (
    _workers, _intake, _slow, _batch, _drains,
)  # fmt: skip
_ORDER = ("topic paused", "more workers", "slower intake", "cloud slow", "batch too small",
          "drains")  # fmt: skip


def _told(
    row: Mapping[str, Any], kind: str, words: str, numbers: tuple[str, ...], mend: str = ""
) -> Advice:
    return Advice(kind, row["topic"], words, {name: row[name] for name in numbers}, mend)


def _grows(row: Mapping[str, Any]) -> bool:
    """Whether more came than went, by more than chance."""
    more = row["arrivals"] - row["completions"]
    return bool(more > _SURE * sqrt(row["arrivals"] + row["completions"]))


def _rates(row: Mapping[str, Any]) -> str:
    return f"{row['arrivals_per_s']:,.1f} jobs/s come, {row['completions_per_s']:,.1f} go"
