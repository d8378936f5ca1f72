"""Which profile: one that tallybook carries or a file of the user's, with changes of the moment."""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tallybook.errors import BadInput
from tallybook.ops import profiles
from tallybook.ops.imports.parsing import parse
from tallybook.ops.imports.profile import Profile

_BUILT_IN = Path(__file__).parent / "profiles"


def built_in() -> list[str]:
    """The names of the profiles that tallybook carries."""
    return profiles.names(_BUILT_IN)


def load(name_or_path: str, changes: Iterable[str] = ()) -> Profile:
    """The profile of a name or a file, with ``changes`` like ``time.zone=Europe/Berlin``.

    Raises BadInput where there is none, or where it cannot be used.
    """
    path = profiles.find(name_or_path, _BUILT_IN)
    text, tables = profiles.read(path)
    given = list(changes)
    for change in given:
        _change(tables, change)
    return parse(path.stem, tables, str(path), _kept(text, given))


def _kept(text: str, changes: list[str]) -> str:
    """The text of a profile with what the command line changed in it, as remarks."""
    return text + "".join(f"# changed by --set {change}\n" for change in changes)


def _change(tables: dict[str, Any], change: str) -> None:
    place, mark, value = change.partition("=")
    table, dot, name = place.strip().partition(".")
    if not mark or not dot or not name:
        raise BadInput(f"--set {change!r} is not like time.zone=Europe/Berlin")
    held = tables.setdefault(table, {})
    if not isinstance(held, dict):
        raise BadInput(f"--set {change!r}: {table} is no table of a profile")
    try:
        held[name] = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        held[name] = value
