"""What profiles of any kind share: which file is meant, its tables, and the checks of a value.

Each error names the file, the table and the field, and what may stand there.
"""

import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from tallybook.errors import BadInput

_WORDS = {str: "a text", bool: "true or false", int: "a whole number", list: "a list"}


def names(folder: Path) -> list[str]:
    """The names of the profiles in ``folder``, sorted."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def find(name: str, built_in: Path) -> Path:
    """The file of a profile: a path, or the name of one that tallybook carries in ``built_in``.

    Raises BadInput where there is none.
    """
    if name.endswith(".toml") or "/" in name:
        if not Path(name).is_file():
            raise BadInput(f"no profile at {name}")
        return Path(name)
    path = built_in / f"{name}.toml"
    if path.is_file():
        return path
    known = ", ".join(names(built_in))
    raise BadInput(f"no profile {name!r}; there are {known}; or give the path of a .toml file")


def read(path: Path) -> tuple[str, dict[str, Any]]:
    """The text of a profile and its tables; raises BadInput where it is none."""
    try:
        text = path.read_text("utf-8")
        return text, tomllib.loads(text)
    except OSError as error:
        raise BadInput(f"cannot read the profile {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path} is no profile: it is not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        hint = "; a field is given twice: one column a field" if "overwrite" in str(error) else ""
        raise BadInput(f"{path} is no TOML: {error}{hint}") from None


def table(
    tables: Mapping[str, Any], name: str, fields: Iterable[str] | None = None
) -> Mapping[str, Any]:
    """The table ``name``, empty where it is absent; with ``fields`` it has no others."""
    held = tables.get(name, {})
    if not isinstance(held, dict):
        raise BadInput(f"{name} must be a table: write [{name}]")
    if fields is not None:
        known(held, fields, f"field of [{name}]")
    return held


def known(given: Iterable[str], names: Iterable[str], what: str) -> None:
    """Raise BadInput for the first of ``given`` that is none of ``names``, with the nearest."""
    listed = list(names)
    for name in given:
        if name not in listed:
            near = get_close_matches(name, listed, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(listed)}"
            raise BadInput(f"no {what} {name!r}; {hint}")


def typed(value: Any, kind: type, place: str) -> Any:
    """``value``, which must be a text, a list, a whole number or true or false."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise BadInput(f"{place}: {value!r} is not {_WORDS[kind]}")
    return value


def texts(value: Any, place: str) -> tuple[str, ...]:
    """The texts of a list."""
    return tuple(str(typed(one, str, place)) for one in typed(value, list, place))
