"""The file of a repair plan: NDJSON, a head and a line an action, to be read and cut by a person.

The head says what the plan was made from: book, place in its log with the hash of the chain,
export with its digest, policy. A reviewer may take out lines and set ``action`` to another of the
line's ``choices``; each line has a digest over all the rest, so that any other edit is found.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from tallybook.errors import BadInput, unwritable
from tallybook.ids import canonical
from tallybook.layout import FILE_MODE
from tallybook.log.durable import replace_file

FORMAT = 1
ACTIONS = {
    "requeue": "the dead job is pending again, with its idempotency key",
    "enqueue": "a new job with a new idempotency key delivers what is cached here",
    "take_export": "the export's value becomes the entry",
    "merge": "the fields of both become the entry, and a new job delivers them",
    "delete": "the entry is forgotten",
    "leave": "a person decides; nothing is done",
}
_FREE = ("action", "check")
_LINE = {"n": int, "key": str, "difference": str, "cause": str, "action": str, "choices": list,
         "why": str, "told": str, "check": str}  # fmt: skip
_HEAD = {"plan": str, "v": int, "made_at": str, "node_id": str, "policy": str, "key": list,
         "position": dict, "export": dict, "actions": int, "check": str}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Head:
    """What a plan was made from. ``plan`` is a digest of it all; ``position`` the place in the
    log, as ``log.chain.as_json`` gives it; ``export`` its name, digest and cover."""

    plan: str
    made_at: str
    node_id: str
    policy: str
    key: tuple[str, ...]
    position: Mapping[str, Any]
    export: Mapping[str, Any]
    actions: int


@dataclass(frozen=True, slots=True)
class Action:
    """What to do about one key, and what it needs for each of its ``choices``.

    ``entry_key``, ``version`` and ``digest`` say what the cache had; ``value`` is the export's,
    ``merged`` that of both, ``payload`` and ``topic`` of a new job, ``job`` the one to requeue.
    ``line`` is where it stands in its file.
    """

    n: int
    key: str
    difference: str
    cause: str
    action: str
    choices: tuple[str, ...]
    why: str
    told: str
    entry_key: str | None = None
    version: int = 0
    digest: str = ""
    value: Any = None
    merged: Any = None
    topic: str | None = None
    payload: Any = None
    job: Mapping[str, Any] | None = None
    line: int = 0

    def as_json(self) -> dict[str, Any]:
        """The fields of its line, but for ``check``; those that say nothing are left out."""
        told = {name: getattr(self, name) for name in self.__slots__ if name != "line"}
        kept = {name: value for name, value in told.items() if name in _LINE or value is not None}
        if "take_export" in self.choices:
            kept["value"] = self.value
        return kept | {"choices": list(self.choices)}


@dataclass(frozen=True, slots=True)
class Plan:
    """A head and its actions, in order."""

    head: Head
    actions: tuple[Action, ...]

    @property
    def to_do(self) -> tuple[Action, ...]:
        """The actions that change something."""
        return tuple(one for one in self.actions if one.action != "leave")

    def counts(self) -> dict[str, int]:
        """{action: how many}, in the order of ``ACTIONS``."""
        found = [one.action for one in self.actions]
        return {action: found.count(action) for action in ACTIONS if action in found}


def name_of(made_from: Mapping[str, Any], actions: Iterable[Action]) -> str:
    """The name of a plan: equal for equal plans made from the same book, place and export."""
    lines = [canonical(made_from), *(canonical(one.as_json()) for one in actions)]
    return hashlib.blake2b("\n".join(lines).encode(), digest_size=8).hexdigest()


def write(path: Path, plan: Plan) -> None:
    """Write the plan, whole or not at all. Raises BadInput where it cannot be written, NoRoom on
    a full disk."""
    head = {name: getattr(plan.head, name) for name in Head.__slots__} | {"v": FORMAT}
    rows = [_sealed(plan.head.plan, head | {"key": list(plan.head.key)})]
    rows += [_sealed(plan.head.plan, one.as_json()) for one in plan.actions]
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(path, b"".join(orjson.dumps(row) + b"\n" for row in rows), "plan")
        path.chmod(FILE_MODE)
    except OSError as error:
        raise unwritable(f"{path}: the plan", error) from None


def read(path: Path) -> Plan:
    """The plan in a file. Raises BadInput that names the line which no plan can have."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot read the plan {path}: {error.strerror}") from None
    rows = [(at, line) for at, line in enumerate(text.split(b"\n"), 1) if line.strip()]
    if not rows:
        raise BadInput(f"{path} is empty: a plan has a head and a line an action")
    head = _head(_Row(path, *rows[0]))
    actions = tuple(_action(_Row(path, *row), head.plan) for row in rows[1:])
    _require_once(path, actions)
    return Plan(head, actions)


def _check(plan: str, fields: Mapping[str, Any]) -> str:
    told = {name: value for name, value in fields.items() if name not in _FREE}
    text = f"{plan}\n{canonical(told)}"
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _sealed(plan: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {**fields, "check": _check(plan, fields)}


@dataclass(frozen=True, slots=True)
class _Row:
    path: Path
    number: int
    text: bytes

    def fields(self, wanted: Mapping[str, type]) -> dict[str, Any]:
        """The object of this line, which has all that is wanted, each of its type."""
        try:
            found = orjson.loads(self.text)
        except orjson.JSONDecodeError as error:
            raise self.refused(f"is not JSON: {error.msg} at column {error.colno}") from None
        if not isinstance(found, dict):
            raise self.refused("is no JSON object")
        for name, kind in wanted.items():
            if name not in found:
                raise self.refused(f"has no {name!r}")
            if not isinstance(found[name], kind) or isinstance(found[name], bool):
                raise self.refused(f"has a {name!r} that is no {kind.__name__}")
        return found

    def refused(self, what: str) -> BadInput:
        """The error that names this line."""
        return BadInput(
            f"{self.path} line {self.number} {what}; take lines out or set their action to one of "
            "their choices, and leave the rest as it was made"
        )


def _head(row: _Row) -> Head:
    found = row.fields(_HEAD)
    if found["v"] != FORMAT:
        raise BadInput(f"{row.path} has the format {found['v']}; this version reads {FORMAT}")
    if found["check"] != _check(found["plan"], found):
        raise row.refused("was edited: it says what the plan was made from")
    named = {name: found[name] for name in Head.__slots__ if name != "key"}
    return Head(**named, key=tuple(found["key"]))


def _action(row: _Row, plan: str) -> Action:
    found = row.fields(_LINE)
    if found["action"] not in ACTIONS:
        raise row.refused(f"has no such action: {found['action']!r}")
    if found["check"] != _check(plan, found):
        raise row.refused("was edited")
    if found["action"] not in found["choices"]:
        raise row.refused(f"cannot be {found['action']!r}: its choices are {found['choices']}")
    del found["check"]
    return replace(Action(**found | {"choices": tuple(found["choices"])}), line=row.number)


def _require_once(path: Path, actions: Iterable[Action]) -> None:
    seen: dict[int, int] = {}
    for one in actions:
        if one.n in seen:
            raise BadInput(
                f"{path} line {one.line} is line {seen[one.n]} again: take one of them out"
            )
        seen[one.n] = one.line
