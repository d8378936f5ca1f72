"""Tables and lines as HTML for the widgets; everything that came out of a log is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from html import escape
from typing import Any

import polars

_STYLE = (
    "<style>.tb{border-collapse:collapse;font-size:12px;line-height:1.5}"
    ".tb th{text-align:left;font-weight:600;white-space:nowrap;border-bottom:1px solid #888;"
    "padding:1px 8px 1px 0}"
    ".tb td{padding:1px 8px 1px 0;border-bottom:1px solid #8883;vertical-align:top;"
    "max-width:340px;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}"
    ".tb .n{text-align:right;font-variant-numeric:tabular-nums}"
    ".tb .bar{display:inline-block;height:9px;background:#0072B2;vertical-align:middle}"
    ".tb .less{background:#E69F00}.tbw{overflow:auto;max-height:330px}.tb th{position:sticky;top:0;"
    "background:var(--jp-layout-color0,#fff)}</style>"
)
_WAYS = {"occurs": "more often", "fails": "fails more", "takes longer": "takes longer"}
_LESS = {"occurs": "less often", "fails": "fails less", "takes longer": "takes less long"}


def table(frame: polars.DataFrame, *, none: str) -> str:
    """A frame as a table; ``none`` is said where it has no row."""
    if frame.is_empty():
        return f"<p>{escape(none)}</p>"
    numeric = [kind.is_numeric() for kind in frame.dtypes]
    rows = [[_cell(value, right) for value, right in zip(row, numeric, strict=True)]
            for row in frame.iter_rows()]  # fmt: skip
    return _table([name.replace("_", " ") for name in frame.columns], rows)


def differences(frame: polars.DataFrame, *, none: str) -> str:
    """What ``Incident.differences`` found, a bar each for its part of the slice."""
    if frame.is_empty():
        return f"<p>{escape(none)}</p>"
    heads = ("what", "", "differs", "here", "elsewhere", "part of the slice", "", "leases here")
    return _table(heads, [_difference(row) for row in frame.iter_rows(named=True)])


def told(row: Mapping[str, Any]) -> str:
    """A difference as a sentence, for a finding."""
    way = _WAYS[row["way"]] if row["excess"] > 0 else _LESS[row["way"]]
    here, elsewhere = (amount(row["way"], row[side]) for side in ("here", "elsewhere"))
    what = "time" if row["way"] == "takes longer" else "leases"
    return (f"{row['dimension']} {row['name']} {way}: {here} against {elsewhere} elsewhere; "
            f"{row['excess']:+.1%} of the slice's {what}")  # fmt: skip


def amount(way: str, value: float | None) -> str:
    """A share in percent, or a mean time in seconds."""
    if value is None:
        return "nothing"
    return f"{value:,.3f} s" if way == "takes longer" else f"{value:.1%}"


def line(parts: Iterable[str]) -> str:
    """Sentences as one line of small text."""
    return f'<p style="margin:2px 0">{" · ".join(map(escape, parts))}</p>'


def _difference(row: Mapping[str, Any]) -> list[str]:
    more = row["excess"] > 0
    way = (_WAYS if more else _LESS)[row["way"]]
    here, elsewhere = (amount(row["way"], row[side]) for side in ("here", "elsewhere"))
    width = max(2, round(120 * min(abs(row["excess"]), 1)))
    bar = f'<span class="bar{"" if more else " less"}" style="width:{width}px"></span>'
    cells = [_cell(row["dimension"]), _cell(row["name"]), _cell(way)]
    cells += [_cell(text, True) for text in (here, elsewhere, f"{row['excess']:+.1%}")]
    return [*cells, f"<td>{bar}</td>", _cell(row["n"], True)]


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    drawn = f'<table class="tb"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f'{_STYLE}<div class="tbw">{drawn}</div>'


def _cell(value: object, right: bool = False) -> str:
    text = _text(value)
    kind = ' class="n"' if right else ""
    return f'<td{kind} title="{escape(text)}">{escape(text)}</td>'


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    if isinstance(value, float):
        return f"{value:,.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
