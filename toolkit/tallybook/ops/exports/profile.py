"""A profile: how one kind of export is to be read, pinned, so that nothing is guessed twice.

docs/exports.md is its specification.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Rule:
    """The table ``[columns.NAME]`` as far as it says how the cells of a column are written.

    ``format`` is that of a date or time in strptime's marks, ``zone`` that of times without one,
    ``decimal`` and ``thousands`` the marks of a number, ``null`` the words that mean no value.
    """

    type: str = "text"
    format: str = ""
    zone: str = "UTC"
    decimal: str = "."
    thousands: str = ""
    null: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Profile:
    """How to read one kind of export.

    ``comparing`` has, by column, what its table says beyond the reading (a tolerance, another name,
    …): reconcile checks and uses it.
    """

    name: str
    rules: Mapping[str, Rule] = field(default_factory=dict)
    comparing: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
