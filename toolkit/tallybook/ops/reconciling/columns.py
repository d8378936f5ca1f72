"""Which column of one side stands beside which of the other, and by which rule."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from unicodedata import normalize

from tallybook.errors import BadInput
from tallybook.ops.reconciling import rules as rules_
from tallybook.ops.reconciling.reading import Side
from tallybook.ops.reconciling.rules import EVERY, Rule


@dataclass(frozen=True, slots=True)
class Column:
    """A column of both sides: its name on each, its SQL cell on each, where it stands, its rule.

    ``name`` is that of the local side. ``mark`` is its name in our statements: k0, k1, … of the
    key, v0, v1, … of what is compared.
    """

    mark: str
    name: str
    cloud_name: str
    local: int
    cloud: int
    rule: Rule

    def at(self, side: str) -> int:
        """Its position on ``side``."""
        return self.local if side == "local" else self.cloud

    def variables(self) -> dict[str, object]:
        """The values of its rule as variables of DuckDB, by name."""
        rule = self.rule
        told: dict[str, object] = {}
        if rule.null:
            told[f"{self.mark}_null"] = list(rule.null)
        if rule.zone:
            told[f"{self.mark}_zone"] = rule.zone
        if rule.tolerance is not None:
            told[f"{self.mark}_tolerance"] = f"{rule.tolerance:f}"
        if rule.relative is not None:
            told[f"{self.mark}_relative"] = float(rule.relative)
        return told


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of both sides: the key, what is compared, and what stands on one side alone."""

    keys: tuple[Column, ...]
    compared: tuple[Column, ...]
    only_local: tuple[str, ...]
    only_cloud: tuple[str, ...]

    @property
    def all(self) -> tuple[Column, ...]:
        """The key and what is compared."""
        return self.keys + self.compared


def match(local: Side, cloud: Side, keys: Sequence[str], rules: Mapping[str, Rule]) -> Columns:
    """Put the columns side by side, by their names and by the rules that rename.

    Raises BadInput where a rule names no column, rules contradict, or a key is not on both sides.
    """
    _require_known(local, cloud, rules)
    pairs = _pairs(local, cloud, rules)
    keyed = _keys(local, cloud, keys, pairs)
    ignored = {name for name, rule in rules.items() if rule.ignore}
    compared = [pair for pair in pairs if pair not in keyed and not ignored.intersection(pair)]
    for name in rules.keys() - {name for pair in compared + keyed for name in pair}:
        rules_.of_column(rules, [name])
    named_local, named_cloud = {pair[0] for pair in pairs}, {pair[1] for pair in pairs}
    return Columns(
        keys=tuple(
            _key(_column(f"k{at}", local, cloud, pair, rules)) for at, pair in enumerate(keyed)
        ),
        compared=tuple(
            _column(f"v{at}", local, cloud, pair, rules) for at, pair in enumerate(compared)
        ),
        only_local=tuple(n for n in local.columns if n not in named_local and n not in ignored),
        only_cloud=tuple(n for n in cloud.columns if n not in named_cloud and n not in ignored),
    )


def alike(name: str) -> str:
    """What is left of a name without case, blanks and marks: equal for likely the same column."""
    return re.sub(r"[\W_]+", "", normalize("NFKC", name)).casefold()


def _require_known(local: Side, cloud: Side, rules: Mapping[str, Rule]) -> None:
    known = list(dict.fromkeys([*local.columns, *cloud.columns]))
    rules_.of_column(rules, [EVERY])
    for name in rules:
        if name not in known and name != EVERY:
            raise BadInput(
                f"a rule is given for column {name!r}, and neither side has it"
                f"{rules_.nearest(name, known)}"
            )


def _pairs(local: Side, cloud: Side, rules: Mapping[str, Rule]) -> list[tuple[str, str]]:
    """The pairs of names (local, cloud), in the order of the local side."""
    told = [_renamed(local, cloud, name, rule) for name, rule in rules.items() if rule.rename]
    for at, side in enumerate((local, cloud)):
        _require_once(side, at, sorted(set(told)))
    renamed = dict(told)
    taken = set(renamed.values())
    named = {name: name for name in local.columns if name in cloud.columns and name not in taken}
    pairs = named | renamed
    return [(name, pairs[name]) for name in local.columns if name in pairs]


def _require_once(side: Side, at: int, pairs: Sequence[tuple[str, str]]) -> None:
    for name, times in Counter(pair[at] for pair in pairs).items():
        if times > 1:
            others = " and ".join(repr(pair[1 - at]) for pair in pairs if pair[at] == name)
            raise BadInput(
                f"column {name!r} of {side.source} would be compared with both {others}; "
                "rename one of them"
            )


def _renamed(local: Side, cloud: Side, name: str, rule: Rule) -> tuple[str, str]:
    """The pair (local, cloud) of a rule that renames."""
    other = rule.rename or ""
    if name in cloud.columns and other in local.columns:
        return other, name
    if name in local.columns and other in cloud.columns:
        return name, other
    side = local if name in cloud.columns else cloud
    raise BadInput(
        f"column {name!r} is to be compared with {other!r}, and {side.source} has no such column"
        f"{rules_.nearest(other, side.columns)}"
    )


def _keys(
    local: Side, cloud: Side, keys: Sequence[str], pairs: Sequence[tuple[str, str]]
) -> list[tuple[str, str]]:
    if not keys or len(set(keys)) < len(keys):
        raise BadInput("name each key column once, and at least one")
    found = []
    for key in keys:
        named = [pair for pair in pairs if key in pair]
        if not named:
            raise _no_key(local, cloud, key)
        found.append(next((pair for pair in named if pair[0] == key), named[0]))
    if len(set(found)) < len(found):
        raise BadInput("two key columns are the same column; name each once")
    return found


def _no_key(local: Side, cloud: Side, key: str) -> BadInput:
    lacking = cloud if key in local.columns else local
    renamed = ""
    if key in local.columns or key in cloud.columns:
        renamed = "; where it has another name there, say so with a rename"
    return BadInput(
        f"no key column of {lacking.source} is named {key!r}"
        f"{rules_.nearest(key, lacking.columns)}{renamed}"
    )


def _column(
    mark: str, local: Side, cloud: Side, pair: tuple[str, str], rules: Mapping[str, Rule]
) -> Column:
    name, other = pair
    rule = rules_.of_column(rules, pair)
    return Column(mark, name, other, local.columns.index(name), cloud.columns.index(other), rule)


def _key(column: Column) -> Column:
    """The column itself. Raises BadInput where its rule cannot hold for a key."""
    if column.rule.ignore:
        raise BadInput(f"column {column.name!r} is the key and cannot be ignored")
    if column.rule.tolerant:
        raise BadInput(
            f"column {column.name!r} is the key: keys are equal or not, so it takes no tolerance"
        )
    return column
