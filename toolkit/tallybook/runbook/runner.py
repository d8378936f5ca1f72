"""``run``: one runbook, from the question whether it can run to the line in the ledger."""

from __future__ import annotations

import json
import logging
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from tallybook import clock, layout
from tallybook.errors import BadInput
from tallybook.runbook import answers, catalogue, engine, folder, parameters, report
from tallybook.runbook.catalogue import Runbook

EXIT_CODES = {"clean": 0, "findings": 1, "bad_input": 2, "failed": 3, "incomplete": 4}
_LOG = logging.getLogger(__name__)
_PACKAGES = ("tallybook", "papermill", "duckdb", "polars", "altair")
_STATUS_OF_ERROR = {"BadInput": "bad_input", "IncompleteInput": "incomplete"}


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
class _Order:
    """A run that can be made: everything the user gave was understood."""

    runbook: Runbook
    values: Mapping[str, Any]
    book: Path | str | None
    node: str
    out: Path
    started: datetime
    sample: bool = False

    def shown(self) -> dict[str, Any]:
        """The parameters of this run, given or default; of a secret the reference."""
        known = self.runbook.parameters
        return {one.name: self.values.get(one.name, one.default) for one in known}


def run(
    name_or_path: str | Path,
    given: Mapping[str, str] | None = None,
    book: str | Path | None = None,
    out: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> RunResult:
    """Run one runbook; ``given`` are its parameters as texts, ``progress`` gets (cell, cells).

    Raises BadInput before anything runs for an unknown runbook or parameter, a value of another
    type, or no book. What happens later is in the result. After KeyboardInterrupt no kernel and
    no partial folder are left.
    """
    engine.require("papermill")
    order = _order(name_or_path, given or {}, book, out)
    partial = folder.begin(order.out, order.runbook.name, order.started)
    since = time.monotonic()
    try:
        failure = engine.execute(_job(order, partial, progress))
        result = _kept(order, partial, failure, time.monotonic() - since)
    except BaseException as error:
        folder.drop(partial)
        status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
        _record(order, partial, status, time.monotonic() - since)
        raise
    _record(order, result.folder, result.status, time.monotonic() - since)
    return result


def _order(
    name_or_path: str | Path, given: Mapping[str, str], book: str | Path | None, out: Any
) -> _Order:
    runbook = catalogue.find(name_or_path)
    try:
        if given and not runbook.tagged:
            raise BadInput("it has no cell tagged 'parameters', so it takes none; tag one")
        values = parameters.typed(runbook.parameters, given)
    except BadInput as error:
        raise BadInput(f"runbook {runbook.name}: {error}") from None
    where = _book(runbook, values, book)
    sample = where is not None and runbook.takes("book") and _is_unasked(values, book)
    if sample:
        _tell_sample(runbook, values, where)
    node = folder.node_of(where) if where else "no-book"
    if runbook.takes("book"):
        values = {**values, "book": str(where)}
    return _Order(
        runbook, values, where, node, layout.out_dir(out, node), datetime.now(UTC), sample
    )


def _book(
    runbook: Runbook, values: Mapping[str, Any], book: str | Path | None
) -> Path | str | None:
    """The book, fleet or bucket that the run reads, checked; None for one that takes none."""
    if not runbook.takes("book"):
        return Path(book).resolve() if book else None
    named = values.get("book") or ""
    if named and book and Path(named).resolve() != Path(book).resolve():
        raise BadInput(f"two books: --book {book} and parameter book={named}; name one")
    return layout.require_readable(layout.find_book_or_sample(named or book))


def _is_unasked(values: Mapping[str, Any], book: str | Path | None) -> bool:
    """Whether nobody named a book and there is none here, so that the sample is read."""
    return not (values.get("book") or book) and not layout.is_readable(layout.find_book())


def _tell_sample(runbook: Runbook, values: Mapping[str, Any], book: Path | str | None) -> None:
    """Say that the sample book is read; raises BadInput where the run would change it."""
    if values.get("dry_run") is False:
        raise BadInput(
            f"runbook {runbook.name}: dry_run=false changes a book, and none is named and none is "
            "at ./book; name it with --book DIR"
        )
    _LOG.warning("no book is named and none is at ./book: this is the sample book %s", book)


def _job(order: _Order, partial: Path, progress: Callable[[int, int], None] | None) -> engine.Job:
    environment = {"TALLYBOOK_RUNBOOK": str(order.runbook.path.resolve())}
    if order.book:
        environment["TALLYBOOK_BOOK"] = str(order.book)
    source = order.runbook.path
    return engine.Job(source, partial.resolve(), order.values, environment, progress)


def _kept(
    order: _Order, partial: Path, failure: engine.Failure | None, duration_s: float
) -> RunResult:
    """Write the three files of a run and give its folder the final name."""
    notebook = engine.loaded(partial / "notebook.ipynb") or {"cells": []}
    cells: Sequence[dict[str, Any]] = notebook["cells"]
    answered = answers.carried_by(output for cell in cells for output in cell.get("outputs", ()))
    status, message = _judged(order, failure, answered)
    result = RunResult(
        order.runbook.name, status, partial, answered.findings if answered else (), message
    )
    _write(partial / "notebook.ipynb", _portable(order, notebook))
    _write(partial / "findings.json", {"status": status, "findings": list(result.findings)})
    page = report.render(_header(order, result, duration_s), cells)
    (partial / "report.html").write_text(page, "utf-8")
    final = folder.finish(partial)
    return RunResult(result.runbook, status, final, result.findings, message)


def _judged(
    order: _Order, failure: engine.Failure | None, answered: answers.Answer | None
) -> tuple[str, str]:
    """The status of a run and one line that says why it is no plain answer."""
    name = order.runbook.name
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


def _header(order: _Order, result: RunResult, duration_s: float) -> report.Header:
    facts = [("ran", clock.to_text(order.started)[:19] + "Z"), ("took", f"{duration_s:.1f} s")]
    if order.book:
        named = f"{order.book} (the sample: none was named)" if order.sample else str(order.book)
        facts = [("book", named), ("node", order.node), *facts]
    facts.append(("asked", _asked(order) or "all defaults"))
    rows = [
        (one.name, json.dumps(order.shown()[one.name], ensure_ascii=False), one.meaning)
        for one in order.runbook.parameters
    ]
    footer = ", ".join(f"{name} {version}" for name, version in _versions().items())
    return report.Header(
        result.runbook, result.status, result.message, facts, rows, result.findings, footer
    )


def _asked(order: _Order) -> str:
    """The parameters that the user gave, as they would be typed."""
    shown = order.shown()
    return ", ".join(f"{name}={shown[name]}" for name in order.values if name != "book")


def _portable(order: _Order, notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook without the paths of this run's making."""
    made = notebook.get("metadata", {}).get("papermill", {})
    made.update(input_path=order.runbook.path.name, output_path="notebook.ipynb")
    return notebook


def _record(order: _Order, place: Path, status: str, duration_s: float) -> None:
    line = {
        "run": place.name.removesuffix(folder.PARTIAL),
        "runbook": order.runbook.name,
        "status": status,
        "exit_code": EXIT_CODES.get(status, 130),
        "started_at": clock.to_text(order.started),
        "duration_s": round(duration_s, 3),
        "book": str(order.book) if order.book else None,
        "parameters": order.shown(),
        "versions": _versions(),
    }
    folder.record(order.out, line)


def _versions() -> dict[str, str]:
    known = {name: _version(name) for name in _PACKAGES}
    present = {name: version for name, version in known.items() if version}
    return {**present, "python": platform.python_version()}


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", "utf-8")
