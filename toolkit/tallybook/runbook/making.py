"""``runbook new``: a runbook that has the shape, runs as it is, and says what to write where."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tallybook import whole
from tallybook.errors import BadInput
from tallybook.runbook.catalogue import HERE, SUFFIX
from tallybook.runbook.folder import private_folder

_NAME = re.compile(r"[a-z][a-z0-9_]{0,59}")
_CELLS = (
    ("question", "# {title}\n\nWhat is there to know about the jobs of this window?\n\n"
     "**Use it when** it is not known yet when: write it here."),
    ("parameters", 'book = ""  # the book; empty = TALLYBOOK_BOOK, ./book, else the sample book\n'
     'since = ""  # [time] begin of the window; empty = the first event\n'
     'until = ""  # [time] end of the window, not part of it; empty = the last event'),
    ("about-before", "## Before: what there is to look at"),
    ("covered", "from tallybook import ops\n"
     "from tallybook.runbook import answer, finding, own_thresholds\n\n"
     'limits = own_thresholds("{name}", open_jobs=0)\n'
     "warehouse = ops.open(book)\nspan = ops.Span(since=since, until=until)\n"
     "seen = ops.coverage(warehouse, span)\nseen"),
    ("about-jobs", "## Which jobs have not ended\n\nOne call and one result a cell."),
    ("open-jobs", "found = ops.open_jobs(warehouse, span)\nfound"),
    ("depth-chart", "ops.charts.show(ops.charts.depth(warehouse, span))"),
    ("about-act", "## Act\n\nNothing: this runbook only reads.\n\n"
     "## After\n\nNothing was changed, so there is nothing to check.\n\n"
     "## Undo\n\nNothing to take back."),
    ("about-answer", "## Findings"),
    ("answer", 'told = finding("warning", "Jobs have not ended", ids=found["job_id"])\n'
     'serious = [told] if found.height > limits["open_jobs"] else []\n'
     "answer(serious, incomplete=ops.findings.incomplete(warehouse), seen=seen)"),
)  # fmt: skip


def make(name: str) -> Path:
    """Write ``./runbooks/<name>.ipynb``; raises BadInput for a name that is none or is taken."""
    if not _NAME.fullmatch(name):
        raise BadInput(f"no name for a runbook: {name!r}; use small letters, digits and _")
    path = HERE / f"{name}{SUFFIX}"
    private_folder(HERE)
    if path.exists():
        raise BadInput(f"{path} is there already: name another one")
    return whole.put(path, _notebook(name).encode())


def _notebook(name: str) -> str:
    given = {"{name}": name, "{title}": name.replace("_", " ").capitalize()}
    cells = [_cell(id_, _filled(source, given)) for id_, source in _CELLS]
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    made = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(made, indent=1) + "\n"


def _filled(source: str, given: dict[str, str]) -> str:
    for mark, text in given.items():
        source = source.replace(mark, text)
    return source


def _cell(id_: str, source: str) -> dict[str, object]:
    lines = source.splitlines(keepends=True)
    if id_.startswith("about-") or id_ == "question":
        return {"cell_type": "markdown", "id": id_, "metadata": {}, "source": lines}
    metadata = {"tags": ["parameters"]} if id_ == "parameters" else {}
    empty: dict[str, object] = {"execution_count": None, "outputs": []}
    return {"cell_type": "code", "id": id_, "metadata": metadata, "source": lines, **empty}
