"""``tallybook reconcile`` beside a log and ``tallybook plan``: exit codes, JSON, files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from plan_worlds import World

from tallybook.cli.main import main


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A closed book with three differences, and the export."""
    world = World(tmp_path_factory.mktemp("world"), 0)
    world.answers["dead"] = ["refused"]
    for key in ("dead", "changed"):
        world.write(key, 1)
    world.deliver()
    world.tamper("changed", 7)
    world.tamper("added", 5)
    export = world.export("cloud")
    world.book.close()
    return world.root / "book", export


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = main([str(word) for word in words])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def told(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, dict[str, Any]]:
    code, shown, _ = run(capsys, *words, "--json")
    return code, json.loads(shown)


def test_causes_are_told_in_json_text_and_files(
    template: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    book, export = template
    asked = ("reconcile", export, "--key", "id", "--book", book, "--explain")
    code, found = told(capsys, *asked, "--out", tmp_path, "--format", "ndjson")
    assert (code, found["causes"]) == (1, {"dead": 1, "changed_in_cloud": 1, "added_in_cloud": 1})
    assert {row["key"]: row["cause"] for row in found["explained"]} == {
        "dead": "dead", "changed": "changed_in_cloud", "added": "added_in_cloud",
    }  # fmt: skip
    assert (found["more"], found["covers"], found["verified_through"]) == (False, [], None)
    kept = [json.loads(line) for line in (tmp_path / "explained.ndjson").read_text().splitlines()]
    assert len(kept) == 3
    assert "say it with --covers" in run(capsys, *asked)[1]
    code, shown, _ = run(capsys, *asked, "--covers", "2026-03-01T13:00:00Z")
    assert code == 1 and "after 1 attempt: HTTP 413 too large" in shown
    assert "say it with --covers" not in shown
    assert "was not measured" in shown and "deliveries take up to" in shown


def test_rows_in_flight_alone_are_exit_0_and_a_second_look_waits_for_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World(tmp_path, 0)
    world.write("b", 1)
    export = world.export("cloud")
    asked = ("reconcile", export, "--key", "id", "--book", world.root / "book")
    out = tmp_path / "out"
    flying = (*asked, "--in-flight-max", "365d", "--out", out)
    code, found = told(capsys, *flying, "--again", "100ms", "--covers", world.covers)
    assert (code, found["statuses"]["in_flight_local"], found["stopped_by"]) == (
        0, 1, found["run"],
    )  # fmt: skip
    assert len((out / "reconciliations.ndjson").read_text().splitlines()) == 1
    world.deliver()
    world.export("cloud")
    code, found = told(capsys, *flying, "--covers", world.covers)
    assert (code, found["second_look"]) == (0, {"match": 1, "differs": 0, "in_flight": 0})
    assert found["verified_through"] == world.covers


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--in-flight-max", "soon"], "--in-flight-max 'soon': write it like 30s, 5m, 1h or 2d"),
        (["--in-flight-max", "auto"], "--in-flight-max 'auto'"),
        (["--covers", "never"], "--covers 'never' is no version"),
        (["--plan", "newest"], "--plan newest: choose one of last-write-wins"),
        (["--plan", "server", "--local", "x.csv"], "--plan asks the log of a book"),
        (["--plan", "server", "--local", "x.csv", "--explain"], "leave --local out"),
        (["--again", "--local", "x.csv"], "--again asks the log of a book"),
        (["--again", "later"], "--again 'later'"),
    ],
)
def test_what_cannot_be_asked_is_one_line_and_exit_2(
    template: tuple[Path, Path],
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    words: str,
) -> None:
    book, export = template
    code, shown, said = run(capsys, "reconcile", export, "--key", "id", "--book", book, *options)
    assert (code, shown) == (2, "") and words in said and said.count("\n") == 1


def test_a_plan_is_made_shown_applied_and_undone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World(tmp_path, 0)
    world.write("changed", 1)
    world.deliver()
    world.tamper("changed", 7)
    world.tamper("added", 5)
    export, book = world.export("cloud"), world.root / "book"
    code, made = told(
        capsys, "reconcile", export, "--key", "id", "--book", book, "--plan", "server"
    )
    assert (code, made["actions"]) == (1, {"take_export": 2})
    path = Path(made["plan"])
    assert path.parent == book / "plans" and path.stat().st_mode & 0o777 == 0o600
    code, shown = told(capsys, "plan", "show", path)
    assert (code, shown["counts"], len(shown["actions"])) == (0, {"take_export": 2}, 2)
    code, text, _ = run(capsys, "plan", "show", path, "--limit", "1")
    assert code == 0 and "and 1 more: see --limit" in text and "policy server" in text
    code, applied = told(capsys, "plan", "apply", path, "--book", book, "--dry-run")
    assert (code, applied["done"], applied["dry_run"]) == (0, {"take_export": 2}, True)
    code, text, _ = run(capsys, "plan", "apply", path, "--book", book)
    assert code == 0 and text.startswith("2 take_export done\nundo file ")
    assert run(capsys, "plan", "apply", path, "--book", book)[1] == (
        "nothing done\n2 were done before\n"
    )
    assert run(capsys, "reconcile", export, "--key", "id", "--book", book)[0] == 0
    world.book.put_entry("added", {"id": "added", "x": 6, "y": "same"})
    code, text, _ = run(capsys, "plan", "undo", path, "--book", book)
    assert code == 1
    assert text == "1 take_export taken back\npassed over: added: its entry was written since\n"
    code, shown, said = run(capsys, "plan", "apply", path, "--book", book)
    assert (code, shown) == (2, "") and "was undone" in said


@pytest.mark.parametrize("words", [["show"], ["apply"], ["undo"]])
def test_a_plan_that_is_none_is_exit_2(
    template: tuple[Path, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
) -> None:
    (tmp_path / "plan").write_text('{"plan": 7}\n')
    book = [] if words == ["show"] else ["--book", template[0]]
    code, shown, said = run(capsys, "plan", *words, tmp_path / "plan", *book)
    assert (code, shown) == (2, "") and "line 1 has" in said
