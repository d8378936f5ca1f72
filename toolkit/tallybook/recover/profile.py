"""How to read a change log of another system: a small TOML file.

operation       where the kind of a change stands; members of members with dots
put, invalidate, truncate, skip    the words of each kind
value, old      the row after and before; with old_is_partial only what changed
table           members that together name the table
at, unit        members that may hold the instant, and its unit: s, ms, us, or rfc3339
key_columns     a member that names the key columns; else they are given by hand
unwrap          an envelope to open where it is there
unavailable     what stands for a cell that was not sent since it did not change
comment         how lines begin that are no change; JSON never begins so
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

from tallybook.clock import from_text, to_text
from tallybook.errors import BadInput

_UNITS = {"s": 1_000_000, "ms": 1000, "us": 1}
_BUILT_IN = files("tallybook.recover").joinpath("profiles")


@dataclass(frozen=True, slots=True)
class ChangeProfile:
    """A profile as read; ``name`` is for messages."""

    name: str
    operation: str
    value: str
    put: list[str] = field(default_factory=list)
    invalidate: list[str] = field(default_factory=list)
    truncate: list[str] = field(default_factory=list)
    skip: list[str] = field(default_factory=list)
    old: str = ""
    old_is_partial: bool = False
    table: list[str] = field(default_factory=list)
    at: list[str] = field(default_factory=list)
    unit: str = "ms"
    key_columns: str = ""
    unwrap: str = ""
    unavailable: str = ""
    comment: list[str] = field(default_factory=lambda: ["#", "//", "/*", "*"])

    def moment(self, change: dict[str, Any]) -> str:
        """When a change happened, as RFC 3339; empty where it does not say, or not so."""
        found = next((at for name in self.at if (at := member(change, name)) is not None), None)
        if found is None:
            return ""
        try:
            if self.unit == "rfc3339":
                return to_text(from_text(str(found)))
            passed = timedelta(microseconds=int(found) * _UNITS[self.unit])
            return to_text(datetime(1970, 1, 1, tzinfo=UTC) + passed)
        except (TypeError, ValueError, OverflowError):
            return ""


def member(of: Any, path: str) -> Any:
    """The member at a path with dots; None where there is none."""
    for name in path.split("."):
        if not isinstance(of, dict):
            return None
        of = of.get(name)
    return of


def load(given: str) -> ChangeProfile:
    """The profile of that name, or in that file. Raises BadInput that names what is wrong."""
    path = Path(given)
    known = sorted(one.name.removesuffix(".toml") for one in _BUILT_IN.iterdir())
    try:
        text = _BUILT_IN.joinpath(f"{given}.toml").read_text("utf-8") if given in known else ""
        raw = tomllib.loads(text or path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        raise BadInput(
            f"no profile {given!r}: name a TOML file, or one of {', '.join(known)}"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"profile {given}: not valid TOML: {error}") from None
    return _checked(given, raw)


def _checked(given: str, raw: dict[str, Any]) -> ChangeProfile:
    defaults = ChangeProfile("", "", "")
    for name, value in raw.items():
        if name not in {one.name for one in fields(ChangeProfile)} - {"name"}:
            raise BadInput(f"profile {given}: {name!r} is no setting of a change log's profile")
        if not isinstance(value, type(getattr(defaults, name))):
            kind = type(getattr(defaults, name)).__name__
            raise BadInput(f"profile {given}: {name} must be a {kind}")
    for name in ("operation", "value", "put"):
        if not raw.get(name):
            raise BadInput(f"profile {given}: give {name}")
    if raw.get("unit", "ms") not in (*_UNITS, "rfc3339"):
        raise BadInput(f"profile {given}: unit {raw['unit']!r} is none of s, ms, us and rfc3339")
    return ChangeProfile(given, **raw)
