"""What a parameters cell declares, and how given texts become values of its types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from runbook_notebooks import PARAMETERS, notebook

from tallybook.errors import BadInput
from tallybook.runbook import find, listed
from tallybook.runbook.parameters import Parameter, declared, typed


def values(**given: str) -> dict[str, Any]:
    return typed(declared(PARAMETERS), given)


def test_a_cell_declares_names_defaults_and_meanings() -> None:
    first, second, *_ = declared(PARAMETERS)
    assert first == Parameter("book", "", "the book")
    assert second == Parameter("n", 3, "how many")


def test_a_hash_inside_a_text_is_no_comment() -> None:
    assert declared('a = "#1"  # the colour #1') == (Parameter("a", "#1", "the colour #1"),)


@pytest.mark.parametrize("text", ["007", "1e5", "null", "true", "", " x ", "a=b", '"', "ü{}\n"])
def test_text_stays_the_text_that_was_typed(text: str) -> None:
    assert values(name=text) == {"name": text}


def test_text_stays_text_where_the_default_is_none() -> None:
    assert typed(declared("as_of = None"), {"as_of": "2026"}) == {"as_of": "2026"}


def test_numbers_and_flags_are_read_by_the_type_of_their_default() -> None:
    assert values(n="-12", rate="1e-3", dry_run="False") == {
        "n": -12,
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


def test_a_secret_is_hidden_where_it_is_shown() -> None:
    assert Parameter("api_token", "").shown("s3cret") == "***"
    assert Parameter("token_count", 0).shown(0) == 0
    assert Parameter("key", "").shown("id") == "id"


def test_an_unknown_runbook_names_the_nearest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    notebook(tmp_path / "runbooks" / "stuck_leases.ipynb")
    with pytest.raises(BadInput, match=r"no runbook stuck_lease in .*did you mean stuck_leases\?"):
        find("stuck_lease")


def test_runbooks_here_come_before_the_carried_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    notebook(tmp_path / "runbooks" / "mine.ipynb")
    assert [(one.name, one.question) for one in listed()] == [("mine", "Is <i>it</i> **so**?")]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cells": 1}', "not json", '{"cells": [1]}'])
def test_a_file_that_is_no_notebook_is_bad_input(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.ipynb"
    path.write_text(text, "utf-8")
    with pytest.raises(BadInput, match="no notebook"):
        find(path)


def test_a_missing_file_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no runbook at"):
        find(tmp_path / "x.ipynb")
