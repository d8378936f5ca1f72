"""Small notebooks for tests: a question, declared parameters, then the given code cells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PARAMETERS = """\
book = ""  # the book
n = 3  # [0..99] how many
rate = 0.5  # how fast
name = "x"  # any text
api_token = ""  # [secret] what the cloud asks for
dry_run = True  # change nothing"""

FOUND = """\
from types import SimpleNamespace
from tallybook.runbook import answer
found = dict(kind="k", ids=["a-1", "a-2"], evidence="seen <b>twice</b>", action="tallybook trace a")
"""


def answering(severity: str, *, incomplete: bool = False) -> str:
    """A last cell with one finding of that severity."""
    one = f'SimpleNamespace(title="One thing", severity="{severity}", **found)'
    given = f"[], incomplete=[{one}]" if incomplete else f"[{one}]"
    return f"{FOUND}\nanswer({given})"


def notebook(path: Path, *sources: str, parameters: str = PARAMETERS) -> Path:
    """Write a runbook whose code cells are ``sources``, with ids ``step-1``, ``step-2``, …"""
    path.parent.mkdir(parents=True, exist_ok=True)
    cells = [
        {
            "cell_type": "markdown",
            "id": "question",
            "metadata": {},
            "source": "# Small\n\nIs <i>it</i> **so**?",
        },
        _code("parameters", parameters, ["parameters"]),
        *(_code(f"step-{index}", source, []) for index, source in enumerate(sources, 1)),
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    written = {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path.write_text(json.dumps(written), "utf-8")
    return path


def empty_book(root: Path, node_id: str = "node-7") -> Path:
    """A book with the first line of a log in it, which names the node."""
    (root / "log").mkdir(parents=True)
    opened = {"v": 1, "seq": 1, "event": "log.opened", "node_id": node_id}
    (root / "log" / "0a1b2c3d-000000000001.ndjson").write_text(json.dumps(opened) + "\n", "utf-8")
    return root


def lines(place: Path) -> list[dict[str, Any]]:
    """Every line of the ledger."""
    text = (place / "tallybook-out" / "node-7" / "runs.ndjson").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def ledger(place: Path) -> list[dict[str, Any]]:
    """The lines that end a run."""
    return [line for line in lines(place) if line["status"] != "running"]


def _code(name: str, source: str, tags: list[str]) -> dict[str, object]:
    return {
        "cell_type": "code",
        "id": name,
        "metadata": {"tags": tags} if tags else {},
        "source": source,
        "outputs": [],
        "execution_count": None,
    }
