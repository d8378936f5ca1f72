"""A run that is under way: what the ledger and the end of its report say of it."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from tallybook import clock
from tallybook.runbook import folder, ledger, positions
from tallybook.runbook.orders import Order

EXIT_CODES = {"clean": 0, "findings": 1, "bad_input": 2, "failed": 3, "incomplete": 4}
_PACKAGES = ("tallybook", "papermill", "duckdb", "polars", "altair")


@dataclass(slots=True)
class UnderWay:
    """A run that is under way: ``inputs`` are where its inputs ended when it began."""

    order: Order
    inputs: Mapping[str, Any]
    since: float = field(default_factory=time.monotonic)

    @property
    def partial(self) -> Path:
        """The folder of the run until it is whole."""
        return self.order.out / folder.REPORTS / f"{self.order.run}{folder.PARTIAL}"

    def line(self, status: str, **more: Any) -> dict[str, Any]:
        """A line of the ledger."""
        order = self.order
        return {
            "run": order.run,
            "runbook": order.runbook.name,
            "status": status,
            "started_at": clock.to_text(order.started),
            "pid": os.getpid(),
            "book": str(order.book) if order.book else None,
            "notebook": str(order.runbook.path.resolve()),
            "parameters": order.shown,
            "inputs": self.inputs,
            "versions": versions(),
            **more,
        }

    def end(self, status: str, **more: Any) -> dict[str, Any]:
        """The last line of the ledger about this run."""
        code = EXIT_CODES.get(status, ledger.INTERRUPTED_CODE)
        duration_s = round(time.monotonic() - self.since, 3)
        return self.line(status, exit_code=code, duration_s=duration_s, **more)


def inputs(order: Order) -> dict[str, Any]:
    """Where the inputs of a run end: of the log, and of the files that its parameters name."""
    values = {name: value for name, value in order.shown.items() if name != "book"}
    log = positions.of_log(order.book) if order.book else []
    return {"log": log, "files": positions.of_files(values)}


def provenance(under: UnderWay) -> list[tuple[str, str]]:
    """What this run was made of: notebook, inputs and where they ended, versions."""
    inputs = under.inputs
    ends = [
        f"{one['segment']}: {one['bytes']:,} bytes"
        + (f", up to line {one['seq']:,}" if one.get("seq") else "")
        for one in inputs["log"]
    ]
    files = [
        f"{name}: {one['bytes']:,} bytes, of {one['modified_at'][:19]}Z"
        for name, one in inputs["files"].items()
    ]
    known = ", ".join(f"{name} {version}" for name, version in versions().items())
    return [
        ("run", under.order.run),
        ("notebook", str(under.order.runbook.path)),
        *(("log", one) for one in ends),
        *(("file", one) for one in files),
        ("versions", known),
    ]


def versions() -> dict[str, str]:
    """The packages that make an answer, by name; those that are not installed are left out."""
    known = {name: _version(name) for name in _PACKAGES}
    present = {name: version for name, version in known.items() if version}
    return {**present, "python": platform.python_version()}


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
