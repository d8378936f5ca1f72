"""Rules that stand in a profile, and what counts more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tallybook.cli.main import main

PROFILE = """
[columns."Price (EUR)"]
rename = "price"
type = "decimal"
decimal = ","
tolerance = 0.01

[columns.note]
ignore_case = true
"""


@pytest.fixture
def given(tmp_path: Path) -> list[str]:
    (tmp_path / "ours.csv").write_text("id,price,note\n1,1.50,Tea\n2,2.00,Salt\n")
    (tmp_path / "cloud.csv").write_text('id;Price (EUR);note\n1;"1,51";TEA\n2;"2,00";salt\n')
    (tmp_path / "ours.toml").write_text(PROFILE)
    return ["reconcile", str(tmp_path / "cloud.csv"), "--local", str(tmp_path / "ours.csv"),
            "--key", "id", "--json", "--profile", str(tmp_path / "ours.toml")]  # fmt: skip


def test_the_rules_of_a_profile_hold_on_both_sides(
    given: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(given) == 0, capsys.readouterr()
    assert main(given[:-2]) == 1, "without it the two do not even have the same columns"


def test_an_option_counts_more_than_the_profile(
    given: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*given, "--tolerance", "Price (EUR)=0.001"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["changed_cells_by_column"] == {"price": 1}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('[columns.note]\ntolerence = 1', "no rule 'tolerence'; the nearest is 'tolerance'"),
        ('[columns.nots]\nignore = true', "is given for column 'nots', and neither side has it"),
        ('[columns.note]\ntolerance = 1', "tolerance does not go with the type text"),
    ],
)  # fmt: skip
def test_a_wrong_rule_in_a_profile_is_one_line_and_exit_2(
    given: list[str], capsys: pytest.CaptureFixture[str], line: str, words: str
) -> None:
    Path(given[-1]).write_text(line + "\n")
    code = main(given)
    said = capsys.readouterr().err
    assert code == 2 and words in said and said.count("\n") == 1, said
