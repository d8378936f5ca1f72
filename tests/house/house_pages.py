"""The pages of the project as tests read them: sections, tables, blocks, links."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("runbooks/*.md"),
        *ROOT.glob("notebooks/*.md"),
        *ROOT.glob("data-samples/*.md"),
    ]
)
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def page(name: str) -> str:
    """The text of a page, by its path from the root."""
    return (ROOT / name).read_text("utf-8")


def blocks(text: str) -> list[tuple[str, str]]:
    """The fenced blocks in order, as (language, content)."""
    return _BLOCK.findall(text)


def prose(text: str) -> str:
    """The text without its fenced blocks and comments."""
    return _COMMENT.sub("", _BLOCK.sub("", text))


def headings(text: str) -> list[str]:
    """The headings, at any level."""
    return _HEADING.findall(prose(text))


def section(text: str, heading: str) -> str:
    """What stands between a heading ``## …`` and the next one of that level; '' for none."""
    found = re.search(rf"^## {re.escape(heading)}$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def rows(text: str) -> list[list[str]]:
    """The cells of all table rows but heads, in order."""
    lines = [line for line in prose(text).splitlines() if line.startswith("|")]
    rules = [set(line) <= set("|-: ") for line in lines]
    heads = [*rules[1:], False]
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line, rule, head in zip(lines, rules, heads, strict=True)
        if not rule and not head
    ]


def code(text: str) -> list[str]:
    """What stands in backticks, in order."""
    return _CODE.findall(prose(text))


def links(text: str) -> list[str]:
    """The targets of all links and images."""
    return _LINK.findall(prose(text))


def anchor(heading: str) -> str:
    """The anchor that a heading gets on the usual hosts."""
    kept = re.sub(r"[^\w\- ]", "", heading.lower())
    return kept.strip().replace(" ", "-")
