"""``run``: one runbook, from the question whether it can run to the line in the ledger."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tallybook import clock, layout
from tallybook.errors import BadInput, NoRoom, TallybookError, is_no_room
from tallybook.runbook import answers, engine, folder, index, keeping, ledger, report
from tallybook.runbook.kernels import Warm
from tallybook.runbook.ledger import Ledger
from tallybook.runbook.orders import Order, order
from tallybook.runbook.under_way import EXIT_CODES, UnderWay, inputs, provenance

_LOG = logging.getLogger(__name__)
_STATUS_OF_ERROR = {"BadInput": "bad_input", "IncompleteInput": "incomplete"}

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended and where it is kept.

    ``status`` is clean, findings, bad_input, failed or incomplete; ``message`` is one line,
    empty where every cell ended well. ``folder`` holds notebook.ipynb, report.html, findings.json.
    """

    runbook: str
    status: str
    folder: Path
    findings: tuple[dict[str, Any], ...]
    message: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """The exit code that ``status`` means."""
        return EXIT_CODES[self.status]

    @property
    def report(self) -> Path:
        """The page for a person."""
        return self.folder / "report.html"

    def as_json(self) -> dict[str, Any]:
        """What ``tallybook runbook run --json`` prints."""
        return {
            "runbook": self.runbook,
            "status": self.status,
            "exit_code": self.exit_code,
            "folder": str(self.folder),
            "report": str(self.report),
            "message": self.message,
            "findings": list(self.findings),
        }


@dataclass(frozen=True, slots=True)
class History:
    """What a ledger says: ``runs`` as their last lines have them, in the order of their begin;
    ``unreadable`` of its lines are no run."""

    path: Path
    runs: tuple[dict[str, Any], ...]
    unreadable: int


def run(
    name_or_path: str | Path,
    given: Mapping[str, str] | None = None,
    book: str | Path | None = None,
    out: str | Path | None = None,
    progress: Progress | None = None,
    warm: Warm | None = None,
    limits: Mapping[str, float | None] | None = None,
) -> RunResult:
    """Run one runbook; ``given`` are its parameters as texts, ``progress`` gets (cell, cells).

    ``limits`` (deadline_s, cell_deadline_s, keep, keep_days) stand in for runbooks.toml. A ``warm``
    kernel is used and left to the caller.
    Raises BadInput before anything runs for an unknown runbook or parameter, a value that does not
    fit, or no book; NotNow while another run of it on that book is under way; NoRoom where the
    disk is full. What happens later is in the result. After KeyboardInterrupt no kernel and no
    partial folder are left.
    """
    engine.require("papermill")
    return _run(order(name_or_path, given or {}, book, out, limits or {}), progress, warm)


def run_all(
    names: Sequence[str],
    given: Mapping[str, str],
    book: str | Path | None,
    out: str | Path | None,
    progress: Callable[[str], Progress],
    limits: Mapping[str, float | None] | None = None,
) -> Iterator[RunResult | TallybookError]:
    """Run several on one kernel, one after the other; all are checked before the first begins.

    A parameter goes to those that declare it. An error that ends one of them is given in its place.
    """
    engine.require("papermill")
    orders = [order(name, given, book, out, limits or {}) for name in names]
    with closing(Warm()) as warm:
        for one in orders:
            try:
                yield _run(one, progress(one.runbook.name), warm)
            except TallybookError as error:
                yield error


def history(book: str | Path | None = None, out: str | Path | None = None) -> History:
    """The runs kept under ``out``, else under the folder of the node of ``book``."""
    if out is None:
        where = layout.require_readable_book(layout.find_book_or_sample(book)).root
        out = layout.out_dir(None, folder.node_of(where))
    told = Ledger(Path(out))
    if not told.path.parent.is_dir():
        raise BadInput(f"no runs under {out}; name the folder with --out DIR")
    return History(told.path, tuple(told.runs()), told.unreadable())


def _run(order: Order, progress: Progress | None, warm: Warm | None) -> RunResult:
    folder.prepare(order.out)
    holder = {"run": order.run, "pid": os.getpid(), "started_at": clock.to_text(order.started)}
    with order.turn.taken(holder):
        book = Ledger(order.out)
        book.tell_dead(order.turn)
        under = UnderWay(order, inputs(order))
        try:
            book.append(under.line(ledger.RUNNING))
            result = _executed(under, progress, warm)
        except BaseException as error:
            _broken_off(under, error)
            raise
        told = {
            "message": result.message,
            "findings": ledger.severities(result.findings),
            "figures": dict(result.figures),
        }
        book.append(under.end(result.status, **told))
    _tidy(order)
    return result


def _executed(under: UnderWay, progress: Progress | None, warm: Warm | None) -> RunResult:
    folder.begin(under.order.out, under.order.run)
    failure = engine.execute(_job(under, progress), warm)
    return _kept(under, failure)


def _broken_off(under: UnderWay, error: BaseException) -> None:
    """Drop the folder, tell the ledger, and raise NoRoom where it was the disk."""
    folder.drop(under.partial)
    interrupted = isinstance(error, KeyboardInterrupt)
    message = "Ctrl-C" if interrupted else str(error)
    status = ledger.INTERRUPTED if interrupted else "failed"
    no_room = isinstance(error, NoRoom) or (isinstance(error, OSError) and is_no_room(error))
    try:
        Ledger(under.order.out).append(under.end(status, message=message))
    except OSError as full:  # the line of the begin stays: the next run tells of this one
        _LOG.warning("%s: %s", Ledger(under.order.out).path, full.strerror)
    if no_room:
        raise NoRoom(
            f"runbook {under.order.runbook.name}: no room under {under.order.out}, so nothing of "
            "this run is kept: make room on that disk, or name another --out"
        ) from error


def _tidy(order: Order) -> None:
    """Remove what is not to be kept, and bring the index up to date; no run fails of it."""
    try:
        keeping.remove_old(
            order.out, order.runbook.name, order.run, order.limits, datetime.now(UTC)
        )
        index.write(order.out)
    except OSError as error:
        _LOG.warning("the index of runs under %s is not up to date: %s", order.out, error.strerror)


def _job(under: UnderWay, progress: Progress | None) -> engine.Job:
    order = under.order
    environment = {"TALLYBOOK_RUNBOOK": str(order.runbook.path.resolve())}
    if order.book:
        environment["TALLYBOOK_BOOK"] = str(order.book)
    return engine.Job(
        order.runbook.path,
        under.partial.resolve(),
        order.values,
        environment,
        progress,
        order.limits.deadline_s,
        order.limits.cell_deadline_s,
        quiet=order.has_secrets,
    )


def _kept(under: UnderWay, failure: engine.Failure | None) -> RunResult:
    """Write the three files of a run and give its folder the final name."""
    order, partial = under.order, under.partial
    notebook = engine.loaded(partial / "notebook.ipynb") or {"cells": []}
    cells: Sequence[dict[str, Any]] = notebook["cells"]
    answered = answers.carried_by(output for cell in cells for output in cell.get("outputs", ()))
    status, message = _judged(order.runbook.name, failure, answered)
    findings = answered.findings if answered else ()
    figures = answered.figures if answered else {}
    result = RunResult(order.runbook.name, status, partial, findings, message, figures)
    _write(partial / "notebook.ipynb", _portable(order, notebook))
    told = answered.as_json() if answered else {"findings": []}
    _write(partial / "findings.json", told | {"status": status})
    page = report.render(_header(under, result), cells)
    (partial / "report.html").write_text(page, "utf-8")
    return replace(result, folder=folder.finish(partial))


def _judged(
    name: str, failure: engine.Failure | None, answered: answers.Answer | None
) -> tuple[str, str]:
    """The status of a run and one line that says why it is no plain answer."""
    if failure:
        status = _STATUS_OF_ERROR.get(failure.error, "failed")
        what = failure.message.strip().splitlines()[:1] or ["no message"]
        if status != "failed":
            return status, f"runbook {name}: {what[0]}"
        where = failure.cell or "its kernel"
        return status, f"runbook {name}: {where} failed: {failure.error}: {what[0]}"
    if answered is None:
        return "failed", f"runbook {name}: its last cell gives no answer(findings)"
    return answered.status, ""


def _header(under: UnderWay, result: RunResult) -> report.Header:
    order, took_s = under.order, time.monotonic() - under.since
    facts = [("ran", clock.to_text(order.started)[:19] + "Z"), ("took", f"{took_s:.1f} s")]
    if order.book:
        named = f"{order.book} (the sample: none was named)" if order.sample else str(order.book)
        facts = [("book", named), ("node", order.node), *facts]
    facts.append(("asked", order.asked or "all defaults"))
    rows = [
        (one.name, json.dumps(order.shown[one.name], ensure_ascii=False), one.meaning)
        for one in order.runbook.parameters
    ]
    return report.Header(
        result.runbook,
        result.status,
        result.message,
        facts,
        rows,
        result.findings,
        provenance(under),
    )


def _portable(order: Order, notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook without the paths of this run's making."""
    made = notebook.get("metadata", {}).get("papermill", {})
    made.update(input_path=order.runbook.path.name, output_path="notebook.ipynb")
    return notebook


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", "utf-8")
