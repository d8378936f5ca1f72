"""Spoiled CSV files compared where they lie and compared as copies: the answer is one.

A failure is found again by its seed: TALLYBOOK_SEED and TALLYBOOK_SECONDS (else 60).
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Any

import pytest

from tallybook.errors import TallybookError
from tallybook.ops.exports.dialects import TRAILS
from tallybook.ops.reconciling import compare, reading, reconcile

SEED = int(os.environ.get("TALLYBOOK_SEED", "1"))
SECONDS = float(os.environ.get("TALLYBOOK_SECONDS", "60"))
CELLS = ["a", "b", "", '""', '"x,y"', '"q""q"', '"l\nl"', "1", "1.0", "007", "\u00e9", "\u65e5",
         " s ", '"a"b', "NA", "id", "x", "2026-01-01T00:00:00Z", '"', "'", "k" * 300]  # fmt: skip
SPLICES = b'",\n\r\x00\xff; '
TYPES = [{}, {}, {"x": "integer"}, {"x": "decimal"}, {"id": "integer"}]


def spoiled(dice: random.Random) -> bytes:
    """A table of two or three columns; few of its rows are none, and few of its bytes another."""
    end, mark = dice.choice(["\n", "\n", "\r\n", "\r"]), dice.choice([",", ",", ";", "\t"])
    columns = dice.choice([["id", "x"], ["id", "x", "y"], ["x", "id"]])
    head = mark.join(columns)
    lines = [head, *(line for _ in range(dice.choice([3, 30, 300]))
                     for line in row(dice, columns, mark))]  # fmt: skip
    text = (end.join(lines) + dice.choice([end, end, ""])).encode()
    for _ in range(dice.choice([0, 0, 0, 1, 2])):
        at = dice.randrange(len(text))
        text = text[:at] + bytes([dice.choice(SPLICES)]) + text[at + dice.randint(0, 1) :]
    return dice.choice([b"", b"", b"\xef\xbb\xbf"]) + text


def row(dice: random.Random, columns: list[str], mark: str) -> list[str]:
    """A row, and sometimes what is none behind it."""
    cells = [dice.choice(CELLS) for _ in columns]
    if dice.random() < 0.8:
        cells[columns.index("id")] = str(dice.randint(0, 40))
    cells = cells[: len(cells) - (dice.random() < 0.02)] + ["1"] * (dice.random() < 0.02)
    behind = [line for line in (mark.join(columns), "", mark) if dice.random() < 0.01]
    return [mark.join(cells), *behind]


def answer(folder: Path, types: dict[str, str]) -> Any:
    """All that a comparison says, or its error."""
    try:
        with reconcile(folder / "l.csv", folder / "r.csv", key="id", types=types) as found:
            tables = found.rows, found.differences, found.unreadable
            said = [words for words in found.warnings if not words.endswith(TRAILS)]
            return found.statuses, *(table.rows() for table in tables), said
    except TallybookError as error:
        return type(error), str(error)


def test_a_file_compared_where_it_lies_gives_what_a_copy_of_it_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, dice, tried, until = reading.read, random.Random(SEED), 0, time.monotonic() + SECONDS  # noqa: S311 - by a seed
    monkeypatch.setattr(compare.reading, "read", lambda *given, **how: read(
        *given, **how | {"lying": how["lying"] and may_lie}))  # fmt: skip
    while time.monotonic() < until:
        left = spoiled(dice)
        (tmp_path / "l.csv").write_bytes(left)
        (tmp_path / "r.csv").write_bytes(left if dice.random() < 0.3 else spoiled(dice))
        types = dice.choice(TYPES)
        may_lie = True
        lying = answer(tmp_path, types)
        may_lie = False
        assert lying == answer(tmp_path, types), f"seed {SEED}, table {tried}, {types}"
        tried += 1
    print(f"seed {SEED}: {tried} pairs of tables, each with one answer")
