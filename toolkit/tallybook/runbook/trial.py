"""A runbook's cells run one after the other in this process: quick, for tests of a runbook.

No kernel, no papermill, no report, nothing kept. A run that counts is one of ``run``.
"""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tallybook.errors import BadInput
from tallybook.runbook.answers import Answer
from tallybook.runbook.catalogue import find, tags_of, text_of


@dataclass(frozen=True, slots=True)
class Trial:
    """What the cells displayed, by their ids, and the answer of the last one."""

    shown: dict[str, Any]
    answer: Answer

    @property
    def found(self) -> dict[str, tuple[str, ...]]:
        """{kind: ids} of the findings above ``info``, in their order."""
        serious = [one for one in self.answer.findings if one["severity"] != "info"]
        return {one["kind"]: tuple(one["ids"]) for one in serious}


def trial(name_or_path: str | Path, **parameters: Any) -> Trial:
    """Run the cells of a runbook in this process, its parameters replaced by ``parameters``.

    Whatever a cell raises is raised. Raises BadInput for a parameter that is not declared, and
    where the last cell gives no answer.
    """
    runbook = find(name_or_path)
    if unknown := [name for name in parameters if not runbook.takes(name)]:
        raise BadInput(f"runbook {runbook.name}: no parameter {unknown[0]}")
    room: dict[str, Any] = {"__name__": "__main__"}
    shown: dict[str, Any] = {}
    last: Any = None
    for cell in json.loads(runbook.path.read_text("utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            last = shown[cell.get("id", "")] = _run(text_of(cell), room)
            room |= parameters if "parameters" in tags_of(cell) else {}
    if not isinstance(last, Answer):
        raise BadInput(f"runbook {runbook.name}: its last cell gives no answer(findings)")
    return Trial(shown, last)


def _run(source: str, room: dict[str, Any]) -> Any:
    """The value of the last line of a cell, where that is an expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<cell>", "exec"), room)  # noqa: S102 - what a notebook is for
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), "<cell>", "eval"), room)  # noqa: S307
