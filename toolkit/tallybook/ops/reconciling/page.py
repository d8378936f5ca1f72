"""A reconciliation as one page: counts, samples, and every changed cell side by side.

It opens with no network. The cells stand in it as JSON, of which a small script draws what is in
sight; without a script the first cells are there all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from importlib.resources import files
from string import Template
from typing import Any, Final

import orjson

from tallybook.ops.reconciling.result import Reconciliation
from tallybook.payload import visible

SHOWN: Final = 100_000
_SAMPLES: Final = 20
_UNREADABLE: Final = 200
_LONGEST: Final = 2_000
_CUT: Final = """case when length({0}) > {1} then left({0}, {1}) || ' …' else {0} end as {0}"""

_FIRST_ROWS: Final = """
    select status, key, local_row, cloud_row from rows
    order by status = 'differs', status, key, local_row, cloud_row limit {shown}"""


def html(found: Reconciliation, beside: str = "") -> str:
    """The page of ``found``; ``beside`` names the file that has all differences where the page
    has the first ``SHOWN`` of them, of cells the first 2,000 characters."""
    room = files("tallybook.ops.reconciling")
    differences, rows = _differences(found), _rows(found)
    words = _verdict(found)
    return Template(room.joinpath("page.html").read_text("utf-8")).substitute(
        title=escape(f"Reconciliation: {words}"),
        local=_text(found.source_local),
        cloud=_text(found.source_cloud),
        key=_text(", ".join(found.key)),
        body=_summary(found, words),
        told=_told(len(differences), found.changed_cells, "changed cell", beside),
        samples=_samples(found, differences[:_SAMPLES]),
        told_rows=_told(
            len(rows), found.relation("rows").count("*").fetchall()[0][0], "row", beside
        ),
        unreadable=_unreadable(found),
        data=_safe(_columns(found) | {"differences": differences, "rows": rows}),
        script=room.joinpath("page.js").read_text("utf-8"),
    )


def _differences(found: Reconciliation) -> list[tuple[Any, ...]]:
    """Key, place of the column among those that changed, local, cloud."""
    places = {name: at for at, name in enumerate(found.changed_cells_by_column)}
    cut = ", ".join(_CUT.format(name, _LONGEST) for name in ("key", "local", "cloud"))
    cells = found.sql(f'select "column", {cut} from (from differences limit {SHOWN})')  # noqa: S608 - our own names
    return [(key, places[column], *both) for column, key, *both in cells.fetchall()]


def _rows(found: Reconciliation) -> list[tuple[Any, ...]]:
    """Place of the status, key, number of the row on each side."""
    places = {name: at for at, name in enumerate(_unmatched(found))}
    rows = found.sql(_FIRST_ROWS.format(shown=SHOWN))
    return [(places[status], *row) for status, *row in rows.fetchall()]


def _columns(found: Reconciliation) -> dict[str, Any]:
    return {
        "columns": list(found.changed_cells_by_column.items()),
        "statuses": [(name.replace("_", " "), n) for name, n in _unmatched(found).items()],
    }


def _unmatched(found: Reconciliation) -> dict[str, int]:
    return {name: rows for name, rows in found.statuses.items() if rows and name != "match"}


def _safe(data: Mapping[str, Any]) -> str:
    """JSON that cannot end the element it stands in."""
    return orjson.dumps(data).decode().replace("<", "\\u003c")


def _verdict(found: Reconciliation) -> str:
    if found.apart:
        return found.apart
    if found.clean:
        return f"all {found.rows_local:,} rows match"
    apart = sum(_unmatched(found).values())
    return f"{apart:,} rows do not match, {found.changed_cells:,} cells differ"


def _summary(found: Reconciliation, words: str) -> str:
    kind = "good" if found.clean else "bad"
    sides = [("rows local", found.rows_local), ("rows cloud", found.rows_cloud)]
    counts = [(name.replace("_", " "), rows) for name, rows in found.statuses.items() if rows]
    tables = _counts("rows", [*sides, *counts]) + _counts(
        "changed cells", found.changed_cells_by_column.items(), bars=True
    )
    noted = "".join(f"<li>{_text(one)}</li>" for one in found.warnings)
    for side, only in (("local", found.columns_only_local), ("cloud", found.columns_only_cloud)):
        if only:
            noted += f"<li>columns only on the {side} side: {_text(', '.join(only))}</li>"
    return (
        f'<p class="verdict {kind}">{_text(words)}</p>'
        + (f"<ul>{noted}</ul>" if noted else "")
        + f'<div class="counts">{tables}</div>'
    )


def _counts(what: str, counts: Iterable[tuple[str, int]], bars: bool = False) -> str:
    counted = list(counts)
    if not counted:
        return ""
    most = max(count for _, count in counted) or 1
    lines = "".join(
        f'<tr><td>{_text(name)}</td><td class="count">{count:,}</td>'
        + (f'<td><span class="bar" style="width:{8 * count / most:.2f}rem"></span></td>' if bars
           else "") + "</tr>"
        for name, count in counted
    )  # fmt: skip
    head = f"<tr><th></th><th>{what}</th>{'<th></th>' if bars else ''}</tr>"
    return f"<table><thead>{head}</thead><tbody>{lines}</tbody></table>"


def _samples(found: Reconciliation, cells: Iterable[tuple[Any, ...]]) -> str:
    """The first changed cells as a plain table, for where no script runs."""
    names = list(found.changed_cells_by_column)
    lines = "".join(
        f"<tr>{_cell(key)}<td>{_text(names[at])}</td>{_cell(local)}{_cell(cloud)}</tr>"
        for key, at, local, cloud in cells
    )
    head = "".join(f"<th>{name}</th>" for name in ("key", "column", "local", "cloud"))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


def _unreadable(found: Reconciliation) -> str:
    bad = found.unreadable
    if bad.is_empty():
        return ""
    head = "".join(f"<th>{name}</th>" for name in bad.columns)
    lines = "".join(
        f"<tr>{''.join(_cell(None if cell is None else str(cell)) for cell in row)}</tr>"
        for row in bad.head(_UNREADABLE).iter_rows()
    )
    left = bad.height - _UNREADABLE
    more = f'<p class="soft">and {left:,} more</p>' if left > 0 else ""
    return (
        "<h2>What could not be read</h2>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>{more}"
    )


def _cell(text: str | None) -> str:
    return '<td class="none">null</td>' if text is None else f"<td>{_text(text)}</td>"


def _told(shown: int, there: int, what: str, beside: str) -> str:
    if not there:
        return f"no {what}"
    if shown == there:
        return f"{there:,} {what}{'' if there == 1 else 's'}"
    where = f"; {escape(beside)} has all" if beside else ""
    return f"the first {shown:,} of {there:,} {what}s{where}"


def _text(text: str) -> str:
    return escape(visible(text))
