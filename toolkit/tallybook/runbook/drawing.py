"""SVG of a chart, made safe to stand inside a page: what is not on the list is left out.

Kept are shapes, text, gradients and clips with their geometry and paint. Left out are scripts,
handlers, styles, foreign content, and every reference but one to a part of the same drawing.
Ids get a prefix, because two drawings in one page both call their first clip ``clip0``.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from tallybook.runbook.page import plain

_SVG = "http://www.w3.org/2000/svg"
_TAGS = re.compile(
    "svg|g|path|rect|line|circle|ellipse|polygon|polyline|text|tspan|title|desc|defs|clipPath|"
    "linearGradient|radialGradient|stop|use"
)
_ATTRIBUTES = re.compile(
    "class|role|aria-(label|hidden|roledescription)|version|viewBox|preserveAspectRatio|"
    "width|height|[xy][12]?|c[xy]|r[xy]?|d[xy]?|points|offset|transform|"
    "fill(-opacity|-rule)?|stroke(-(width|opacity|dasharray|dashoffset|linecap|linejoin))?|"
    "stroke-miterlimit|opacity|stop-(color|opacity)|clip-(path|rule)|gradient(Units|Transform)|"
    "display|visibility|font-(family|size|weight|style)|text-anchor|dominant-baseline"
)
_INSIDE = re.compile(r"url\(\s*#([\w-]+)\s*\)")
_OUTSIDE = re.compile(r"url\(|javascript:|@import|expression\(", re.I)
_DECLARED = re.compile(r"<!(DOCTYPE|ENTITY)", re.I)


def safe_svg(text: str, prefix: str) -> str | None:
    """``text`` as one inline ``<svg>``, or None where it is no SVG that can be trusted."""
    if _DECLARED.search(text):
        return None
    try:
        root = ElementTree.fromstring(text)  # noqa: S314 - entities were refused above
    except ElementTree.ParseError:
        return None
    if _name(root.tag) != "svg":
        return None
    kept = _kept(root, prefix)
    kept.set("xmlns", _SVG)
    _fit(kept)
    return ElementTree.tostring(kept, encoding="unicode")


def _kept(element: ElementTree.Element, prefix: str) -> ElementTree.Element:
    made = ElementTree.Element(_name(element.tag), _attributes(element, prefix))
    made.text, made.tail = plain(element.text or ""), plain(element.tail or "")
    made.extend(_kept(child, prefix) for child in element if _TAGS.fullmatch(_name(child.tag)))
    return made


def _attributes(element: ElementTree.Element, prefix: str) -> dict[str, str]:
    kept = {}
    for name, value in element.attrib.items():
        if name == "id":
            kept[name] = prefix + value
        elif _name(name) == "href" and value.startswith("#"):
            kept["href"] = "#" + prefix + value[1:]
        elif _ATTRIBUTES.fullmatch(name) and not _OUTSIDE.search(_INSIDE.sub("", value)):
            kept[name] = _INSIDE.sub(rf"url(#{prefix}\1)", plain(value))
    return kept


def _fit(svg: ElementTree.Element) -> None:
    """Give it a viewBox, so that a narrow screen can shrink it whole."""
    width, height = svg.get("width", ""), svg.get("height", "")
    if "viewBox" not in svg.attrib and re.fullmatch(r"[\d.]+ [\d.]+", f"{width} {height}"):
        svg.set("viewBox", f"0 0 {width} {height}")


def _name(tag: object) -> str:
    """The local name; comments and processing instructions have a function for a tag."""
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""
