"""What a comparison says beside its counts: why nothing was comparable, what a column may be
called on the other side, how keys would meet."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Final

from tallybook.ops.reconciling import plan
from tallybook.ops.reconciling.columns import Columns, alike
from tallybook.ops.reconciling.reading import Side
from tallybook.ops.reconciling.room import Room

_SAMPLE: Final = 1000
_LIKELY: Final = 0.9
_ROADS: Final = (
    ("space=trim", "trimmed_text({})"),
    ("ignore case", "lower({})"),
    ("normal form NFC", "nfc_normalize({})"),
    ("type integer", "integer_text({})"),
)


def apart(local: Side, cloud: Side, rows: Mapping[str, int], statuses: Mapping[str, int]) -> str:
    """Why nothing was comparable, in words; '' where something was."""
    for side in (local, cloud):
        if rows[side.name] == len(side.bad):
            return (f"the {side.name} side ({side.source}) has no row that could be read: "
                    "nothing can be compared")  # fmt: skip
    shared = ("match", "differs", *(s for s in statuses if s.endswith(("_local", "_cloud"))))
    if any(statuses[s] for s in shared if not s.startswith(("only_", "null_key_", "unreadable_"))):
        return ""
    if not (statuses["only_local"] and statuses["only_cloud"]):
        return ""
    return "no key is on both sides: is the key column the right one?"


def warnings(
    room: Room,
    local: Side,
    cloud: Side,
    columns: Columns,
    statuses: Mapping[str, int],
    told: str,
) -> list[str]:
    """Everything that a reader of the counts must know."""
    found = [told] if told else []
    found += [*local.warnings, *cloud.warnings]
    for side in (local, cloud):
        if side.bad:
            rows = "1 row" if len(side.bad) == 1 else f"{len(side.bad):,} rows"
            found.append(f"{rows} of {side.source} cannot be read; rows that seem to be missing "
                         "there may be among them")  # fmt: skip
    if told and statuses["only_local"] and statuses["only_cloud"]:
        found += _keys_would_meet(room, columns)
    if not columns.compared:
        found.append("no column beside the key is on both sides: only keys were compared")
    return found + list(_likely_renames(room, local, cloud, columns))


def _keys_would_meet(room: Room, columns: Columns) -> list[str]:
    """The rules by which keys would be on both sides, where only their writing differs."""
    if len(columns.keys) > 1 or columns.keys[0].rule.kind != "text":
        return []
    named = columns.keys[0].name
    found = []
    for words, road in _ROADS:
        ((meeting,),) = room.all(plan.meeting(road))
        if meeting:
            found.append(f"with {words} for {named!r}, keys would be on both sides")
    return found


def _likely_renames(room: Room, local: Side, cloud: Side, columns: Columns) -> Iterator[str]:
    """Columns of one side that are likely those of the other under another name."""
    cloud_left = list(columns.only_cloud)
    for name, other, why in _pairs_alike(room, local, cloud, columns):
        if other in cloud_left:
            cloud_left.remove(other)
            yield (
                f"column {other!r} of {cloud.source} is likely {name!r} under another name ({why})"
                f"; compare them with --rename {shlex.quote(f'{other}={name}')}"
            )


def _pairs_alike(
    room: Room, local: Side, cloud: Side, columns: Columns
) -> Iterator[tuple[str, str, str]]:
    by_name = {alike(name): name for name in columns.only_cloud}
    named = {n: by_name[alike(n)] for n in columns.only_local if alike(n) in by_name}
    for name, other in named.items():
        yield name, other, "the names differ in case or marks alone"
    ones = [n for n in columns.only_local if n not in named]
    others = [n for n in columns.only_cloud if n not in named.values()]
    if ones and others:
        yield from _same_cells(room, (local, ones), (cloud, others), columns)


def _same_cells(
    room: Room, ones: tuple[Side, list[str]], others: tuple[Side, list[str]], columns: Columns
) -> Iterator[tuple[str, str, str]]:
    at_local = [ones[0].columns.index(name) for name in ones[1]]
    at_cloud = [others[0].columns.index(name) for name in others[1]]
    ((rows, *counts),) = room.all(plan.alike(columns, at_local, at_cloud, _SAMPLE))
    each = [(one, other) for one in ones[1] for other in others[1]]
    for (one, other), same in zip(each, counts, strict=True):
        if rows and same >= _LIKELY * rows:
            yield one, other, f"{same:,} of {rows:,} rows have the same cell"
