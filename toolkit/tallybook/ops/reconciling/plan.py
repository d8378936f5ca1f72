"""The statements of a comparison.

How many columns there are is known only at run time, so these statements are put together, but
only from positions: cells are r0, r1, … as read, k0, … (key) and v0, … (compared) once typed.
No name and no value of a file ever becomes SQL.
"""

# ruff: noqa: S608 - see above
from collections.abc import Sequence
from dataclasses import dataclass

TYPING = {
    "text": "{cell}",
    "integer": "integer_text({cell})",
    "decimal": "decimal_text({cell})",
    "timestamp": "timestamp_text({cell})",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """A column of both sides: where it stands on each, and its type."""

    local: int
    cloud: int
    type: str

    def at(self, side: str) -> int:
        """Its position on ``side``."""
        return self.local if side == "local" else self.cloud


def typed(side: str, keys: Sequence[Cell], compared: Sequence[Cell]) -> str:
    """One row a row of ``side``: n, in_flight, typed cells, null_key, and bad: the raw position
    of the first cell that has no value of its type."""
    named = [(f"k{at}", cell) for at, cell in enumerate(keys)]
    named += [(f"v{at}", cell) for at, cell in enumerate(compared)]
    cells = ",\n        ".join(
        TYPING[cell.type].format(cell=f"r{cell.at(side)}") + f" as {name}" for name, cell in named
    )
    checks = "\n".join(
        f"        when r{cell.at(side)} is not null and {name} is null then {cell.at(side)}"
        for name, cell in named
        if cell.type != "text"
    )
    nulls = " or ".join(f"r{cell.at(side)} is null" for cell in keys)
    bad = f"case\n{checks}\n        end" if checks else "cast(null as integer)"
    return f"""
    create table {side}_typed as
    select
        n,
        in_flight,
        {cells},
        {nulls} as null_key,
        {bad} as bad
    from {side}"""


def keyed(keys: Sequence[Cell]) -> str:
    """One row a whole key: how often each side has it, and whether a row of it is set apart."""
    names = ", ".join(f"k{at}" for at in range(len(keys)))
    whole = " and ".join(f"k{at} is not null" for at in range(len(keys)))
    return f"""
    create table keyed as
    with rows_of_both as (
        select {names}, n as local_n, null as cloud_n, bad, in_flight from local_typed where {whole}
        union all
        select {names}, null as local_n, n as cloud_n, bad, in_flight from cloud_typed where {whole}
    )
    select
        {names},
        case when count(local_n) > 1 or count(cloud_n) > 1 then 'duplicate'
             when count(bad) > 0 then 'unreadable'
             when bool_or(in_flight) then 'in_flight' end as apart,
        min(local_n) as local_n,
        min(cloud_n) as cloud_n
    from rows_of_both
    group by {names}"""


def verdicts(keys: Sequence[Cell], compared: Sequence[Cell]) -> str:
    """One row a pair, or a row without partner: status, local_row, cloud_row."""
    changed = " or ".join(f"l.v{at} is distinct from c.v{at}" for at in range(len(compared)))
    apart = "\n    union all\n".join(_apart(side, keys) for side in ("local", "cloud"))
    return f"""
    create table verdicts as
    select
        case
            when keyed.cloud_n is null then 'only_local'
            when keyed.local_n is null then 'only_cloud'
            when {changed or "false"} then 'differs'
            else 'match'
        end as status,
        keyed.local_n as local_row,
        keyed.cloud_n as cloud_row
    from keyed
    left join local_typed as l on l.n = keyed.local_n
    left join cloud_typed as c on c.n = keyed.cloud_n
    where keyed.apart is null
    union all
    {apart}"""


def _apart(side: str, keys: Sequence[Cell]) -> str:
    """The rows of ``side`` that are not compared: each with its reason."""
    same = " and ".join(f"keyed.k{at} = rows.k{at}" for at in range(len(keys)))
    own, other = ("rows.n", "null") if side == "local" else ("null", "rows.n")
    return f"""
    select
        case
            when rows.null_key then 'null_key'
            when keyed.apart is not null then keyed.apart
            else 'unreadable'
        end || '_{side}' as status,
        {own} as local_row,
        {other} as cloud_row
    from {side}_typed as rows
    left join keyed on {same}
    where rows.null_key or keyed.apart is not null or keyed.k0 is null"""


def kept(keys: Sequence[Cell]) -> str:
    """One row a verdict that is no match, with its key as text."""
    cells = [f"coalesce(l.r{cell.local}, c.r{cell.cloud})" for cell in keys]
    key = cells[0] if len(cells) == 1 else f"cast(to_json([{', '.join(cells)}]) as varchar)"
    return f"""
    select
        verdicts.status,
        {key} as key,
        verdicts.local_row,
        verdicts.cloud_row
    from verdicts
    left join local as l on l.n = verdicts.local_row
    left join cloud as c on c.n = verdicts.cloud_row
    where verdicts.status <> 'match'
    order by verdicts.status, key, verdicts.local_row, verdicts.cloud_row"""


def differences(keys: Sequence[Cell], compared: Sequence[Cell]) -> str:
    """One row a changed cell: key, position of its column among the compared, both texts."""
    cells = [f"l.r{cell.local}" for cell in keys]
    key = cells[0] if len(cells) == 1 else f"cast(to_json([{', '.join(cells)}]) as varchar)"
    each = "\n    union all\n".join(
        f"""    select
        {key} as key, {at} as place, l.r{cell.local} as local, c.r{cell.cloud} as cloud
    from verdicts
    inner join local as l on l.n = verdicts.local_row
    inner join cloud as c on c.n = verdicts.cloud_row
    inner join local_typed as lt on lt.n = verdicts.local_row
    inner join cloud_typed as ct on ct.n = verdicts.cloud_row
    where verdicts.status = 'differs' and lt.v{at} is distinct from ct.v{at}"""
        for at, cell in enumerate(compared)
    )
    return each + "\n    order by key, place"


def bad_cells(side: str, positions: Sequence[int]) -> str:
    """One row a row of ``side`` with a bad cell: n, its position, its text."""
    texts = " ".join(f"when {at} then {side}.r{at}" for at in positions)
    return f"""
    select {side}.n, bad, case bad {texts} end as text
    from {side}_typed inner join {side} on {side}.n = {side}_typed.n
    where bad is not null
    order by {side}.n"""
