"""What a native layout is: one small file in ``layouts`` that says how it differs from its format.

A layout is known by its manifest (``listed``) or by how its first text begins (``suits``). Its
``rows`` turn the JSON values of a file into rows; layouts of CSV, ORC and Parquet need none.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tallybook.ops.exports import jsons
from tallybook.ops.exports.parts import Found, Part
from tallybook.ops.exports.profile import Rule


@dataclass(frozen=True, slots=True)
class Head:
    """How a text begins: the name of its file, its first letters and its first JSON value."""

    name: str
    text: str
    first: Any = None

    @property
    def keys(self) -> set[str]:
        """The names in the first JSON object; none where it is no object."""
        return set(self.first) if isinstance(self.first, dict) else set()


@dataclass(frozen=True, slots=True)
class Listed:
    """What a manifest lists, every file there and whole: the parts and what it says of them.

    ``columns`` are those of files without a header; ``rows`` how many rows a part must have.
    """

    parts: list[Part]
    columns: tuple[str, ...] = ()
    rules: Mapping[str, Rule] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    format: str = ""


def _never(_: Head) -> bool:
    return False


def _no_manifest(_: Found) -> Listed | None:
    return None


@dataclass(frozen=True, slots=True)
class Layout:
    """A native layout. ``format`` is that of its files: csv, ndjson, copy, orc, parquet or any."""

    name: str
    about: str
    format: str = ""
    suits: Callable[[Head], bool] = _never
    listed: Callable[[Found], Listed | None] = _no_manifest
    rows: jsons.Rows = jsons.objects
