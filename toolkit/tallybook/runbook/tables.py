"""HTML that a cell displayed, made safe and plain: tables and text, nothing that acts or styles.

A Polars table gets its types as small print, its numbers to the right, its texts without quotes.
One with a single wide row is turned upright: a name and a value a line. Where a table has more
columns than a page is wide, each cell has the name of its column, for the printer.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser

from tallybook.runbook.page import text as escape

_TAGS = re.compile(
    "table|thead|tbody|tfoot|tr|th|td|caption|p|div|span|strong|b|em|i|code|pre|br|ul|ol|li|"
    "small|h[1-4]|blockquote"
)
_SILENT = frozenset(("script", "style", "template", "iframe", "object", "svg", "math", "title"))
_VOID = frozenset(("br",))
_SPAN = re.compile(r"[1-9][0-9]{0,2}")
_NUMBER = re.compile(r"^([iuf][0-9]+|decimal.*|duration.*)$")
_SHAPE = re.compile(r"shape: \(([0-9_,]+), [0-9_,]+\)")
_ONE_ROW = re.compile(
    r"(?:<small>[^<]*</small>)?<table><thead><tr>((?:(?!</tr>).)*)</tr>(?:(?!</thead>).)*</thead>"
    r"<tbody><tr>((?:(?!</tr>).)*)</tr></tbody></table>",
    re.S,
)
_CELL = re.compile(r"<t[hd][^>]*>(.*?)</t[hd]>", re.S)
_WIDE = 5
_MOST_PRINTED = 10
_LONG = 60


def safe_html(text: str) -> str:
    """``text`` without anything but structure; what is left out leaves its words."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    return reader.made()


class _Reader(HTMLParser):
    """Copies what is on the list. Knows where in a table it is, for the types of the columns."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._out: list[str] = []
        self._open: list[str] = []
        self._muted = 0
        self._types: list[str] = []
        self._heads: list[int] = []
        self._names: dict[int, str] = {}
        self._column = 0
        self._polars = False

    def made(self) -> str:
        """The result, with every open element closed."""
        text = "".join([*self._out, *(f"</{tag}>" for tag in reversed(self._open))])
        return _ONE_ROW.sub(_upright, text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SILENT:
            self._muted += 1
        if self._muted or not _TAGS.fullmatch(tag):
            return
        self._note(tag, dict(attrs))
        if tag == "th":
            self._heads.append(len(self._out))
        self._out.append(f"<{tag}{self._kept(tag, dict(attrs))}>")
        if tag not in _VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in _SILENT:
            self._muted = max(0, self._muted - 1)
        if self._muted or tag not in self._open:
            return
        while self._open:
            last = self._open.pop()
            self._out.append(f"</{last}>")
            if last == tag:
                return

    def handle_data(self, data: str) -> None:
        if self._muted:
            return
        if self._in_head_types():
            self._learn(data)
        if self._polars and self._open[-2:] == ["tr", "th"]:
            self._names[self._column] = data
        self._out.append(self._cell(data) if self._in_body() else escape(_counted(data)))

    def _note(self, tag: str, attrs: dict[str, str | None]) -> None:
        if tag == "table":
            self._types, self._heads, self._names = [], [], {}
            self._polars = "dataframe" in (attrs.get("class") or "").split()
        elif tag == "tr":
            self._column = 0
        elif tag in ("td", "th"):
            self._column += 1

    def _learn(self, kind: str) -> None:
        """Note the type of this column; a column of numbers also gets its head to the right."""
        self._types.append(kind)
        if _NUMBER.match(kind) and self._column <= len(self._heads):
            self._out[self._heads[self._column - 1]] = '<th class="number">'
            self._out[-1] = '<td class="type number">'

    def _kept(self, tag: str, attrs: dict[str, str | None]) -> str:
        spans = "".join(
            f' {name}="{attrs[name]}"'
            for name in ("colspan", "rowspan")
            if tag in ("td", "th") and _SPAN.fullmatch(attrs.get(name) or "")
        )
        kind = f' class="{self._class(tag)}"' if self._class(tag) else ""
        return spans + kind + (self._name() if tag == "td" and "tbody" in self._open else "")

    def _name(self) -> str:
        """The name of the column as an attribute, in a table that is too wide for a page."""
        if len(self._names) <= _MOST_PRINTED:
            return ""
        return f' data-name="{escape(self._names.get(self._column, ""))}"'

    def _class(self, tag: str) -> str:
        if tag == "td" and "thead" in self._open:
            return "type"
        return "number" if tag == "td" and _NUMBER.match(self._type()) else ""

    def _type(self) -> str:
        """The type of the column that the reader is in, empty where none is known."""
        known = self._polars and 0 < self._column <= len(self._types)
        return self._types[self._column - 1] if known else ""

    def _in_head_types(self) -> bool:
        return self._polars and self._open[-2:] == ["tr", "td"] and "thead" in self._open

    def _in_body(self) -> bool:
        return self._polars and self._open[-1:] == ["td"] and "tbody" in self._open

    def _cell(self, data: str) -> str:
        if data == "null":
            return '<span class="null">null</span>'
        if len(data) > _LONG and "class=" not in self._out[-1]:
            self._out[-1] = self._out[-1].replace("<td", '<td class="long"', 1)
        if self._type().startswith("datetime") and "UTC" in self._type():
            data = data.removesuffix(" UTC")
        quoted = self._type() == "str" and len(data) > 1 and data[0] == data[-1] == '"'
        return escape(data[1:-1] if quoted else data)


def _upright(table: re.Match[str]) -> str:
    heads, values = _CELL.findall(table[1]), _CELL.findall(table[2])
    if len(heads) != len(values) or len(heads) < _WIDE:
        return table[0]
    rows = zip(heads, values, strict=True)
    lines = "".join(f"<tr><th>{head}</th><td>{value}</td></tr>" for head, value in rows)
    return f"<table><tbody>{lines}</tbody></table>"


def _counted(text: str) -> str:
    """Polars' ``shape: (3, 5)`` in words."""
    rows = _SHAPE.fullmatch(text)
    return text if not rows else f"{rows[1]} row{'' if rows[1] == '1' else 's'}"
