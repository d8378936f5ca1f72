"""``runbooks.toml``: from where on a runbook calls something a finding; a table a runbook.

    [dead_letters]
    jobs = 10        # so many of a topic and error are borne

It lies beside the notebooks. Absent, or without a table, the defaults hold. A name that is not
known, or a value of another type, is bad input that names file and line.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from tallybook.errors import BadInput
from tallybook.layout import carried
from tallybook.ops.thresholds import DEFAULTS, Thresholds
from tallybook.runbook.parameters import nearest

FILE = "runbooks.toml"
OTHERS = ("runs",)
"""Tables of that file that are no thresholds: how runs are kept."""


def thresholds(path: Path | None = None) -> Thresholds:
    """The thresholds of all runbooks, from ``path`` or the ``runbooks.toml`` that holds here.

    Raises BadInput that names file and line.
    """
    path = path or place()
    return _read(path) if path.is_file() else DEFAULTS


def own(name: str, path: Path | None = None, **defaults: float | str | bool) -> dict[str, Any]:
    """The thresholds of a runbook of one's own: its table ``[name]``, over the ``defaults``, which
    say which names and types there are. Raises BadInput that names file and line."""
    path = path or place()
    if not path.is_file():
        return dict(defaults)
    text, tables = _parsed(path)
    given = _table(tables, name, _Place(path, text, name))
    where = _Place(path, text, name)
    return {**defaults, **{key: where.value(key, defaults, given[key]) for key in given}}


def place() -> Path:
    """Beside the running notebook, else in ``./runbooks`` or here, else what tallybook carries."""
    running = os.environ.get("TALLYBOOK_RUNBOOK")
    beside = [Path(running).parent / FILE] if running else []
    known = [*beside, Path("runbooks") / FILE, Path(FILE)]
    return next((path for path in known if path.is_file()), carried("runbooks") / FILE)


def _read(path: Path) -> Thresholds:
    text, tables = _parsed(path)
    names = [one.name for one in fields(DEFAULTS)]
    mine = {found.stem for found in path.parent.glob("*.ipynb")} - set(names)
    for name in tables:
        if name not in (*names, *OTHERS) and name not in mine:
            raise BadInput(f"{_Place(path, text, name)}: no such table; {nearest(name, names)}")
    given = {name: _section(path, text, name, tables) for name in names if name in tables}
    return replace(DEFAULTS, **given)


def _section(path: Path, text: str, name: str, tables: Mapping[str, Any]) -> Any:
    where, default = _Place(path, text, name), getattr(DEFAULTS, name)
    known = {one.name: getattr(default, one.name) for one in fields(default)}
    given = _table(tables, name, where)
    return replace(default, **{key: where.value(key, known, given[key]) for key in given})


def _parsed(path: Path) -> tuple[str, dict[str, Any]]:
    try:
        text = path.read_text("utf-8")
        return text, tomllib.loads(text)
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: not valid TOML: {error}") from None


def _table(tables: Mapping[str, Any], name: str, where: _Place) -> Mapping[str, Any]:
    table = tables.get(name, {})
    if not isinstance(table, dict):
        raise BadInput(f"{where}: {name} must be a table, as in [{name}]")
    return table


class _Place:
    """A table of the file, which says on which line its names stand."""

    def __init__(self, path: Path, text: str, table: str) -> None:
        self.path, self.lines, self.table = path, text.splitlines(), table

    def __str__(self) -> str:
        return f"{self.path} line {self._begin() + 1}: [{self.table}]"

    def value(self, key: str, known: Mapping[str, Any], value: Any) -> Any:
        """``value`` in the type of the default; raises BadInput that names the line."""
        if key not in known:
            raise BadInput(f"{self._at(key)}: no such threshold; {nearest(key, list(known))}")
        default = known[key]
        if not _fits(default, value):
            raise BadInput(f"{self._at(key)}: write {_KINDS[type(default)]}, not {value!r}")
        if not isinstance(value, str | bool) and not 0 <= value <= _LARGEST:
            raise BadInput(f"{self._at(key)}: {value} is not in 0 to {_LARGEST:g}")
        return type(default)(value)

    def _at(self, key: str) -> str:
        pattern = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=")
        begin = self._begin()
        found = (n for n, line in enumerate(self.lines) if n >= begin and pattern.match(line))
        return f"{self.path} line {next(found, begin) + 1}: [{self.table}] {key}"

    def _begin(self) -> int:
        head = re.compile(
            rf"\s*(\[\s*[\"']?{re.escape(self.table)}\b|{re.escape(self.table)}\s*[.=])"
        )
        return next((n for n, line in enumerate(self.lines) if head.match(line)), 0)


_LARGEST = 1e12
_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text in quotes"}


def _fits(default: Any, value: Any) -> bool:
    if isinstance(default, float):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return type(value) is type(default)
