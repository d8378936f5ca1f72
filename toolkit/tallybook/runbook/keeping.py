"""Which runs are kept: by their count and their age, of each runbook on its own.

The folder of a run goes, and its report with it; its line stays in the ledger, which the trends
of the index are drawn from. The run just made is kept, and so is every run that is under way.
The folder of a run that was interrupted counts as that of any other.
"""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tallybook import clock
from tallybook.runbook import ledger
from tallybook.runbook.folder import PARTIAL, REPORTS
from tallybook.runbook.ledger import Ledger
from tallybook.runbook.limits import Limits


def folder_of(out: Path, run: str) -> Path | None:
    """Where ``run`` is kept: whole, or as it was when it was interrupted; None where it is gone."""
    whole = out / REPORTS / run
    partial = whole.with_name(run + PARTIAL)
    return next((path for path in (whole, partial) if path.is_dir()), None)


def remove_old(out: Path, runbook: str, made: str, limits: Limits, now: datetime) -> list[str]:
    """Remove what ``limits`` do not keep of ``runbook``; the names of the runs that went."""
    runs = [run for run in Ledger(out).runs() if run.get("runbook") == runbook]
    kept = [run for run in reversed(runs) if folder_of(out, run["run"])]
    old = [run for place, run in enumerate(kept) if _is_over(run, place, limits, now)]
    gone = [run["run"] for run in old if run["run"] != made and run["status"] != ledger.RUNNING]
    for name in gone:
        shutil.rmtree(folder_of(out, name) or out / REPORTS / name, ignore_errors=True)
    return gone


def _is_over(run: dict[str, Any], place: int, limits: Limits, now: datetime) -> bool:
    """Whether a run is past the count, as the ``place``-th newest, or past the age."""
    if limits.keep and place >= limits.keep:
        return True
    return bool(limits.keep_days) and now - _begin(run) > timedelta(days=limits.keep_days)


def _begin(run: dict[str, Any]) -> datetime:
    try:
        return clock.from_text(str(run.get("started_at")))
    except ValueError:
        return datetime.max.replace(tzinfo=UTC)
