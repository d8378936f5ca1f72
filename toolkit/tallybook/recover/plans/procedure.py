"""The steps of the runbook ``reconcile``: a plan, the act, and a second comparison after it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars

from tallybook.errors import TallybookError
from tallybook.layout import require_book
from tallybook.ops import frames
from tallybook.ops.opening import open_warehouse
from tallybook.ops.reconciling import Explained, Flight, Untold, explain
from tallybook.ops.warehouse import Warehouse
from tallybook.ops.wording import command, counted
from tallybook.recover.plans import applying, file, making
from tallybook.recover.plans.applying import Applied
from tallybook.recover.plans.file import Plan

_ON_ITS_WAY = ("requeue", "enqueue", "merge")
_SHOWN = ("key", "cause", "action", "why", "told")


@dataclass(frozen=True, slots=True)
class Proposed:
    """A plan as a notebook shows it; without one, why there is none."""

    book: Path
    plan: Plan | None
    words: str = ""

    @property
    def table(self) -> polars.DataFrame:
        """One row a key: key, cause, action, why, told."""
        lines = [one.as_json() for one in self.plan.actions] if self.plan else []
        rows = [tuple(line[name] for name in _SHOWN) for line in lines]
        return polars.DataFrame(rows, schema=dict.fromkeys(_SHOWN, polars.String), orient="row")

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        counts = self.plan.counts() if self.plan else {}
        told = ", ".join(f"{keys:,} {action}" for action, keys in counts.items())
        words = self.words or (f"plan {self.plan.head.plan}: {told or 'nothing to do'}"
                               if self.plan else "")  # fmt: skip
        return {"text/plain": words, "text/html": f"<p>{words}</p>{frames.html(self.table)}"}


@dataclass(frozen=True, slots=True)
class Done:
    """What became of a plan; ``path`` is its file, None of a dry run."""

    book: Path
    path: Path | None
    applied: Applied | None
    words: str

    @property
    def undo(self) -> str:
        """The command that takes it back; where there is none, why."""
        if self.path is None:
            return "nothing was changed: there is nothing to take back"
        return command(self.book, "plan", "undo", str(self.path))

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        return {"text/plain": self.words}


def propose(
    warehouse: Warehouse, explained: Explained | Untold, export: str | Path | None, policy: str
) -> Proposed:
    """What ``policy`` says of each difference; nothing is written."""
    if isinstance(explained, Untold) or export is None:
        words = explained.words if isinstance(explained, Untold) else "there is no export"
        return Proposed(warehouse.book, None, words)
    if explained.reconciliation.apart:
        return Proposed(warehouse.book, None, f"no plan: {explained.reconciliation.apart}")
    begun = making.begin(warehouse.book)
    plan = making.make(begun, warehouse, explained, Path(export), policy)
    return Proposed(warehouse.book, plan)


def act(proposed: Proposed, *, dry_run: bool, most: int = applying.MOST) -> Done:
    """Write the plan into the book's ``plans/`` and apply it, unless ``dry_run``."""
    plan = proposed.plan
    if dry_run or plan is None or not plan.to_do:
        told = "" if plan is None else f"; {counted(len(plan.to_do), 'key')} would be repaired"
        return Done(proposed.book, None, None, f"nothing was changed{told}")
    layout = require_book(proposed.book)
    path = layout.plans / f"plan-{plan.head.plan}.ndjson"
    file.write(path, plan)
    applied = applying.apply(layout.root, path, most=most)
    done = ", ".join(f"{number:,} {action}" for action, number in applied.done.items())
    over = len(applied.passed_over)
    passed = f"; {counted(over, 'key')} passed over: changed meanwhile" if over else ""
    return Done(layout.root, path, applied, f"{done or 'nothing'} done{passed}")


def as_left(
    explained: Explained | Untold, done: Done, export: str | Path | None, flight: Flight
) -> Explained | Untold:
    """The comparison as the act left it: made again where something was changed."""
    if done.applied is None or export is None or isinstance(explained, Untold):
        return explained
    with open_warehouse(done.book) as warehouse:
        return explain(warehouse, export, key=explained.reconciliation.key, flight=flight)


def after(proposed: Proposed, done: Done, explained: Explained | Untold) -> polars.DataFrame:
    """One row a key that the plan changed, as the second comparison found it: key, action, now,
    holds. Empty after a dry run.

    Raises TallybookError where one still differs and no job about it is on its way.
    """
    rows = _looked(proposed, done, explained)
    if bad := [str(row[0]) for row in rows if not row[3]]:
        raise TallybookError(
            f"{counted(len(bad), 'key')} of {done.book} still differ after the plan: "
            f"{', '.join(bad[:20])}; see 'tallybook reconcile --explain'"
        )
    schema = {"key": polars.String, "action": polars.String, "now": polars.String,
              "holds": polars.Boolean}  # fmt: skip
    return polars.DataFrame(rows, schema=schema, orient="row")


def _looked(
    proposed: Proposed, done: Done, explained: Explained | Untold
) -> list[tuple[str, str, str, bool]]:
    if proposed.plan is None or done.applied is None or isinstance(explained, Untold):
        return []
    now = dict(explained.rows.select("key", "cause").iter_rows())
    changed = [one for one in proposed.plan.to_do if one.key not in done.applied.passed_over]
    return [
        (one.key, one.action, now.get(one.key, "match"), _holds(one.action, now.get(one.key)))
        for one in changed
    ]


def _holds(action: str, cause: str | None) -> bool:
    """A key that was repaired here matches; one that is delivered does so once it has arrived."""
    return cause is None or action in _ON_ITS_WAY
