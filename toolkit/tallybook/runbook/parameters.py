"""Parameters of a notebook: what its ``parameters`` cell declares is what a run may set.

    since = ""        # [time] begin of the window; empty = the first event
    every_s = 60      # [1..3600] width of a window
    topic: str        # the topic; it has no default, so a run must give it
    dry_run = True    # say what would change, change nothing

The literal, or else the annotation, gives the type; the comment gives bounds, in brackets, and the
meaning. Text stays text: 007, 1e5, null and true arrive as they were typed where the default is
text or None.
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
from tallybook.runbook.bounds import FREE, SECRET, Bounds, bounded

_SECRET = re.compile(r"(^|_)(password|passwd|secret|token|credential|api_?key)s?(_|$)", re.I)
_KINDS = {bool: "true or false", int: "whole number", float: "number", str: "text"}
_TYPES = {kind.__name__: kind for kind in _KINDS}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One declared parameter. ``type`` is bool, int, float or str; ``default`` is of that type or
    None, which stands for text that is not given; a ``required`` one has none."""

    name: str
    default: Any
    meaning: str = ""
    type: type = str
    bounds: Bounds = FREE
    required: bool = False

    @property
    def kind(self) -> str:
        """The type in words."""
        return _KINDS[self.type]

    @property
    def secret(self) -> bool:
        """Whether its value is only the reference to a secret."""
        return self.bounds.form == SECRET

    def read(self, text: str) -> Any:
        """``text`` as a value of this parameter; raises BadInput that says what fits."""
        value = {bool: _flag, int: _whole, float: _number}.get(self.type, str)(text)
        if value is None:
            raise BadInput(f"parameter {self.name}: {text!r} is no {self.kind}")
        self.require(value)
        return value

    def require(self, value: Any) -> None:
        """Raise BadInput where ``value`` is not within the bounds."""
        problem = self.bounds.problem(value)
        if problem:
            raise BadInput(f"parameter {self.name}: {problem}")


def declared(source: str) -> tuple[Parameter, ...]:
    """The parameters of a parameters cell. Raises BadInput where it is more than assignments."""
    try:
        statements = ast.parse(source).body
    except SyntaxError as error:
        raise BadInput(f"the parameters cell does not parse: {error}") from None
    comments = _comments(source)
    return tuple(_parameter(statement, comments) for statement in statements)


def typed(known: Sequence[Parameter], given: Mapping[str, str]) -> dict[str, Any]:
    """Values for the given texts, by declared type.

    Raises BadInput for a name that is unknown, or required and not given.
    """
    by_name = {parameter.name: parameter for parameter in known}
    for name in given:
        if name not in by_name:
            raise BadInput(f"no parameter {name}: {nearest(name, list(by_name))}")
    for one in known:
        if one.required and one.name not in given:
            meaning = f" ({one.meaning})" if one.meaning else ""
            raise BadInput(f"parameter {one.name}{meaning} has no default: give it a {one.kind}")
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
            annotation = None
        case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value):
            pass
        case _:
            line = ast.unparse(statement)
            raise BadInput(f"the parameters cell may only give names a literal, not {line!r}")
    try:
        default = None if value is None else ast.literal_eval(value)
    except ValueError:
        raise BadInput(f"parameter {name}: its default is no literal") from None
    kind = _type(name, annotation, default)
    return _checked(name, default, kind, comments.get(statement.end_lineno or 0, ""), value is None)


def _type(name: str, annotation: ast.expr | None, default: Any) -> type:
    """The declared type; raises BadInput where it is none of the four, or not the default's."""
    told = ast.unparse(annotation) if annotation else ""
    kind = _TYPES.get(told) if told else str if default is None else type(default)
    if kind not in _KINDS:
        what = told or type(default).__name__
        raise BadInput(f"parameter {name}: {what} is no type of one: {', '.join(_TYPES)}")
    if default is not None and type(default) is not kind:
        raise BadInput(f"parameter {name}: its default {default!r} is no {_KINDS[kind]}")
    return kind


def _checked(name: str, default: Any, kind: type, comment: str, required: bool) -> Parameter:
    """The parameter, with bounds that fit its type and hold for its default."""
    try:
        bounds, meaning = bounded(comment)
    except BadInput as error:
        raise BadInput(f"parameter {name}: {error}") from None
    if _SECRET.search(name) and kind is str:
        bounds = Bounds(form=SECRET)
    numeric = bounds.low is not None or bounds.high is not None
    if bounds != FREE and numeric != (kind in (int, float)):
        raise BadInput(f"parameter {name}: [{bounds.told}] does not fit a {_KINDS[kind]}")
    made = Parameter(name, default, meaning, kind, bounds, required)
    if default is not None:
        made.require(default)
    return made


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
