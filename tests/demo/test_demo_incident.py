"""The incident to find: its answers are what the questions of an incident find in its log."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import polars
import pytest

from tallybook import ops
from tallybook.demo import incident as generator
from tallybook.demo.incident import START, Answers
from tallybook.ops.incident import Incident

PAGE = (Path(__file__).parents[2] / "docs" / "incident.md").read_text("utf-8")
SEED = 756


@pytest.fixture(scope="module")
def evening(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Incident]:
    """The evening of the docs."""
    book = tmp_path_factory.mktemp("evening") / "book"
    assert generator.write(book, Answers.of(SEED)) > 80_000
    with ops.open(book) as warehouse, Incident(warehouse) as made:
        assert not warehouse.notes
        yield made


def told(incident: Incident, since_s: float, until_s: float) -> list[tuple[str, ...]]:
    """What differs most between two moments, by dimension, name and way."""
    start, end = (START + timedelta(seconds=at) for at in (since_s, until_s))
    found = incident.differences(incident.slice(start, end))
    return found.select("dimension", "name", "way").rows()


def test_the_retry_storm_is_the_first_that_differs_in_its_minutes(evening: Incident) -> None:
    answers = Answers.of(SEED)
    found = told(evening, answers.storm_from_s, answers.storm_until_s)
    assert [one for one in found if one[0] != "attempt"][:2] == [
        ("error", answers.storm_error, "occurs"),
        ("topic", answers.storm_topic, "fails"),
    ]


def test_the_slow_endpoint_is_the_first_that_differs_after_its_moment(evening: Incident) -> None:
    answers = Answers.of(SEED)
    found = told(evening, answers.slow_from_s, answers.slow_from_s + 600)
    assert found[:2] == [
        ("endpoint", answers.slow_endpoint, "takes longer"),
        ("topic", answers.slow_topic, "takes longer"),
    ]


def test_the_leases_of_the_hung_workers_are_the_taken_ones(evening: Incident) -> None:
    answers = Answers.of(SEED)
    taken = evening.taken(evening.whole)
    assert set(taken["worker"]) == set(answers.hung_workers)
    hung_at = START + timedelta(seconds=answers.hung_at_s)
    assert (taken["since"] - hung_at).abs().max() < timedelta(seconds=15)
    after = evening.slice(hung_at + timedelta(seconds=75))
    seen = evening.lanes(after)["worker"].unique()
    assert not set(seen) & set(answers.hung_workers) and len(seen) == 8


@pytest.mark.parametrize("seed", range(20, 40))
def test_both_workers_that_hang_hold_a_lease_which_expires(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generator, "_JOBS_PER_S", 0.05)
    answers = Answers.of(seed)
    generator.write(tmp_path / "book", answers)
    (log,) = (tmp_path / "book" / "log").glob("*.ndjson")
    lines = [line for line in log.read_bytes().splitlines() if b"job.lease_expired" in line]
    assert {json.loads(line)["worker"] for line in lines} == set(answers.hung_workers)


def test_a_seed_is_an_evening_and_another_one_another(tmp_path: Path) -> None:
    assert Answers.of(3) == Answers.of(3) != Answers.of(4)
    for seed in range(50):
        one = Answers.of(seed)
        moments = sorted([one.slow_from_s, one.hung_at_s, one.storm_from_s])
        assert moments[1] - moments[0] > 600 and one.slow_topic != one.storm_topic


def test_the_docs_have_the_answers_of_their_seed() -> None:
    answers = json.loads(Answers.of(SEED).as_json())
    assert f"--seed {SEED}" in PAGE
    (table,) = re.findall(r"\| found \|.*", PAGE, re.DOTALL)
    for name, value in answers.items():
        for one in value if isinstance(value, list) else [value]:
            clock = re.search(r"T(\S{8})", str(one))
            assert name == "seed" or (clock[1] if clock else one) in table, name


def test_the_answers_are_written_first_and_a_book_that_is_there_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generator, "MINUTES", 1)
    book = tmp_path / "evening"
    assert generator.main([str(book), "--seed", "5"]) == 0
    kept = tmp_path / "evening-answers.json"
    assert json.loads(kept.read_text("utf-8"))["seed"] == 5
    assert str(kept) in capsys.readouterr().out
    assert generator.main([str(book), "--seed", "6"]) == 2
    assert "is there already" in capsys.readouterr().err
    assert json.loads(kept.read_text("utf-8"))["seed"] == 5


def test_the_table_of_the_storm_is_not_of_chance(evening: Incident) -> None:
    quiet = evening.slice(START + timedelta(minutes=1), START + timedelta(minutes=6))
    found = evening.differences(quiet)
    storm = Answers.of(SEED)
    assert found.filter(polars.col("excess") > 0.2).filter(polars.col("way") != "occurs").is_empty()
    assert storm.storm_error not in found.filter(polars.col("excess") > 0)["name"].to_list()
