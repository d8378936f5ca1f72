"""The shape that all runbooks have, as rules: what is wrong with a notebook that is to be one.

question      # title, one question, **Use it when** …
parameters    tagged, literals alone, each with its meaning; `book` is one
## Before     what there is to look at, then what is found in it, under headings of its own
## Act        nothing, or what is done; `dry_run = True` is its default
## After      what must hold now, else the run fails
## Undo       how to take it back
## Findings   the last cell: answer(findings)
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tallybook.runbook.catalogue import read, tags_of, text_of

HEADINGS = ("Before", "Act", "After", "Undo", "Findings")
LONGEST = 12
_COMPUTES = (ast.For, ast.While, ast.FunctionDef, ast.ListComp, ast.DictComp, ast.Lambda, ast.BinOp)
_ACTS = re.compile(r"\b(rebuild|apply|undo|acting\.act|procedure\.act)\(")
_ID = re.compile(r"[a-z][a-z-]{2,40}")

Cells = Sequence[Mapping[str, Any]]


def faults(path: Path) -> list[str]:
    """What is wrong with the runbook, a sentence each; empty where it has the shape.

    Raises BadInput where it is no notebook, or its parameters cell is none.
    """
    runbook = read(path)
    cells: Cells = json.loads(path.read_text("utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    found = [*_stored(cells, code), *_begin(cells), *_headings(cells), *_thin(code), *_end(cells)]
    if not runbook.question.endswith("?"):
        found.append("its first cell asks no question")
    if not runbook.takes("book"):
        found.append("it has no parameter book")
    found += [f"parameter {p.name} says not what it means" for p in runbook.parameters
              if not p.meaning]  # fmt: skip
    defaults = {one.name: one.default for one in runbook.parameters}
    if _ACTS.search("\n".join(map(text_of, code))) and defaults.get("dry_run") is not True:
        found.append("it changes something, and dry_run = True is not its default")
    return found


def _stored(cells: Cells, code: Cells) -> Iterator[str]:
    if any(cell.get("outputs") or cell.get("execution_count") is not None for cell in code):
        yield "it is stored with outputs: clear them"
    ids = [str(cell.get("id", "")) for cell in cells]
    if len(ids) != len(set(ids)) or not all(map(_ID.fullmatch, ids)):
        yield "its cells have no ids that say what they are, as in about-leases"


def _begin(cells: Cells) -> Iterator[str]:
    first, second = [*cells, {}, {}][:2]
    told = text_of(first)
    if first.get("cell_type") != "markdown" or not told.startswith("# "):
        yield "its first cell is no heading with a question"
    if "**Use it when**" not in told:
        yield "its first cell does not say when to use it: **Use it when** …"
    if tags_of(second) != ["parameters"] or any(map(tags_of, cells[2:])):
        yield "its second cell, and no other, is tagged parameters"


def _headings(cells: Cells) -> Iterator[str]:
    prose = "\n".join(text_of(cell) for cell in cells if cell["cell_type"] == "markdown")
    heads = [head.partition(":")[0] for head in re.findall(r"^## (.+)$", prose, re.MULTILINE)]
    if [head for head in heads if head in HEADINGS] != list(HEADINGS):
        wanted = ", ".join(f"## {head}" for head in HEADINGS)
        yield f"it has not these headings once, in this order: {wanted}"


def _thin(code: Cells) -> Iterator[str]:
    for cell in code:
        source = text_of(cell)
        if len(source.splitlines()) > LONGEST:
            yield f"cell {cell.get('id')} has more than {LONGEST} lines"
        if any(isinstance(node, _COMPUTES) for node in ast.walk(ast.parse(source))):
            yield f"cell {cell.get('id')} computes: what computes belongs into a module"


def _end(cells: Cells) -> Iterator[str]:
    if not cells or not re.search(r"^answer\(", text_of(cells[-1]), re.MULTILINE):
        yield "its last cell is not answer(findings)"
