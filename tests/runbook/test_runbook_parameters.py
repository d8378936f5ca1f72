"""What a parameters cell declares, and how given texts become values of its types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from runbook_notebooks import PARAMETERS, notebook

from tallybook.errors import BadInput
from tallybook.runbook import find, listed
from tallybook.runbook.bounds import Bounds
from tallybook.runbook.parameters import Parameter, declared, typed


def values(**given: str) -> dict[str, Any]:
    return typed(declared(PARAMETERS), given)


def test_a_cell_declares_names_defaults_and_meanings() -> None:
    first, second, *_ = declared(PARAMETERS)
    assert first == Parameter("book", "", "the book")
    assert second == Parameter("n", 3, "how many", int, Bounds(0, 99))


def test_a_hash_inside_a_text_is_no_comment() -> None:
    assert declared('a = "#1"  # the colour #1') == (Parameter("a", "#1", "the colour #1"),)


@pytest.mark.parametrize("text", ["007", "1e5", "null", "true", "", " x ", "a=b", '"', "ü{}\n"])
def test_text_stays_the_text_that_was_typed(text: str) -> None:
    assert values(name=text) == {"name": text}


def test_text_stays_text_where_the_default_is_none() -> None:
    assert typed(declared("as_of = None"), {"as_of": "2026"}) == {"as_of": "2026"}


def test_numbers_and_flags_are_read_by_the_type_of_their_default() -> None:
    assert values(n="+12", rate="1e-3", dry_run="False") == {
        "n": 12,
        "rate": 0.001,
        "dry_run": False,
    }


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("n", "1.5"),
        ("n", ""),
        ("n", "1_000"),
        ("n", "٣"),
        ("rate", "nan"),
        ("rate", "inf"),
        ("rate", "fast"),
        ("dry_run", "yes"),
        ("dry_run", "0"),
    ],
)
def test_a_value_of_another_type_is_refused_by_name(name: str, text: str) -> None:
    with pytest.raises(BadInput, match=rf"parameter {name}: .* is no "):
        values(**{name: text})


def test_an_unknown_parameter_names_the_nearest() -> None:
    with pytest.raises(BadInput, match=r"no parameter dryrun: did you mean dry_run\?"):
        values(dryrun="true")


@pytest.mark.parametrize("source", ["import os", "a = 1 + n()", "a = b = 1", "a =", "f(1)"])
def test_a_cell_with_more_than_literals_is_refused(source: str) -> None:
    with pytest.raises(BadInput, match="parameter"):
        declared(source)


BOUNDED = """\
n = 3  # [1..5] how many
share = 0.5  # [..1] of all
least = 1  # [1..] at least
level = "low"  # [low | mid | high] how loud
since = ""  # [time] begin
day = ""  # [date] which day
every = "auto"  # [duration] a step
key: str  # the key
limit: int = 5"""


def test_a_cell_declares_bounds_and_what_must_be_given() -> None:
    told = {one.name: (one.kind, one.bounds.told, one.required) for one in declared(BOUNDED)}
    assert told == {
        "n": ("whole number", "1..5", False),
        "share": ("number", "..1", False),
        "least": ("whole number", "1..", False),
        "level": ("text", "low | mid | high", False),
        "since": ("text", "time", False),
        "day": ("text", "date", False),
        "every": ("text", "duration", False),
        "key": ("text", "", True),
        "limit": ("whole number", "", False),
    }


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("n", "6", "6 is not 1 to 5"),
        ("n", "0", "0 is not 1 to 5"),
        ("share", "1.1", "1.1 is not 1 or less"),
        ("least", "0", "0 is not 1 or more"),
        ("level", "loud", "'loud' is none of: low, mid, high"),
        ("level", "", "'' is none of"),
        ("since", "yesterday", "'yesterday' is no time: write it like 2026-11-29T22:00"),
        ("since", "2026-02-30", "'2026-02-30' is no time"),
        ("day", "20260101", "'20260101' is no date: write it like 2026-11-29"),
        ("day", "2026-13-01", "'2026-13-01' is no date"),
        ("every", "5 min", "'5 min' is no duration: write it like 100ms"),
    ],
)
def test_a_value_out_of_its_bounds_is_refused_by_name(name: str, text: str, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        typed(declared(BOUNDED), {"key": "k", name: text})
    assert str(caught.value).startswith(f"parameter {name}: {said}")


def test_large_bounds_are_told_in_digits() -> None:
    (one,) = declared("most_s = 3600.0  # [1..31622400] borne")
    assert one.bounds.told == "1..31622400"


def test_values_within_their_bounds_and_times_stay_text() -> None:
    given = {"since": "2026-11-29", "day": "2026-11-29", "every": "5m", "level": "high"}
    assert typed(declared(BOUNDED), {"key": "7", "n": "5", **given}) == {
        "key": "7",
        "n": 5,
        **given,
    }
    assert typed(declared(BOUNDED), {"key": "", "since": "", "day": ""})["since"] == ""


def test_what_has_no_default_must_be_given() -> None:
    with pytest.raises(BadInput, match=r"parameter key \(the key\) has no default: give it a text"):
        typed(declared(BOUNDED), {})


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("n = 9  # [1..5] x", "parameter n: 9 is not 1 to 5"),
        ("n = 'a'  # [1..5] x", r"parameter n: \[1..5\] does not fit a text"),
        ("n = 1  # [time] x", r"parameter n: \[time\] does not fit a whole number"),
        ("n = 1  # [tiem] x", r"parameter n: \[tiem\] is no range"),
        ("n = 1  # [..] x", r"parameter n: \[..\] is no range"),
        ("n: int = 1.5", "parameter n: its default 1.5 is no whole number"),
        ("n: list = []", "parameter n: list is no type of one: bool, int, float, str"),
        ("n = [1]", "parameter n: list is no type of one"),
        ("n: bool  # [1..2] x", "does not fit a true or false"),
    ],
)
def test_a_declaration_that_cannot_hold_is_refused(source: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        declared(source)


def test_a_secret_is_given_by_reference_and_what_was_given_instead_is_not_repeated() -> None:
    for given in ("s3cret", "env:", "env:a-b", "file:", "keyring:service"):
        with pytest.raises(BadInput) as caught:
            values(api_token=given)
        assert str(caught.value).startswith("parameter api_token: a secret is given by reference")
        assert given not in str(caught.value).replace("env:NAME, file:PATH or keyring:", "")
    for given in ("env:CLOUD_KEY", "file:/run/secrets/key", "keyring:cloud/me", ""):
        assert values(api_token=given) == {"api_token": given}


def test_a_text_whose_name_says_secret_is_one_and_a_number_is_none() -> None:
    declarations = 'db_password = ""\ntoken_count = 0\nkey = ""'
    assert [one.secret for one in declared(declarations)] == [True, False, False]


def test_an_unknown_runbook_names_the_nearest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    notebook(tmp_path / "runbooks" / "stuck_leases.ipynb")
    with pytest.raises(BadInput, match=r"no runbook stuck_lease: did you mean stuck_leases\?"):
        find("stuck_lease")


def test_runbooks_here_come_before_the_carried_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    notebook(tmp_path / "runbooks" / "mine.ipynb")
    notebook(tmp_path / "runbooks" / "backlog.ipynb")
    questions = {one.name: one.question for one in listed()}
    assert questions["mine"] == questions["backlog"] == "Is <i>it</i> **so**?"
    assert find("backlog").path == Path("runbooks/backlog.ipynb")


def test_a_runbook_here_hides_none_that_is_carried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    notebook(tmp_path / "runbooks" / "mine.ipynb")
    assert {"mine", "stuck_leases"} <= {one.name for one in listed()}
    assert find("stuck_leases").path.is_absolute()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cells": 1}', "not json", '{"cells": [1]}'])
def test_a_file_that_is_no_notebook_is_bad_input(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.ipynb"
    path.write_text(text, "utf-8")
    with pytest.raises(BadInput, match="no notebook"):
        find(path)


def test_a_missing_file_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no runbook at"):
        find(tmp_path / "x.ipynb")
