"""docs/models.md names every model, column, question, detector, finding and chart."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ops_logs import Log

from tallybook import ops

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "models.md").read_text("utf-8")
WORDS = set(re.findall(r"[A-Za-z_]+", PAGE))


@pytest.mark.parametrize("model", ["leases", "jobs", "cache_history", "topics"])
def test_each_column_of_a_model_is_on_the_page_or_a_field_of_the_log(
    tmp_path: Path, model: str
) -> None:
    Log(tmp_path)
    with ops.open(tmp_path) as warehouse:
        columns = set(warehouse.sql(f"from {model}").columns)
        fields = set(warehouse.sql("from events").columns)
    assert f"### {model}\n" in PAGE
    assert not columns - WORDS - fields


def test_each_question_detector_and_chart_is_on_the_page() -> None:
    names = {name for name in ops.__all__ if name[0].islower()} | set(ops.charts.__all__)
    assert not {name for name in names if name not in WORDS} - {"Drawing"}


def test_each_kind_of_finding_is_on_the_page() -> None:
    folder = ROOT / "toolkit" / "tallybook" / "ops"
    source = "".join(path.read_text("utf-8") for path in folder.rglob("findings.py"))
    begun = r'(?:_jobs|_keys|Finding)\((?:warehouse,)?\s*"([a-z_]+)"'
    calls = begun + r'|"(?:differs|only_\w+)", "([a-z_]+)"'
    kinds = {kind for found in re.findall(calls, source) for kind in found if kind}
    assert {"answer_lost", "changed", "gap"} <= kinds and not kinds - WORDS


def test_each_statement_says_its_grain_on_its_first_line() -> None:
    for path in (ROOT / "toolkit" / "tallybook" / "ops").rglob("*.sql"):
        assert re.match(r"-- [a-z0-9]", path.read_text("utf-8")), path.name
