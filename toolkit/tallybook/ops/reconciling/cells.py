"""SQL of single cells: as given, typed by the rule of their column, and whether two differ.

Put together from positions and marks alone; what a rule says stands in a variable.
"""

from __future__ import annotations

from typing import Final

from tallybook.ops.reconciling.columns import Column, Columns
from tallybook.ops.reconciling.reading import Side

_TYPED: Final = {
    "text": "{cell}",
    "integer": "quick_integer({cell})",
    "decimal": "quick_decimal({cell})",
    "timestamp": "quick_timestamp({cell})",
}
_SPACED: Final = {"trim": "trimmed_text({cell})", "collapse": "collapsed_text({cell})"}
_CUT: Final = {
    "day": "substr({cell}, 1, 10)",
    "hour": "substr({cell}, 1, 13)",
    "minute": "substr({cell}, 1, 16)",
    "s": "cut_timestamp({cell}, 0)",
    "ms": "cut_timestamp({cell}, 3)",
    "us": "cut_timestamp({cell}, 6)",
    "ns": "cut_timestamp({cell}, 9)",
}
_DIFFERENT: Final = "l.{mark} is distinct from c.{mark}"


def given(side: Side, column: Column) -> str:
    """The cell that its type is told from: white space and words for null as the rule says."""
    cell = side.cell(column.at(side.name))
    if column.rule.space:
        cell = _SPACED[column.rule.space].format(cell=cell)
    if column.rule.null:
        words = f"getvariable('{column.mark}_null')"
        cell = f"case when list_contains({words}, {cell}) then null else {cell} end"
    return cell


def typed(column: Column) -> str:
    """The text of the value of a given cell, equal for equal values; null where it has none."""
    rule = column.rule
    cell = f"g_{column.mark}"
    if rule.normal_form:
        cell = f"nfc_normalize({cell})"
    if rule.ignore_case:
        cell = f"lower({cell})"
    if rule.zone:
        cell = f"zoned_timestamp({cell}, getvariable('{column.mark}_zone'))"
    else:
        cell = _TYPED[rule.kind].format(cell=cell)
    return _CUT[rule.precision].format(cell=cell) if rule.precision else cell


def differs(column: Column) -> str:
    """SQL of whether the cells of a pair differ by the rule of their column."""
    rule, mark = column.rule, column.mark
    different = _DIFFERENT.format(mark=mark)
    within = []
    if rule.tolerance is not None:
        told = "seconds_text({})" if rule.kind == "timestamp" else "{}"
        one, other = told.format(f"l.{mark}"), told.format(f"c.{mark}")
        within.append(f"gap_within({one}, {other}, getvariable('{mark}_tolerance'))")
    if rule.relative is not None:
        within.append(f"part_within(l.{mark}, c.{mark}, getvariable('{mark}_relative'))")
    return " and ".join([different, *(f"not coalesce({one}, false)" for one in within)])


def key_text(table: str, side: str, columns: Columns) -> str:
    """The key as text, as its side writes it; of several columns as a JSON list."""
    raw = [f"{table}.r{key.at(side)}" for key in columns.keys]
    return raw[0] if len(raw) == 1 else f"cast(to_json([{', '.join(raw)}]) as varchar)"
