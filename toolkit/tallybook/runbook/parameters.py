"""Parameters of a notebook: what its ``parameters`` cell declares is what a run may set.

    since = ""        # begin of the window, UTC; empty = the first event
    every_s = 60      # width of a window
    dry_run = True    # say what would change, change nothing

The literal gives the type, the comment the meaning. Text stays text: 007, 1e5, null and true
arrive as they were typed where the default is text or None.
"""

from __future__ import annotations

import ast
import io
import math
import re
import tokenize
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from tallybook.errors import BadInput

_SECRET = re.compile(r"(^|_)(password|passwd|secret|token|credential|api_?key)s?(_|$)", re.I)
_HIDDEN = "***"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One declared parameter: ``default`` is a literal and gives the type."""

    name: str
    default: Any
    meaning: str = ""

    @property
    def kind(self) -> str:
        """The type in words."""
        names = {bool: "true or false", int: "whole number", float: "number"}
        return names.get(type(self.default), "text")

    def read(self, text: str) -> Any:
        """``text`` as a value of this parameter's type; raises BadInput that says what fits."""
        readers = {bool: _flag, int: _whole, float: _number}
        value = readers.get(type(self.default), str)(text)
        if value is None:
            raise BadInput(f"parameter {self.name}: {text!r} is no {self.kind}")
        return value

    def shown(self, value: Any) -> Any:
        """``value`` as reports and the run ledger may show it: secrets are hidden."""
        return _HIDDEN if value and _SECRET.search(self.name) else value


def declared(source: str) -> tuple[Parameter, ...]:
    """The parameters of a parameters cell. Raises BadInput where it is more than assignments."""
    try:
        statements = ast.parse(source).body
    except SyntaxError as error:
        raise BadInput(f"the parameters cell does not parse: {error}") from None
    comments = _comments(source)
    return tuple(_parameter(statement, comments) for statement in statements)


def typed(known: Sequence[Parameter], given: Mapping[str, str]) -> dict[str, Any]:
    """Values for the given texts, by declared type; raises BadInput for an unknown name."""
    by_name = {parameter.name: parameter for parameter in known}
    for name in given:
        if name not in by_name:
            raise BadInput(f"no parameter {name}: {nearest(name, list(by_name))}")
    return {name: by_name[name].read(text) for name, text in given.items()}


def nearest(name: str, names: Sequence[str]) -> str:
    """A hint for a mistyped name: the nearest known one, else all of them."""
    near = get_close_matches(name, names, 1, 0.5)
    if near:
        return f"did you mean {near[0]}?"
    return f"known: {', '.join(names)}" if names else "there is none to choose from"


def _parameter(statement: ast.stmt, comments: Mapping[int, str]) -> Parameter:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.expr() as value):
            pass
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            pass
        case _:
            line = ast.unparse(statement)
            raise BadInput(f"the parameters cell may only give names a literal, not {line!r}")
    try:
        default = ast.literal_eval(value)
    except ValueError:
        raise BadInput(f"parameter {name}: its default is no literal") from None
    return Parameter(name, default, comments.get(statement.end_lineno or 0, ""))


def _comments(source: str) -> dict[int, str]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    marks = [token for token in tokens if token.type == tokenize.COMMENT]
    return {mark.start[0]: mark.string.lstrip("# ").rstrip() for mark in marks}


def _flag(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text.strip().lower())


def _whole(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,18}", text.strip()) else None


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
