"""Which profile: one that tallybook carries or a file of the user's, with changes of the moment."""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tallybook.errors import BadInput
from tallybook.ops.imports.parsing import parse
from tallybook.ops.imports.profile import Profile

_BUILT_IN = Path(__file__).parent / "profiles"


def built_in() -> list[str]:
    """The names of the profiles that tallybook carries."""
    return sorted(path.stem for path in _BUILT_IN.glob("*.toml"))


def load(name_or_path: str, changes: Iterable[str] = ()) -> Profile:
    """The profile of a name or a file, with ``changes`` like ``time.zone=Europe/Berlin``.

    Raises BadInput where there is none, or where it cannot be used.
    """
    path = _find(name_or_path)
    try:
        text = path.read_text("utf-8")
        tables = tomllib.loads(text)
    except OSError as error:
        raise BadInput(f"cannot read the profile {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path} is no profile: it is not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        hint = "; a field is given twice: one column a field" if "overwrite" in str(error) else ""
        raise BadInput(f"{path} is no TOML: {error}{hint}") from None
    given = list(changes)
    for change in given:
        _change(tables, change)
    return parse(path.stem, tables, str(path), _kept(text, given))


def _kept(text: str, changes: list[str]) -> str:
    """The text of a profile with what the command line changed in it, as remarks."""
    return text + "".join(f"# changed by --set {change}\n" for change in changes)


def _find(name: str) -> Path:
    if name.endswith(".toml") or "/" in name:
        if not Path(name).is_file():
            raise BadInput(f"no profile at {name}")
        return Path(name)
    path = _BUILT_IN / f"{name}.toml"
    if path.is_file():
        return path
    known = ", ".join(built_in())
    raise BadInput(f"no profile {name!r}; there are {known}; or give the path of a .toml file")


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
