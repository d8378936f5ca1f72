"""What is no CSV and has no JSON object a line, written out as one of them."""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson

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
    try:
        document = orjson.loads(plain.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    except (orjson.JSONDecodeError, RecursionError) as error:
        raise BadInput(f"{path} is no JSON document: {error}") from None
    rows = list(_each(document, reading.each))
    bad = [BadRow(path.name, None, "not a JSON object", repr(row)[:SHOWN])
           for row in rows if not isinstance(row, dict)]  # fmt: skip
    text = _written(path, aside, reading, ((0, row) for row in rows if isinstance(row, dict)))
    text.bad, text.lines = bad, None
    return text


def _each(document: Any, each: str) -> Iterator[Any]:
    """The rows at the path ``each``; a document that has no such place is one row itself."""
    for step in each.split(".") if each else []:
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
