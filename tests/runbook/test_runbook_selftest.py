"""Each runbook finds exactly the faults planted in its book, and none in a clean one."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
import runbook_worlds as worlds
from runbook_worlds import FAULTS, Expected

from tallybook.book import Book, Selection
from tallybook.cli.main import main
from tallybook.errors import BadInput, TallybookError
from tallybook.recover import acting
from tallybook.recover.acting import Acted
from tallybook.runbook import Trial, trial
from tallybook.worker.sign import Sign

RUNBOOKS = Path(__file__).parents[2] / "runbooks"
NAMES = sorted({name for name, _ in FAULTS})
SAID = ("clean", "covered", "rebuilt", "not_compared")
"""Notes that say that all is well, or what was looked at."""


def asked(name: str, book: Path, **parameters: object) -> Trial:
    return trial(RUNBOOKS / f"{name}.ipynb", book=str(book), **parameters)


def told(tried: Trial) -> Expected:
    found = tried.answer.findings
    return [(one["kind"], tuple(one["ids"])) for one in found if one["kind"] not in SAID]


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    book = tmp_path_factory.mktemp("clean") / "book"
    worlds.clean(book)
    return book


@pytest.mark.parametrize(
    ("name", "plant"), FAULTS, ids=[f"{name}-{plant.__name__}" for name, plant in FAULTS]
)
def test_a_runbook_finds_exactly_what_was_planted(
    name: str, plant: Callable[[Path], Expected], tmp_path: Path
) -> None:
    planted = plant(tmp_path / "book")
    assert sorted(told(asked(name, tmp_path / "book"))) == sorted(planted)


@pytest.mark.parametrize("name", NAMES)
def test_a_runbook_finds_nothing_in_a_clean_book_and_says_that_it_could_have(
    name: str, clean: Path
) -> None:
    tried = asked(name, clean)
    assert (told(tried), tried.answer.status) == ([], "clean")
    assert tried.answer.seen and tried.answer.seen["could_find"]
    (note,) = [one for one in tried.answer.findings if one["kind"] == "covered"]
    assert "every part of the log is there and was read" in note["title"]


def test_every_runbook_but_reconcile_has_a_book_with_faults() -> None:
    assert {path.stem for path in RUNBOOKS.glob("*.ipynb")} - set(NAMES) == {"reconcile"}


# acts


def digests(book: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in book.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["dead_letters", "stuck_leases", "cache_rebuild"])
def test_a_dry_run_changes_nothing_in_the_book(name: str, tmp_path: Path) -> None:
    book = tmp_path / "book"
    dict(FAULTS)[name](book)
    before = digests(book)
    asked(name, book)
    assert digests(book) == before


def test_dead_letters_are_requeued_by_choice_and_the_rest_is_left(tmp_path: Path) -> None:
    planted = worlds.dead_letters(tmp_path / "book")
    looked = asked("dead_letters", tmp_path / "book", error="503")
    acted = asked("dead_letters", tmp_path / "book", error="503", dry_run=False)
    assert looked.shown["act"].words == "3 jobs would be requeued; nothing was changed"
    assert acted.shown["act"].words == "3 jobs requeued"
    assert acted.shown["after"]["status"].to_list() == ["pending"] * 3
    assert acted.answer.status == "clean"
    assert sorted(told(asked("dead_letters", tmp_path / "book"))) == sorted(planted[1:])


def test_what_was_done_is_taken_back_by_the_command_that_is_shown(tmp_path: Path) -> None:
    book = tmp_path / "book"
    worlds.dead_letters(book)
    done = asked("dead_letters", book, action="discard", limit=2, dry_run=False)
    undo = shlex.split(done.shown["act"].undo)
    assert undo[:3] == ["tallybook", "jobs", "requeue"] and len(undo[3:-2]) == 2
    assert main(undo[1:]) == 0
    with Book.read(book) as opened:
        assert {opened.job(job_id).status for job_id in undo[3:-2]} == {"pending"}


def test_a_lease_whose_time_is_over_is_released_and_the_job_is_pending(tmp_path: Path) -> None:
    worlds.stuck_leases(tmp_path / "book")
    acted = asked("stuck_leases", tmp_path / "book", dry_run=False)
    (job_id,) = acted.shown["act"].changed
    assert acted.shown["after"].rows() == [(job_id, "pending", True)]
    assert "a lease is not given back" in acted.shown["act"].undo


def test_a_lease_of_a_worker_that_lives_is_not_released(tmp_path: Path) -> None:
    book = tmp_path / "book"
    worlds.stuck_leases(book)
    with Book.open(book, create=False) as opened:
        sign = Sign(opened, "w3", {})
        acted = asked("stuck_leases", book, dry_run=False)
        sign.remove()
    ((_, why),) = acted.shown["act"].passed_over
    assert (acted.shown["act"].changed, why) == ((), "its worker w3 lives: stop that first")


def test_a_run_fails_where_the_act_does_not_hold(tmp_path: Path) -> None:
    book = tmp_path / "book"
    worlds.dead_letters(book)
    with Book.read(book) as opened:
        (job,) = opened.selected(Selection(status="dead"), 1)
    never = Acted(book, "requeue", False, (job.job_id,), (), job.updated_at, (job.lease_token,))
    with pytest.raises(TallybookError, match=rf"1 job of .* not requeued: {job.job_id}"):
        acting.after(never)


def test_a_job_in_no_state_for_it_is_passed_over_with_the_reason(tmp_path: Path) -> None:
    book = tmp_path / "book"
    worlds.clean(book)
    acted = acting.act(book, "requeue", ["j0001", "nobody"], dry_run=False)
    assert acted.passed_over == (("j0001", "it is done"), ("nobody", "the book has no such job"))
    assert acting.after(acted).words == "Nothing was changed, so there is nothing to check."
    assert "nothing to take back" in acted.undo
    with pytest.raises(BadInput, match="no action 'resurrect': choose requeue, discard, release"):
        acting.act(book, "resurrect", [], dry_run=True)


# what there was to be found anything in


def test_a_window_without_jobs_says_that_nothing_could_have_been_found(clean: Path) -> None:
    tried = asked("throughput_latency", clean, since="2020-01-01", until="2020-01-02")
    (note,) = [one for one in tried.answer.findings if one["kind"] == "covered"]
    assert note["title"] == "Nothing could have been found: no job arrived in this window"
    assert tried.answer.seen and not tried.answer.seen["could_find"]


def test_what_was_seen_tells_of_lines_that_cannot_be_read(tmp_path: Path) -> None:
    worlds.log_with_a_hole(tmp_path / "book")
    seen = asked("stuck_leases", tmp_path / "book").answer.seen
    assert seen and (seen["unreadable"], seen["holes"]) == (1, 2)
    assert "the log has 1 unreadable line and 2 holes" in seen["words"]
