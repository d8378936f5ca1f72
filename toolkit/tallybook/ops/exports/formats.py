"""The format of a file, by its first bytes; its ending decides only between texts."""

from tallybook.ops.exports import jsons
from tallybook.ops.exports.layout import Head
from tallybook.ops.exports.parts import Part
from tallybook.ops.exports.texts import Text

_HEAD = 1 << 16


def head(part: Part) -> bytes:
    """The first bytes of a file."""
    with part.path.open("rb") as file:
        return file.read(_HEAD)


def damaged(part: Part) -> str:
    """What a file ought to be by its ending, where it does not begin as one."""
    name = part.bare
    if name.endswith((".parquet", ".pq")):
        return "Parquet file"
    if name.endswith(".orc"):
        return "ORC file"
    return "workbook" if name.endswith((".xlsx", ".xlsm", ".xls", ".ods")) else ""


def text_head(part: Part, text: Text) -> Head:
    """How a text begins."""
    with text.path.open(encoding="utf-8-sig", errors="replace") as file:
        words = file.read(_HEAD)
    return Head(part.bare, words, jsons.first(words))


def of_text(part: Part, begun: Head) -> str:
    """The format of a text by what it begins with, and by its ending where that says nothing."""
    name, begin = part.bare, begun.text.lstrip()[:1]
    if name.endswith((".ndjson", ".jsonl")):
        return "ndjson"
    if not name.endswith(".json") and (begun.first is None or begin not in ("{", "[")):
        return "csv"
    return "ndjson" if begin == "{" and _is_lines(begun.text) else "json"


def _is_lines(text: str) -> bool:
    """Whether the first filled line of a text is one JSON value, and another follows it."""
    filled = [line for line in text.splitlines() if line.strip()]
    return len(filled) > 1 and jsons.is_value(filled[0])
