"""The options of ``tallybook reconcile`` that say when two cells mean the same."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, Final

from tallybook.errors import BadInput

_VALUED: Final = {
    "type": ("TYPE", "integer, decimal or timestamp; a column is text unless told"),
    "tolerance": ("NUMBER", "the largest difference that counts as none; of times in seconds"),
    "relative": ("NUMBER", "the same as a part of the larger value: 0.01 is 1 %%"),
    "rename": ("NAME", "column COL of one side is compared with NAME of the other"),
    "space": ("HOW", "trim: blanks at the ends do not count; collapse: nor how many inside"),
    "null": ("WORD", "a word that means no value, also none: COL=; again for more"),
    "zone": ("ZONE", "the zone of times without an offset, like Europe/Berlin; else UTC"),
    "precision": ("UNIT", "times count to the day, hour, minute, s, ms, us or ns"),
    "normal-form": ("FORM", "NFC: texts that look the same are the same"),
}
_FLAGS: Final = {
    "ignore": "leave the column out",
    "ignore-case": "capital and small letters are the same",
}


def add(parser: argparse.ArgumentParser) -> None:
    """The options, each of which may be given again for other columns; COL may be *: every one."""
    group = parser.add_argument_group(
        "rules of columns (COL is a name on either side, or * for every one)"
    )
    for name, (what, words) in _VALUED.items():
        group.add_argument(
            f"--{name}", metavar=f"COL={what}", action="append", default=[], dest=_place(name),
            help=words,
        )  # fmt: skip
    for name, words in _FLAGS.items():
        group.add_argument(
            f"--{name}", metavar="COL", action="append", default=[], dest=_place(name), help=words
        )


def rules(args: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """What was asked for, by column and field. Raises BadInput."""
    found: dict[str, dict[str, Any]] = {}
    for name in _VALUED:
        for given in getattr(args, _place(name)):
            column, value = _split(name, given)
            rule = found.setdefault(column, {})
            _put(rule, name, column, value)
    for name in _FLAGS:
        for column in getattr(args, _place(name)):
            found.setdefault(column, {})[_field(name)] = True
    return found


def _put(rule: dict[str, Any], name: str, column: str, value: str) -> None:
    field = _field(name)
    if name == "null":
        rule[field] = [*rule.get(field, []), value]
    elif rule.setdefault(field, value) != value:
        said = f"{rule[field]!r} and {value!r}"
        raise BadInput(f"--{name}: column {column!r} is given twice, {said}; say one")


def _split(name: str, given: str) -> tuple[str, str]:
    column, mark, value = given.partition("=") if name == "null" else _last(given)
    if not mark or not column:
        what = "VALUE" if name == "null" else _VALUED[name][0]
        raise BadInput(f"--{name} {given!r} is not like COLUMN={what}")
    return column, value


def _last(given: str) -> Sequence[str]:
    return given.rpartition("=")


def _place(name: str) -> str:
    return f"rule_{_field(name)}"


def _field(name: str) -> str:
    return name.replace("-", "_")
