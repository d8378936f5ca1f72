"""Thresholds of runbooks.toml, for notebooks: from where on something is a finding.

    [dead_letters]
    jobs = 10        # so many of a topic and error are borne

A table a runbook. Absent, or without a table, the defaults hold. A name that is not known, or a
value of another type, is bad input that names file and line. An entry of the schedule has its own
over these: its run finds them in ``TALLYBOOK_THRESHOLDS``, a JSON object.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from tallybook.errors import BadInput
from tallybook.ops.thresholds import Thresholds
from tallybook.runbook.settings import FILE, load, place
from tallybook.runbook.toml_file import TomlFile

__all__ = ["FILE", "VARIABLE", "own", "place", "thresholds"]

VARIABLE = "TALLYBOOK_THRESHOLDS"


def thresholds(path: Path | None = None) -> Thresholds:
    """The thresholds of all runbooks, from ``path`` or the ``runbooks.toml`` that holds here.

    Raises BadInput that names file and line.
    """
    known = load(path or place()).thresholds
    names = {one.name for one in fields(known)}
    scheduled = {name: one for name, one in _scheduled().items() if name in names}
    return replace(
        known, **{name: replace(getattr(known, name), **scheduled[name]) for name in scheduled}
    )


def own(table: str, path: Path | None = None, /, **defaults: float | str | bool) -> dict[str, Any]:
    """The thresholds of a runbook of one's own: its table ``[table]``, over the ``defaults``, which
    say which names and types there are. Raises BadInput that names file and line."""
    path = path or place()
    given: dict[str, Any] = {}
    if path.is_file():
        file = TomlFile(path)
        given = file.values(defaults, file.raw.get(table, {}), (table,))
    return {**defaults, **given, **_scheduled().get(table, {})}


def _scheduled() -> Mapping[str, Mapping[str, Any]]:
    """{runbook: its thresholds in the entry of the schedule that this run belongs to}."""
    try:
        return dict(json.loads(os.environ.get(VARIABLE) or "{}"))
    except ValueError:
        raise BadInput(f"{VARIABLE} holds no JSON object; unset it") from None
