"""From the columns of a file to the fields of a profile: one select of text cells.

The select is put together from names of our own and numbers alone; names of columns, paths and
words of the user are parameters.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from tallybook.errors import BadInput
from tallybook.ops.imports.profile import Profile
from tallybook.ops.imports.texts import Text

TEXTS = (
    "id", "topic", "worker", "status", "event", "correlation_id", "error", "attempt",
    "submit", "start", "end", "wait", "run", "until", "at",
)  # fmt: skip
_STEP = re.compile(r'(?:"[^"]*"|[^."])+')
_TIMES = ("submit", "start", "end", "wait", "run", "until", "at")


# Text that is no JSON object is kept as `unread`; nothing is cast that was not checked. An object
# with one name twice has lost a value to any reader; the usual names are known to stand once.
_DOCUMENTS = """
    select
        doc,
        json_extract_string(doc, $paths) as cells,
        coalesce(unread, case
            when not list_contains(getvariable('usual_names'), json_keys(doc, $objects))
                then named_twice(json_keys(doc, $objects))
        end) as unread
    from (
        select
            case when json_valid(line) then case when json_type(line) = 'OBJECT' then line end end
                as doc,
            case when not json_valid(line) or json_type(line) <> 'OBJECT'
                then 'not a JSON object: ' || left(line, 80) end as unread
        from {reader}
        where line is not null and ($comment = '' or not starts_with(line, $comment))
    )
"""


@dataclass(slots=True)
class Select:
    """A select of the fields as text; ``missing`` are optional columns that are not there."""

    sql: str
    params: dict[str, Any] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)


def select(profile: Profile, text: Text) -> Select:
    """The select of all fields of ``profile`` from ``text``; absent fields are null.

    Raises BadInput for a column that the file does not have.
    """
    reader, params = text.relation()
    made = Select("", params)
    cells = _cells(profile, text, made)
    asked = [f'{_expression(name, profile, cells)} as "{name}"' for name in TEXTS]
    where = _filter(profile, cells, made)
    if text.columns is None:
        reader, unread = f"({_DOCUMENTS.format(reader=reader)})", "unread"
    else:
        unread = "null::varchar"
    made.sql = f"select {', '.join(asked)}, {unread} as unread, {where} as kept from {reader}"  # noqa: S608 - our names
    made.params |= {f"fixed_{name}": value for name, value in profile.fixed.items()
                    if f"$fixed_{name}" in made.sql}  # fmt: skip
    return made


def _cells(profile: Profile, text: Text, made: Select) -> Mapping[str, str]:
    """An expression for each column or path of the profile that can be asked of the file."""
    if text.columns is None:
        return _paths(profile.named, made)
    places = {name: at for at, name in enumerate(text.columns)}
    found = {name: f"c{places[bare]}" for name in profile.named
             if (bare := name.removesuffix("?")) in places}  # fmt: skip
    for name, source in profile.columns.items():
        for part in source:
            _require(f"[columns] {name}", part, found, text)
    for name in profile.filter:
        _require("[filter]", (name,), found, text)
    return found


def _require(place: str, part: Sequence[str], found: Mapping[str, str], text: Text) -> None:
    """Raise BadInput where none of the alternatives is a column and not all are optional."""
    wanted = [name for name in part if not name.endswith("?")]
    if wanted and not any(name in found for name in part):
        there = listed(text.columns or [], 20)
        raise BadInput(f"{place}: {text.source} has no column {wanted[0]!r}; it has {there}")


def objects(names: Sequence[str]) -> list[str]:
    """The JSON paths of the objects on the way to the values at these paths."""
    steps = [_STEP.findall(name.removesuffix("?")) for name in names]
    plain = [list(takewhile(lambda step: "*" not in step, one[:-1])) for one in steps]
    ways = [".".join(["$", *one[:at]]) for one in plain for at in range(len(one) + 1)]
    return list(dict.fromkeys(["$", *ways]))


def _paths(names: Sequence[str], made: Select) -> Mapping[str, str]:
    """JSON paths, asked for together; one with a star finds the first value that fits."""
    made.params["objects"] = objects(names)
    plain = [name for name in names if "*" not in name]
    made.params["paths"] = ["$." + name.removesuffix("?") for name in plain] or ["$"]
    found = {name: f"cells[{at}]" for at, name in enumerate(plain, 1)}
    for at, name in enumerate(name for name in names if "*" in name):
        made.params[f"p{at}"] = "$." + name.removesuffix("?")
        found[name] = f"json_extract_string(doc, $p{at})[1]"
    return found


def _expression(name: str, profile: Profile, cells: Mapping[str, str]) -> str:
    """The text of a field; of a time, without the words that stand for an absent one."""
    form = "given(nullif({}, ''))" if name in _TIMES else "nullif({}, '')"
    parts = [[form.format(cells[column]) for column in part if column in cells]
             for part in profile.columns.get(name, ())]  # fmt: skip
    told = [_first(part) for part in parts if part]
    if len(told) > 1:
        told = [f"nullif(concat_ws('/', {', '.join(told)}), '')"]
    if name in profile.fixed:
        told.append(f"$fixed_{name}")
    return _first(told) if told else "null::varchar"


def _first(ways: Sequence[str]) -> str:
    return ways[0] if len(ways) == 1 else f"coalesce({', '.join(ways)})"


def _filter(profile: Profile, cells: Mapping[str, str], made: Select) -> str:
    """A condition that a row must meet; ``!`` before a word turns it round."""
    conditions = []
    for at, (name, words) in enumerate(profile.filter.items()):
        wanted = [word for word in words if not word.startswith("!")]
        unwanted = [word[1:] for word in words if word.startswith("!")]
        cell = f"coalesce({cells[name]}, '')"
        for kind, listed in (("y", wanted), ("n", unwanted)):
            if listed:
                made.params[f"{kind}{at}"] = listed
                any_of = f"len(list_filter(${kind}{at}, lambda w: {cell} glob w)) > 0"
                conditions.append(any_of if kind == "y" else f"not {any_of}")
    return " and ".join(conditions) or "true"


def listed(names: Sequence[str], most: int = 5) -> str:
    """Some names for a message."""
    left = len(names) - most
    return ", ".join(map(repr, names[:most])) + (f" and {left} more" if left > 0 else "")
