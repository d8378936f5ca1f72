"""The statements of a comparison.

How many columns there are is known only at run time, so these statements are put together, but
only from positions: cells are r0, r1, … as read, k0, … (key) and v0, … (compared) once typed. No
name and no value of a file or a rule ever becomes SQL: what rules say stands in variables.

Both sides are read once and grouped by key. What is left of a row in that pass is its key and a
hash of 64 bits, so a comparison of any size stays small. Rows of keys that do not simply match are
read a second time, whole, and compared cell by cell.
"""

# ruff: noqa: S608 - see above
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from tallybook.ops.reconciling import cells as cells_
from tallybook.ops.reconciling.columns import Column, Columns
from tallybook.ops.reconciling.reading import Side

Sides: TypeAlias = tuple[Side, Side]

KEPT: Final = ("rows", "changed", "names", "differences", "unreadable")

DIFFERENCES: Final = """
    create or replace view differences as
    select changed.key, names."column", changed.local, changed.cloud
    from changed inner join names on names.place = changed.place
    order by changed.key, changed.local_row, changed.place"""

CHANGED_BY_COLUMN: Final = """
    select names."column", count(*) as cells
    from changed inner join names on names.place = changed.place
    group by names."column", names.place
    order by cells desc, names.place"""


def cells(side: Side, columns: Columns) -> str:
    """One row a row of the side: n, its raw cells r0, …, typed cells k0, … and v0, …, null_key,
    bad: the raw position of the first cell that has no value of its type."""
    return f"""
    create or replace view {side.name}_cells as
    {_typed(side, side.name, columns)}"""


def _typed(side: Side, source: str, columns: Columns) -> str:
    nulls = " or ".join(f"g_{column.mark} is null" for column in columns.keys)
    checks = " ".join(
        f"when g_{column.mark} is not null and {column.mark} is null then {column.at(side.name)}"
        for column in columns.all
        if column.rule.kind != "text"
    )
    bad = f"case {checks} end" if checks else "cast(null as integer)"
    return f"""select
        n, {_raw(side)},
        {_marks(columns.all)},
        {nulls} as null_key,
        {bad} as bad
    from {_with_marks(side, source, columns.all)}"""


def _with_marks(side: Side, source: str, columns: Sequence[Column]) -> str:
    """The rows of ``source`` with some columns as given (g_k0, …) and typed (k0, …)."""
    given = _listed(f"{cells_.given(side, column)} as g_{column.mark}" for column in columns)
    typed = _listed(f"{cells_.typed(column)} as {column.mark}" for column in columns)
    return f"(select *, {typed} from (select *, {given} from {source}))"


SET_APART: Final = (
    """
    delete from changed
    where key in (select flying.key from flying where flying.status = 'differs')""",
    """
    create or replace table rows as
    select status, key, local_row, cloud_row from rows anti join flying using (status, key)
    union all
    select 'in_flight_local', key, local_row, null from flying where local_row is not null
    union all
    select 'in_flight_cloud', key, null, cloud_row from flying where cloud_row is not null
    order by status, key, local_row, cloud_row""",
)
"""The pairs and rows of ``flying`` (status, key, local_row, cloud_row) set apart as in flight."""

_STATUS: Final = """case
            when k0 is null then 'apart'
            when local_rows > 1 or cloud_rows > 1 then 'duplicate'
            when bad then 'unreadable'
            when cloud_rows = 0 then 'only_local'
            when local_rows = 0 then 'only_cloud'
            when hashes <> 0 then 'differs'
            else 'match'
        end"""


def keyed(sides: Sides, columns: Columns, part: int = 0, parts: int = 1) -> str:
    """One row a key that does not match, and one of all that match: status, k0, …, how many rows
    each side has of it, whether a header is among them, and whether a key may be an id that was
    shortened. Rows without a whole key are one group, ``apart``. Of several ``parts``, which the
    hash of a key tells, the first makes the table and the others add to it."""
    into = "insert into keyed" if part else "create or replace table keyed as"
    marks = _marks(columns.keys)
    some = f" where hash({marks}) % {parts} = {part}" if parts > 1 else ""
    kept = _listed(
        f"case when status <> 'match' then {k.mark} end as {k.mark}" for k in columns.keys
    )
    of_both = f"{some}\n        union all\n        ".join(_keyed(side, columns) for side in sides)
    return f"""
    {into}
    with rows_of_both as (
        {of_both}{some}
    ),
    grouped as (
        select
            {marks},
            count(local_row) as local_rows, count(cloud_row) as cloud_rows,
            {"bool_or(bad)" if _has_types(columns) else "false"} as bad,
            {"bool_or(again)" if any(side.header for side in sides) else "false"} as again,
            bit_xor(hashes) as hashes
        from rows_of_both group by {marks}
    ),
    judged as (
        select
            {marks}, local_rows, cloud_rows, again, {_STATUS} as status,
            {" or ".join(map(_may_be_shortened, columns.keys))} as shortened
        from grouped
    )
    select
        status, {kept}, bool_or(again) as again, bool_or(shortened) as shortened,
        cast(sum(local_rows) as bigint) as local_rows, cast(sum(cloud_rows) as bigint) as cloud_rows
    from judged
    group by {_listed(str(at) for at in range(1, 2 + len(columns.keys)))}"""


def _may_be_shortened(key: Column) -> str:
    """SQL of whether a key has the mark of 9.91E+15; of a type or another case it is lost."""
    if key.rule.kind != "text" or key.rule.ignore_case:
        return "true"
    return f"coalesce(contains({key.mark}, 'E+'), false)"


def _keyed(side: Side, columns: Columns) -> str:
    """One row a row of ``side``: its key, where it is whole, and the hash of what is compared."""
    whole = " and ".join(f"{key.mark} is not null" for key in columns.keys)
    keys = _listed(
        f"case when {whole} then {key.mark} end as {key.mark}"
        if len(columns.keys) > 1
        else key.mark
        for key in columns.keys
    )
    values = _marks(columns.compared)
    hashed = f"hash({values})" if values else "cast(0 as ubigint)"
    own, other = ("1", "null") if side.name == "local" else ("null", "1")
    again = f"r0 is not distinct from {side.header}" if side.header else "false"
    return f"""select
            {keys}, {own} as local_row, {other} as cloud_row,
            bad is not null as bad, {again} as again, {hashed} as hashes
        from {side.name}_cells"""


def apart(sides: Sides, columns: Columns) -> Iterator[str]:
    """One row a row whose key does not match: its side, its status and all its cells. Both sides
    are read at once, since a file whose rows must be counted takes one thread."""
    same = " and ".join(f"keyed.{key.mark} = cells.{key.mark}" for key in columns.keys)
    whole = "\n    union all\n    ".join(
        f"""select '{side.name}' as side, keyed.status, {_cells(side, sides, columns)}
    from ({_typed(side, _unmatched(side, columns), columns)}) as cells
    inner join keyed on {same}"""
        for side in sides
    )
    yield f"""
    create or replace table apart as
    {whole}"""
    for side in sides:
        yield f"""
    create or replace view {side.name}_apart as
    select * exclude (side) from apart where side = '{side.name}'"""


def _unmatched(side: Side, columns: Columns) -> str:
    """The rows of a side whose key does not match: told from the key, so that of all others no
    other cell is typed."""
    marks = _marks(columns.keys)
    return f"""(
        select n, {_raw(side)}{"".join(f", {cell}" for cell in side.cells.values())}
        from {_with_marks(side, side.name, columns.keys)}
        semi join (select {marks} from keyed where status not in ('match', 'apart')) using ({marks})
    )"""


def keyless(sides: Sides, columns: Columns) -> str:
    """The rows without a whole key, added to those apart."""
    broken = " or ".join(f"{key.mark} is null" for key in columns.keys)
    status = "case when null_key then 'null_key' else 'unreadable' end"
    rows = "\n    union all\n    ".join(
        f"""select '{side.name}', {status}, {_cells(side, sides, columns)}
    from {side.name}_cells as cells
    where {broken}"""
        for side in sides
    )
    return f"""
    insert into apart
    {rows}"""


def _cells(side: Side, sides: Sides, columns: Columns) -> str:
    """All cells of a row of ``side``; raw ones that only the other side has are null."""
    own = len(side.columns)
    widest = max(len(one.columns) for one in sides)
    lacking = [f"cast(null as varchar) as r{at}" for at in range(own, widest)]
    marks = _listed(f"cells.{column.mark}" for column in columns.all)
    return _listed(["n", _raw(side), *lacking, marks, "null_key", "cells.bad"])


def pairs(columns: Columns) -> str:
    """One row a pair whose hashes differ: both rows, and d0, …: whether a cell differs by rule."""
    same = " and ".join(f"l.{key.mark} = c.{key.mark}" for key in columns.keys)
    each = "".join(f",\n        {cells_.differs(v)} as d_{v.mark}" for v in columns.compared)
    raw = "".join(
        f", l.r{v.local} as l_{v.mark}, c.r{v.cloud} as c_{v.mark}" for v in columns.compared
    )
    return f"""
    create or replace table pairs as
    select
        {cells_.key_text("l", "local", columns)} as key, l.n as local_row,
        c.n as cloud_row{each}{raw}
    from local_apart as l
    inner join cloud_apart as c on {same}
    where l.status = 'differs'"""


def rows(columns: Columns) -> str:
    """One row a row (or a pair of rows) that is no match: status, key, local_row, cloud_row."""
    changed = _changed(columns)
    return f"""
    create or replace table rows as
    select 'differs' as status, key, local_row, cloud_row from pairs where {changed}
    union all
    {_one_sided("local", columns)}
    union all
    {_one_sided("cloud", columns)}
    order by status, key, local_row, cloud_row"""


def _one_sided(side: str, columns: Columns) -> str:
    own, other = ("n", "null") if side == "local" else ("null", "n")
    return f"""select
        case when starts_with(status, 'only_') then status else status || '_{side}' end as status,
        {cells_.key_text("rows_apart", side, columns)} as key,
        {own} as local_row, {other} as cloud_row
    from {side}_apart as rows_apart
    where status <> 'differs'"""


def counted_keyless(side: str, columns: Columns) -> str:
    """The rows of ``side`` without a whole key: status, how many."""
    broken = " or ".join(f"{key.mark} is null" for key in columns.keys)
    return f"select status, count(*) from {side}_apart where {broken} group by status"


def meeting(road: str) -> str:
    """How many keys would be on both sides if they were written as ``road`` makes them."""
    one, other = road.format("l.k0"), road.format("c.k0")
    return f"""
    select count(*) from local_apart as l inner join cloud_apart as c on {one} = {other}
    where l.status = 'only_local' and c.status = 'only_cloud'"""


def tolerated(columns: Columns) -> str:
    """How many pairs match although their cells are not the same."""
    return f"select count(*) from pairs where not ({_changed(columns)})"


def differences(columns: Columns) -> str:
    """One row a changed cell: key, column by its place, local, cloud, local_row, cloud_row."""
    each = "\n    union all\n    ".join(
        f"select key, {at} as place, l_{v.mark} as local, c_{v.mark} as cloud, "
        f"local_row, cloud_row from pairs where d_{v.mark}"
        for at, v in enumerate(columns.compared)
    )
    none = ("select key, 0 as place, key as local, key as cloud, local_row, cloud_row from pairs "
            "where false")  # fmt: skip
    return f"""
    create or replace table changed as
    {each or none}
    order by key, local_row, place"""


def bad_cells(side: Side, columns: Columns) -> str:
    """One row a row of the side with a bad cell: n, its position, its text."""
    texts = " ".join(f"when {c.at(side.name)} then r{c.at(side.name)}" for c in columns.all)
    return f"""
    select n, bad, case bad {texts} end as text
    from {side.name}_apart where bad is not null order by n"""


def alike(columns: Columns, local: Sequence[int], cloud: Sequence[int], rows_: int) -> str:
    """How often each raw cell of ``local`` equals each of ``cloud``, among some rows of one key:
    the number of pairs, then a count for each pair of positions."""
    same = " and ".join(f"l.{key.mark} = c.{key.mark}" for key in columns.keys)
    counts = _listed(
        f"count(*) filter (l.r{one} = c.r{other} and l.r{one} <> '')"
        for one in local for other in cloud
    )  # fmt: skip
    return f"""
    select count(*), {counts}
    from cloud_cells as c
    inner join (from local_cells limit {rows_}) as l on {same}"""


def _changed(columns: Columns) -> str:
    return " or ".join(f"d_{column.mark}" for column in columns.compared) or "false"


def _has_types(columns: Columns) -> bool:
    return any(column.rule.kind != "text" for column in columns.all)


def _raw(side: Side) -> str:
    return _listed(f"r{at}" for at in range(len(side.columns)))


def _marks(columns: Sequence[Column]) -> str:
    return _listed(column.mark for column in columns)


def _listed(parts: Iterable[str]) -> str:
    return ", ".join(parts)
