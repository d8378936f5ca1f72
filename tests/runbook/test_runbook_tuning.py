"""runbooks.toml: typed thresholds, each of which moves a finding; what is wrong names its line."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import runbook_worlds as worlds

from tallybook import ops
from tallybook.cli.main import main
from tallybook.errors import BadInput
from tallybook.layout import carried
from tallybook.ops.thresholds import DEFAULTS
from tallybook.runbook import own_thresholds, thresholds, trial
from tallybook.runbook.limits import Limits
from tallybook.runbook.settings import load
from tallybook.runbook.tuning import FILE, place

ROOT = Path(__file__).parents[2]
ALL = [(table.name, one.name) for table in fields(DEFAULTS)
       for one in fields(getattr(DEFAULTS, table.name))]  # fmt: skip


def default(table: str, name: str) -> Any:
    return getattr(getattr(DEFAULTS, table), name)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TALLYBOOK_RUNBOOK", raising=False)
    return tmp_path / FILE


# the file


def test_the_carried_file_has_each_threshold_with_its_default() -> None:
    path = carried("runbooks") / FILE
    assert (thresholds(path), load(path).runs) == (DEFAULTS, Limits())
    told = re.findall(r"^(\w+) = ", path.read_text().partition("[throughput")[2], re.MULTILINE)
    assert told == [name for _, name in ALL]


@pytest.mark.parametrize(("table", "name"), ALL)
def test_each_threshold_is_told_with_its_default(table: str, name: str) -> None:
    page = (ROOT / "docs" / "runbooks.md").read_text()
    rows = [row for row in page.splitlines() if row.startswith(f"| `{table}` ")]
    assert any(f"`{name}`" in row and f"`{default(table, name)}`" in row for row in rows)


def test_without_a_file_or_a_table_the_defaults_hold(here: Path) -> None:
    assert thresholds(here) == thresholds() == DEFAULTS
    here.write_text("[runs]\nkeep = 3\n[backlog]\ndrain_s = 5\n")
    assert thresholds() == replace(DEFAULTS, backlog=replace(DEFAULTS.backlog, drain_s=5.0))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\n[backlog]\n\ndrain_s = '1h'\n", "line 4: [backlog] drain_s: write a number, not '1h'"),
        ("[dead_letters]\njobs = 1.5\n", "line 2: [dead_letters] jobs: write a whole number"),
        ("[dead_letters]\njobs = true\n", "line 2: [dead_letters] jobs: write a whole number"),
        ("[backlog]\ndrains = 1\n", "line 2: [backlog] drains: no such setting; did you mean"),
        ("[backlog]\ndrain_s = -1\n", "line 2: [backlog] drain_s: -1 is not in 0 to 1e+12"),
        ("[backlog]\ndrain_s = inf\n", "line 2: [backlog] drain_s: inf is not in"),
        ("[backlog]\ndrain_s = nan\n", "line 2: [backlog] drain_s: nan is not in"),
        ("\n[backlogs]\n", "line 2: [backlogs]: no such table; did you mean backlog?"),
        ("backlog = 3\n", "line 1: [backlog]: backlog must be a table"),
        ("[backlog\n", "not valid TOML"),
        (b"\xff", "not valid TOML"),
    ],
)
def test_what_is_wrong_names_file_and_line(here: Path, text: str | bytes, said: str) -> None:
    here.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(BadInput) as raised:
        thresholds()
    assert str(here.name) in str(raised.value) and said in str(raised.value)


def test_a_run_with_a_wrong_threshold_ends_before_a_kernel_starts(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here.parent.joinpath("runbooks").mkdir()
    (here.parent / "runbooks" / FILE).write_text("[backlog]\ndrain_s = 'x'\n")
    (here.parent / "runbooks" / "backlog.ipynb").write_bytes(
        (carried("runbooks") / "backlog.ipynb").read_bytes()
    )
    assert main(["runbook", "run", "backlog", "--book", str(ROOT / "data-samples" / "book")]) == 2
    assert "runbooks.toml line 2: [backlog] drain_s" in capsys.readouterr().err
    assert not Path("tallybook-out").exists()


# thresholds of a runbook of one's own


def test_a_table_of_a_runbook_of_ones_own_is_read_by_its_defaults(here: Path) -> None:
    assert own_thresholds("mine", slow_s=5.0, name="x") == {"slow_s": 5.0, "name": "x"}
    here.write_text("[mine]\nslow_s = 2\n")
    assert own_thresholds("mine", slow_s=5.0, name="x") == {"slow_s": 2.0, "name": "x"}
    here.write_text("[mine]\nslow_s = 2\nname = 3\n")
    with pytest.raises(BadInput, match=r"line 3: \[mine\] name: write text in quotes, not 3"):
        own_thresholds("mine", slow_s=5.0, name="x")


def test_the_file_beside_a_notebook_counts_and_for_a_carried_one_that_of_this_folder(
    here: Path,
) -> None:
    mine, kept = here.parent / "mine" / "x.ipynb", carried("runbooks") / "backlog.ipynb"
    mine.parent.mkdir()
    assert place(mine) == place(kept) == carried("runbooks") / FILE
    here.touch()
    assert place(mine) == place(kept) == Path(FILE)
    mine.with_name(FILE).touch()
    assert (place(mine), place(kept)) == (mine.with_name(FILE), Path(FILE))


# what each is for

MOVED: list[tuple[Callable[[Path], object], str, dict[str, float], set[str], set[str]]] = [
    (worlds.clean, "throughput_latency", {"run_p95_s": 0.1}, set(), {"slow"}),
    (worlds.clean, "throughput_latency", {"wait_p95_s": 0.1}, set(), {"slow"}),
    (worlds.clean, "throughput_latency", {"total_p95_s": 0.1}, set(), {"slow"}),
    (worlds.dead_letters, "dead_letters", {"jobs": 3}, {"dead_letters"}, set()),
    (worlds.dead_letters, "dead_letters", {"came_back": 2}, {"came_back"}, set()),
    (worlds.backlog, "backlog", {"oldest_due_s": 0}, {"waits_long"}, set()),
    (worlds.backlog, "backlog", {"drain_s": 1e-9}, set(), {"drains_slowly"}),
    (worlds.settings_review, "settings_review", {"over_share": 0.5}, {"unsafe_setting"}, set()),
    (worlds.log_health, "log_health", {"clock_s": 90_000}, {"clock_set"}, set()),
    (worlds.clean, "log_health", {"unkept_events": 9}, set(), {"unkept"}),
    (worlds.clean, "log_health", {"segment_mb": 0.001}, set(), {"large_segment"}),
]


@pytest.mark.parametrize(
    ("build", "name", "given", "gone", "new"),
    MOVED,
    ids=[f"{name}-{next(iter(given))}" for _, name, given, *_ in MOVED],
)
def test_a_threshold_moves_its_finding_and_no_other(
    build: Callable[[Path], object],
    name: str,
    given: dict[str, float],
    gone: set[str],
    new: set[str],
    tmp_path: Path,
) -> None:
    build(tmp_path)
    usual = getattr(DEFAULTS, name)
    with ops.open(tmp_path) as warehouse:
        judge = getattr(ops.findings, name)
        before, after = (
            {one.kind for one in judge(warehouse, thresholds=these) if one.kind != "clean"}
            for these in (usual, replace(usual, **given))
        )
    assert (before - after, after - before) == (gone, new)


def test_a_lease_is_borne_that_is_overdue_for_less(tmp_path: Path) -> None:
    worlds.stuck_leases(tmp_path)
    counts = []
    for overdue_s in (0.0, 30.0, 90.0):
        with ops.open(tmp_path) as warehouse:
            borne = replace(DEFAULTS.stuck_leases, overdue_s=overdue_s)
            found = ops.findings.stuck_leases(warehouse, thresholds=borne)
        counts.append(len(next(one for one in found if one.kind == "stuck_lease").ids))
    assert counts == [3, 3, 2]


@pytest.mark.parametrize(
    ("given", "gone"),
    [
        ({"slower": 9.0}, {"slower"}),
        ({"least_jobs": 10_000}, {"slower", "more_failures"}),
    ],
)
def test_the_weeks_are_compared_as_the_thresholds_say(
    given: dict[str, float], gone: set[str], tmp_path: Path
) -> None:
    worlds.weekly_review(tmp_path)
    usual = DEFAULTS.weekly_review
    with ops.open(tmp_path) as warehouse:
        spans = ops.weeks.periods(warehouse)
        before, after = (
            {one.kind for one in ops.findings.weekly_review(warehouse, *spans, these)}
            for these in (usual, replace(usual, **given))
        )
    assert before - after == gone


def test_fewer_jobs_and_more_failures_than_before_are_found_by_their_factors(
    tmp_path: Path,
) -> None:
    world = worlds.World(tmp_path)
    for number in range(300):
        world.done(world.end - 10 * worlds.DAY + number)
    for number in range(2):
        world.died(world.end - 9 * worlds.DAY + number, "X")
    for number in range(3):
        world.died(world.end - 9_000 + number, "X")
    with ops.open(tmp_path) as warehouse:
        spans = ops.weeks.periods(warehouse)
        kinds = []
        for factor in (1.5, 20.0):
            asked = replace(DEFAULTS.weekly_review, more_failures=factor, fewer_jobs=1 / factor)
            found = ops.findings.weekly_review(warehouse, *spans, asked)
            kinds.append({one.kind for one in found} & {"fewer_jobs", "more_failures"})
    assert kinds == [{"fewer_jobs", "more_failures"}, set()]


def test_a_notebook_reads_the_file_beside_it(here: Path) -> None:
    worlds.dead_letters(here.parent / "book")
    here.write_text("[dead_letters]\njobs = 3\ncame_back = 9\n")
    found = trial("dead_letters", book=str(here.parent / "book"))
    assert (found.answer.status, found.found) == ("clean", {})
    assert found.answer.findings[0]["title"] == "No job in the dead letters, 6 dead letters borne"
