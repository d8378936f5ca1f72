"""What is no CSV and has no JSON object a line, written out as one of them."""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson

from tallybook import doubled
from tallybook.doubled import Twice
from tallybook.errors import BadInput
from tallybook.ops.imports.profile import Reading
from tallybook.ops.imports.texts import SHOWN, BadRow, Text, is_remark


def _written(path: Path, aside: Path, reading: Reading, rows: Iterable[tuple[int, Any]]) -> Text:
    """Lines of JSON objects, with the line of the file that each begins in."""
    plain, lines = aside / "rows.ndjson", []
    with plain.open("wb") as file:
        for line, row in rows:
            file.write(orjson.dumps(row) + b"\n")
            lines.append(line)
    return Text(path.name, plain, reading, lines=lines)


def from_blanks(plain: Path, reading: Reading, aside: Path) -> tuple[Path, list[int]]:
    """Columns between runs of blanks as tab-separated values, with the line of each row."""
    target, lines = aside / "rows.tsv", []
    with (
        plain.open(encoding="utf-8-sig", errors="replace") as source,
        target.open("w", encoding="utf-8") as file,
    ):
        for number, line in enumerate(source, 1):
            cells = line.split()
            if cells and not is_remark(cells[0], reading.comment):
                file.write("\t".join(cells) + "\n")
                lines.append(number)
    return target, lines


def from_document(path: Path, plain: Path, reading: Reading, aside: Path) -> Text:
    """The rows of one JSON document: a list, or the values of an object, or that object."""
    raw = plain.read_bytes().removeprefix(b"\xef\xbb\xbf")
    try:
        document = orjson.loads(raw)
        again = doubled.read_again(raw, document)
    except (orjson.JSONDecodeError, RecursionError) as error:
        raise BadInput(f"{path} is no JSON document: {error}") from None
    rows = list(_each(path, document, reading.each))
    looked = rows if again is None else list(_each(path, again, reading.each))
    reasons = [_reason(row, is_plain=again is None) for row in looked]
    told = list(zip(rows, reasons, strict=True))
    text = _written(path, aside, reading, ((0, row) for row, reason in told if not reason))
    text.bad = [BadRow(path.name, None, why, repr(row)[:SHOWN]) for row, why in told if why]
    text.lines = None
    return text


def _reason(row: Any, *, is_plain: bool) -> str:
    """Why a value of a document is no row; in a plain one no object has a name twice."""
    if not isinstance(row, dict):
        return "not a JSON object"
    return "" if is_plain else doubled.reason(row)


def _each(path: Path, document: Any, each: str) -> Iterator[Any]:
    """The rows at the place ``each``; a document that has no such place is one row itself. Raises
    BadInput where that place stands twice, so that rows are hidden."""
    for step in each.split(".") if each else []:
        if isinstance(document, Twice) and (step == "*" or step in document.names):
            raise BadInput(f"{path}: {document.names[0]!r} stands twice in it")
        if step == "*" and isinstance(document, dict):
            document = list(document.values())
        elif isinstance(document, dict) and step in document:
            document = document[step]
        else:
            break
    yield from document if isinstance(document, list) else [document]


def from_blocks(path: Path, plain: Path, reading: Reading, aside: Path) -> Text:
    pattern = re.compile(reading.pattern, re.DOTALL)
    bad: list[BadRow] = []

    def rows() -> Iterator[tuple[int, Any]]:
        for line, block in _blocks(plain, reading):
            found = pattern.match(block)
            if found:
                yield line, found.groupdict()
            else:
                reason = "the pattern does not match"
                bad.append(BadRow(path.name, line, reason, block[:SHOWN].strip()))

    text = _written(path, aside, reading, rows())
    if not text.lines:
        shown = ", ".join(repr(one.text.splitlines()[0][:80]) for one in bad[:3])
        raise BadInput(f"[read] pattern matches none of the {len(bad)} blocks of {path}: {shown}")
    text.bad = bad
    return text


def _blocks(plain: Path, reading: Reading) -> Iterator[tuple[int, str]]:
    """Each block with the line that it begins in; without an end mark each line is one."""
    begun, block = 1, ""
    with plain.open(encoding="utf-8-sig", errors="replace") as file:
        for number, line in enumerate(file, 1):
            is_end = not reading.end or line.strip() == reading.end
            block += "" if reading.end and is_end else line
            if is_end:
                if block.strip() and not is_remark(block, reading.comment):
                    yield begun, block.rstrip("\n")
                begun, block = number + 1, ""
    if block.strip():
        yield begun, block.rstrip("\n")


def keys_of(line: str) -> list[str]:
    """The paths in a line of JSON, for a person who looks for one; empty where it is none."""
    try:
        return list(_paths(json.loads(line), ""))[:40]
    except ValueError:
        return []


def _paths(value: Any, before: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield before
        return
    for name, inner in value.items():
        step = f'"{name}"' if "." in name else name
        yield from _paths(inner, f"{before}.{step}" if before else step)
