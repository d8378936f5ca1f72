"""A folder of one's own: laid, brought up to date, and never at the cost of an edit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tallybook import settings
from tallybook.book import Book
from tallybook.cli.main import main
from tallybook.layout import carried, is_book
from tallybook.runbook import laying, listed, shape, trial
from tallybook.runbook.laying import LAID, SETTINGS, lay
from tallybook.runbook.making import make

REPLACED = "runbooks/backlog.ipynb"


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "mine"


def as_of_another_version(root: Path, name: str, text: bytes = b"older") -> None:
    """As if an earlier version had laid ``text`` there."""
    told = json.loads((root / LAID).read_bytes())
    told["files"][name] = laying._hash(text)
    (root / LAID).write_text(json.dumps(told))
    (root / name).write_bytes(text)


def test_init_lays_all_that_is_carried_and_makes_a_book(
    mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", str(mine), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert set(told["files"].values()) == {"laid"} and is_book(mine / "book")
    for folder in ("notebooks", "runbooks"):
        laid = {path.name for path in (mine / folder).iterdir()}
        assert laid == {path.name for path in carried(folder).iterdir()}
    assert (mine / REPLACED).stat().st_mode & 0o777 == 0o600


def test_the_settings_that_are_laid_are_all_there_are_and_change_nothing(mine: Path) -> None:
    lay(mine)
    assert settings.load(mine / SETTINGS) == settings.Settings()
    text = (mine / SETTINGS).read_text()
    uncommented = text.replace("# ", "").replace("#", "").partition("[node]")
    (mine / SETTINGS).write_text(uncommented[1] + uncommented[2])
    assert set(settings.load(mine / SETTINGS).topics) == {"NAME"}
    assert text.count(" = ") == sum(
        len(kind.__dataclass_fields__) for kind in laying.TABLES.values()
    )


def test_again_nothing_is_changed(mine: Path) -> None:
    lay(mine)
    before = {path: path.stat().st_mtime_ns for path in mine.rglob("*.ipynb")}
    assert set(lay(mine).files.values()) == {"same"}
    assert before == {path: path.stat().st_mtime_ns for path in mine.rglob("*.ipynb")}


def test_what_was_not_touched_is_brought_up_to_date(mine: Path) -> None:
    lay(mine)
    as_of_another_version(mine, REPLACED)
    assert lay(mine).those("updated") == [REPLACED]
    assert (mine / REPLACED).read_bytes() == (carried("runbooks") / "backlog.ipynb").read_bytes()


def test_what_was_edited_is_left_and_named_as_often_as_it_is_asked(
    mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lay(mine)
    as_of_another_version(mine, REPLACED)
    (mine / REPLACED).write_text("mine")
    for _ in range(2):
        assert main(["init", str(mine)]) == 0
        told = capsys.readouterr().out
        assert f"you edited it, and it is left so: {mine / REPLACED}; this version has it" in told
    assert (mine / REPLACED).read_text() == "mine"


def test_what_was_taken_away_is_not_brought_back(mine: Path) -> None:
    lay(mine)
    (mine / REPLACED).unlink()
    assert lay(mine).those("removed") == lay(mine).those("removed") == [REPLACED]


def test_a_file_that_was_there_before_is_not_overwritten(mine: Path) -> None:
    (mine / "runbooks").mkdir(parents=True)
    (mine / REPLACED).write_text("mine")
    assert lay(mine).those("edited") == [REPLACED]
    assert (mine / REPLACED).read_text() == "mine"


def test_a_folder_that_cannot_be_used_is_bad_input(
    mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine.write_text("a file")
    (mine.parent / "book" / "log").mkdir(parents=True)
    (mine.parent / "spoiled").mkdir()
    (mine.parent / "spoiled" / LAID).write_text("[]")
    for name in ("mine", "book", "spoiled", "mine/below"):
        assert main(["init", name]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_in_the_folder_its_book_and_its_runbooks_are_found(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["init", str(mine)]) == 0
    monkeypatch.chdir(mine)
    assert {str(one.path) for one in listed()} == {
        str(path.relative_to(mine)) for path in mine.glob("runbooks/*.ipynb")
    }
    with Book.open("book") as book:
        book.enqueue("a.b", {})
    assert "drains_slowly" in trial("backlog").found


# runbook new


def test_a_new_runbook_has_the_shape_and_runs(
    mine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runbook", "new", "late_orders", "--json"]) == 0
    path = Path(json.loads(capsys.readouterr().out)["path"])
    assert path == Path("runbooks/late_orders.ipynb") and shape.faults(path) == []
    with Book.open("book") as book:
        job_id = book.enqueue("a.b", {}).job_id
    assert trial("late_orders").found == {"jobs_have_not_ended": (job_id,)}
    Path("runbooks/runbooks.toml").write_text("[late_orders]\nopen_jobs = 1\n")
    assert trial("late_orders").found == {}


def test_a_name_that_is_taken_or_is_none_is_refused(
    mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make("mine")
    for name, said in (("mine", "is there already"), ("../x", "no name"), ("A", "no name")):
        assert main(["runbook", "new", name]) == 2
        assert said in capsys.readouterr().err
