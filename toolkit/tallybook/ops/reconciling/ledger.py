"""The ledger of reconciliations of a folder: a line a run, and how far all is verified.

    <out>/reconciliations.ndjson       a line a run, in the order in which they were made
    <out>/reconciliations/<run>/       what differed in a run that was not clean; kept

``verified_through`` is the cover of the last clean run that is reached from the first over runs
that are clean. A run that is not stops it, until it is settled: one in which rows were in flight by
any later clean run, one with differences by a clean run of the same cover or by one that is a
second look (``again``). Its line and its files stay.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import polars

from tallybook import whole
from tallybook.clock import to_text
from tallybook.errors import BadInput, unwritable
from tallybook.layout import FILE_MODE, FOLDER_MODE
from tallybook.ops.reconciling.causes import IN_FLIGHT
from tallybook.ops.reconciling.covers import Cover
from tallybook.ops.reconciling.explaining import INCOMPLETE, Explained
from tallybook.ops.reconciling.untold import Untold
from tallybook.ops.warehouse import Warehouse

NAME = "reconciliations.ndjson"
EVIDENCE = "reconciliations"
_MOST_FLYING = 1000
_SHOWN = dict.fromkeys(("run", "at", "export", "covers", "verdict", "status"), polars.String)


@dataclass(frozen=True, slots=True)
class Run:
    """One reconciliation. ``series`` is what is compared (node, local side, key): only runs of one
    series are held against each other. ``verdict`` is clean, in_flight, differs or incomplete;
    ``flying`` the first thousand keys in flight; ``order`` and ``kind`` those of the cover."""

    run: str
    at: str
    series: str
    export: str
    verdict: str
    statuses: dict[str, int]
    causes: dict[str, int]
    covers: str | None = None
    kind: str | None = None
    order: float | None = None
    again: bool = False
    flying: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """Whether every row of both sides matched."""
        return self.verdict == "clean"


@dataclass(frozen=True, slots=True)
class Watermark:
    """Through which cover all is verified, over how many clean runs, and what stops it there."""

    through: str | None
    runs: int
    stopped_by: Run | None = None


@dataclass(frozen=True, slots=True)
class Ledger:
    """The runs of one series in a folder, in the order in which they were made."""

    out: Path
    series: str
    runs: tuple[Run, ...] = ()

    @classmethod
    def of(cls, out: Path, series: str) -> Self:
        """Raises BadInput that names the line which cannot be read."""
        found = tuple(run for run in _read(out / NAME) if run.series == series)
        return cls(out, series, found)

    def require_newer(self, export: str, cover: Cover | None) -> None:
        """Raise BadInput for an export that is older than the last one, or of another kind."""
        known = [run for run in self.runs if run.order is not None]
        if not known or cover is None:
            return
        last = known[-1]
        if last.kind != cover.kind:
            raise BadInput(
                f"--covers {cover.text} is a {cover.kind}, and the runs in {self.out} go by "
                f"{last.kind}: say it as one too, or name another --out"
            )
        if cover.order < (last.order or 0):
            raise BadInput(
                f"{export} covers {cover.text}, which is older than {last.export} of run "
                f"{last.run}, which covers {last.covers}: take a newer export, or name another "
                "--out"
            )

    def add(
        self, export: str, found: Explained, *, again: bool = False, whole: bool = True
    ) -> Self:
        """The ledger with a line for this run, written; what differs is kept beside it."""
        run = _run(self.series, export, found, again=again, whole=whole)
        folder = self.out / EVIDENCE / run.run
        try:
            self.out.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            if not run.is_clean:
                found.keep(folder)
            _append(self.out / NAME, asdict(run))
        except OSError as error:
            raise unwritable(f"{self.out}", error) from None
        return replace(self, runs=(*self.runs, run))

    def watermark(self) -> Watermark:
        """How far all is verified."""
        latest: dict[float, int] = {}
        for at, run in enumerate(self.runs):
            if run.order is not None:
                latest[run.order] = at
        through, clean = None, 0
        for order in sorted(latest):
            run = self.runs[latest[order]]
            if run.is_clean:
                through, clean = run.covers, clean + 1
            elif not self._is_settled(run, latest[order]):
                return Watermark(through, clean, run)
        return Watermark(through, clean)

    def _is_settled(self, run: Run, at: int) -> bool:
        """Whether a later run was clean that counts for this one."""
        return any(
            later.is_clean
            and (later.again or run.verdict == IN_FLIGHT)
            and (later.order or 0) >= (run.order or 0)
            for later in self.runs[at + 1 :]
        )

    def as_json(self) -> dict[str, Any]:
        """What the last run adds to an answer."""
        mark = self.watermark()
        stopped = mark.stopped_by.run if mark.stopped_by else None
        return {
            "run": self.runs[-1].run,
            "verified_through": mark.through,
            "clean_runs": mark.runs,
            "stopped_by": stopped,
        }

    @property
    def words(self) -> str:
        """How far all is verified, in a sentence."""
        mark = self.watermark()
        if not self.runs:
            return "no run is recorded: name a folder for them"
        told = f"verified through {mark.through}" if mark.through else "nothing is verified yet"
        return told + (f"; stopped by run {mark.stopped_by.run}" if mark.stopped_by else "")

    def second_look(self, found: Explained) -> dict[str, int]:
        """What became of the keys that were in flight in the last run: how many match now, differ,
        and are still in flight; empty where there were none."""
        before = self.runs[-1].flying if self.runs else []
        now = dict(found.rows.select("key", "cause").iter_rows())
        told = [
            "match" if key not in now else IN_FLIGHT if now[key] == IN_FLIGHT else "differs"
            for key in before
        ]
        return {what: told.count(what) for what in ("match", "differs", IN_FLIGHT) if told}

    def frame(self) -> polars.DataFrame:
        """One row a run and status with rows: run, at, export, covers, verdict, status, rows."""
        rows = [
            (run.run, run.at, run.export, run.covers, run.verdict, status, count)
            for run in self.runs
            for status, count in run.statuses.items()
            if count
        ]
        return polars.DataFrame(rows, schema=_SHOWN | {"rows": polars.Int64}, orient="row")


def recorded(
    warehouse: Warehouse,
    found: Explained | Untold,
    export: str | Path | None,
    out: str | Path,
) -> Ledger:
    """The ledger in the folder ``out`` with a line for this run, for a notebook; with none named
    nothing is written, and a log that says nothing of a cache has no run. Raises BadInput for an
    export that is older than the last one."""
    if not out or export is None or isinstance(found, Untold):
        return Ledger(Path(out or "."), "")
    series = series_of(warehouse.node_id, found.reconciliation.key)
    ledger = Ledger.of(Path(out), series)
    name = Path(export).name
    ledger.require_newer(name, found.cover)
    return ledger.add(name, found, whole=not warehouse.notes)


def series_of(node_id: str, key: Sequence[str], local: str | None = None) -> str:
    """The name of what is compared: a node, its cache or a file, and the key."""
    return f"{node_id}:{local or 'cache'}:{','.join(key)}"


def _run(series: str, export: str, found: Explained, *, again: bool, whole: bool) -> Run:
    now = datetime.now(UTC)
    cover, reconciled = found.cover, found.reconciliation
    causes = dict(found.causes.select("cause", "rows").iter_rows())
    return Run(
        run=f"{now:%Y%m%dT%H%M%SZ}-{os.urandom(2).hex()}",
        at=to_text(now),
        series=series,
        export=export,
        verdict=found.verdict if whole else INCOMPLETE,
        statuses={name: count for name, count in reconciled.statuses.items() if count},
        causes=causes,
        covers=cover.text if cover else None,
        kind=cover.kind if cover else None,
        order=cover.order if cover else None,
        again=again,
        flying=found.keys(IN_FLIGHT)[:_MOST_FLYING],
    )


def _read(path: Path) -> list[Run]:
    try:
        lines = path.read_text("utf-8").split("\n")
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot read {path}: {error}") from None
    found = []
    for number, line in enumerate(lines, 1):
        try:
            found += [Run(**json.loads(line))] if line.strip() else []
        except (ValueError, TypeError) as error:
            raise BadInput(
                f"{path} line {number} is no run of a reconciliation ({error}); mend or remove it"
            ) from None
    return found


def _append(path: Path, fields: dict[str, Any]) -> None:
    """One more line, whole or not at all."""
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":")) + "\n"
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, FILE_MODE)
    try:
        whole.append(descriptor, text.encode())
    finally:
        os.close(descriptor)
