"""The schedule at work: missed times, deadlines, kills, a clock that is set, several entries."""

from __future__ import annotations

import os
import signal
from datetime import UTC, datetime
from pathlib import Path

import pytest
from schedule_steps import Told, answer, entry, schedule, settled, until

from tallybook.errors import BadInput
from tallybook.runbook.schedule import diary
from tallybook.testing import FakeClock

HOUR = 3600


@pytest.fixture
def told() -> Told:
    """What the schedule says."""
    return Told()


def test_an_entry_runs_at_its_time_and_once(tmp_path: Path, clock: FakeClock, told: Told) -> None:
    made = schedule(tmp_path, entry(), clock=clock, told=told)
    clock.advance(2 * HOUR - 1)
    settled(made)
    assert told.lines == ["opened"]
    clock.advance(1)
    settled(made)
    settled(made)
    assert told.lines == ["opened", "night begun 02:00", "night clean"]


def test_it_sleeps_until_the_next_time_but_notices_a_clock_that_is_set(
    tmp_path: Path, clock: FakeClock
) -> None:
    made = schedule(tmp_path, entry(), clock=clock)
    assert made.look() == 30
    clock.advance(2 * HOUR - 7)
    assert made.look() == pytest.approx(7)


def test_what_the_run_said_is_handed_on(tmp_path: Path, clock: FakeClock, told: Told) -> None:
    found = [{"severity": "problem", "title": "stuck"}]
    shell = answer("findings", 1, report="r/report.html", findings=found)
    made = schedule(tmp_path, entry(), does=shell, clock=clock, told=told)
    clock.advance(2 * HOUR)
    settled(made)
    (outcome,) = told.outcomes
    assert (outcome.status, outcome.exit_code, outcome.report) == ("findings", 1, "r/report.html")
    assert list(outcome.findings) == found


@pytest.mark.parametrize(
    ("shell", "status", "message"),
    [
        ("echo 'tallybook: no runbook nigth' >&2; exit 2", "bad_input", "no runbook nigth"),
        ("exit 3", "failed", "the run ended with code 3"),
        ('echo \'{"status": "cle\'; exit 0', "failed", "the run ended with code 0"),
    ],
)
def test_a_run_without_an_answer_is_no_clean_run(
    tmp_path: Path, clock: FakeClock, told: Told, shell: str, status: str, message: str
) -> None:
    made = schedule(tmp_path, entry(), does=shell, clock=clock, told=told)
    clock.advance(2 * HOUR)
    settled(made)
    assert (told.outcomes[0].status, told.outcomes[0].message) == (status, message)


@pytest.mark.parametrize(
    ("missed", "lines"),
    [
        ("skip", ["night missed 3 left out, 0 late"]),
        ("once", ["night missed 2 left out, 1 late", "night begun 02:00", "night clean"]),
        (
            "all",
            ["night missed 0 left out, 3 late", *["night begun 02:00", "night clean"] * 3],
        ),
    ],
)
def test_times_missed_while_no_schedule_ran_go_by_the_rule_of_the_entry(
    tmp_path: Path, clock: FakeClock, told: Told, missed: str, lines: list[str]
) -> None:
    night = entry(missed=missed)
    schedule(tmp_path, night, clock=clock)
    clock.advance(3 * 24 * HOUR)
    settled(schedule(tmp_path, night, clock=clock, told=told))
    assert told.lines == ["opened", *lines]


def test_a_time_that_is_some_seconds_late_is_on_time(
    tmp_path: Path, clock: FakeClock, told: Told
) -> None:
    made = schedule(tmp_path, entry(missed="skip"), clock=clock, told=told)
    clock.advance(2 * HOUR + 59)
    settled(made)
    assert told.lines == ["opened", "night begun 02:00", "night clean"]


def test_after_years_of_missed_minutes_the_newest_hundred_are_run(
    tmp_path: Path, clock: FakeClock, told: Told
) -> None:
    minutely = entry(cron="* * * * *", missed="all")
    schedule(tmp_path, minutely, clock=clock)
    clock.advance(1000 * 24 * HOUR)
    made = schedule(tmp_path, minutely, clock=clock, told=told)
    made.look()
    page = made.diary.pages["night"]
    assert told["missed"] == ["night missed 0 left out, 98 late"]
    assert len(page.waiting) == 99 and page.waiting[-1] == clock.moment().now
    made.stop(kill=True)
    until(made, lambda: not made.is_busy())


def test_nothing_is_missed_by_an_entry_that_is_new_or_got_another_time(
    tmp_path: Path, clock: FakeClock, told: Told
) -> None:
    schedule(tmp_path, entry(), clock=clock)
    clock.advance(24 * HOUR)
    other = entry(cron="0 3 * * *")
    settled(schedule(tmp_path, other, entry("new"), clock=clock, told=told))
    assert told.lines == ["opened"]


def test_the_clock_set_back_runs_nothing_twice(
    tmp_path: Path, clock: FakeClock, told: Told
) -> None:
    made = schedule(tmp_path, entry(), clock=clock, told=told)
    clock.advance(2 * HOUR)
    settled(made)
    clock.jump(-HOUR)
    settled(made)
    clock.advance(HOUR)
    settled(made)
    assert told["begun"] == ["night begun 02:00"]


def test_a_clock_that_was_years_ahead_does_not_stop_the_schedule_for_years(
    tmp_path: Path, clock: FakeClock, told: Told
) -> None:
    clock.jump(5 * 366 * 24 * HOUR)
    made = schedule(tmp_path, entry(), clock=clock, told=told)
    made.look()
    clock.jump(-5 * 366 * 24 * HOUR)
    made.look()
    clock.advance(2 * HOUR)
    settled(made)
    assert told["begun"] == ["night begun 02:00"]


def test_the_clock_set_forward_over_a_time_is_a_missed_time(
    tmp_path: Path, clock: FakeClock, told: Told
) -> None:
    made = schedule(tmp_path, entry(), clock=clock, told=told)
    made.look()
    clock.jump(5 * HOUR)
    settled(made)
    assert told.lines[1:] == ["night missed 0 left out, 1 late", "night begun 02:00", "night clean"]


@pytest.mark.parametrize(
    ("day", "begun"),
    [("2026-03-29", "night begun 01:00"), ("2026-10-25", "night begun 00:30")],
)
def test_on_the_days_of_23_and_25_hours_it_runs_once(
    tmp_path: Path, told: Told, day: str, begun: str
) -> None:
    berlin = entry(cron="30 2 * * *", zone="Europe/Berlin")
    clock = FakeClock(datetime.fromisoformat(day).replace(tzinfo=UTC))
    clock.jump(-2 * HOUR)
    made = schedule(tmp_path, berlin, clock=clock, told=told)
    for _ in range(25 * 4):
        clock.advance(HOUR / 4)
        settled(made)
    assert told["begun"] == [begun]


def test_a_time_that_comes_while_its_run_is_at_work_waits_for_it(
    tmp_path: Path, clock: FakeClock, told: Told
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    made = schedule(
        tmp_path / "s",
        entry(cron="0 * * * *", deadline_s=10 * HOUR),
        does=f"cat {gate}; {answer()}",
        clock=clock,
        told=told,
    )
    for _ in range(3):
        clock.advance(HOUR)
        made.look()
    assert told["begun"] == ["night begun 01:00"]
    assert told["missed"] == ["night missed 1 left out, 0 late"]
    gate.write_text("")
    until(made, lambda: len(told["clean"]) == 1)
    gate.write_text("")
    settled(made)
    assert told["begun"] == ["night begun 01:00", "night begun 03:00"]


def test_no_more_runs_at_a_time_than_asked_for_and_the_longest_due_first(
    tmp_path: Path, clock: FakeClock, told: Told
) -> None:
    plan = [entry("b", "0 2 * * *"), entry("a", "59 1 * * *"), entry("c", "0 2 * * *")]
    made = schedule(tmp_path, *plan, clock=clock, told=told, parallel=1)
    clock.advance(2 * HOUR)
    settled(made)
    assert told.lines[1:] == [
        f"{name} {what}"
        for name, at in (("a", "01:59"), ("b", "02:00"), ("c", "02:00"))
        for what in (f"begun {at}", "clean")
    ]


SLOW = "trap 'exit 130' INT; for _ in $(seq 6000); do sleep 0.01; done"
DEAF = "trap '' INT; for _ in $(seq 6000); do sleep 0.01; done"


@pytest.mark.parametrize("shell", [SLOW, DEAF])
def test_a_run_over_its_deadline_is_told_to_stop_and_killed_if_it_does_not(
    tmp_path: Path, clock: FakeClock, told: Told, shell: str
) -> None:
    made = schedule(tmp_path, entry(deadline_s=60), does=shell, clock=clock, told=told)
    clock.advance(2 * HOUR)
    made.look()
    clock.advance(60)
    assert made.look() == pytest.approx(15), "the run ends by itself, with a report"
    clock.advance(16)
    made.look()
    clock.advance(16 if shell == DEAF else 0)
    until(made, lambda: not made.is_busy())
    assert told.lines[1:] == ["night begun 02:00", "night deadline"]
    assert told.outcomes[0].exit_code == 3 and "deadline_s = 60" in told.outcomes[0].message


def test_setting_the_clock_ends_no_run_before_its_deadline(
    tmp_path: Path, clock: FakeClock, told: Told
) -> None:
    made = schedule(tmp_path, entry(deadline_s=60), does=SLOW, clock=clock, told=told)
    clock.advance(2 * HOUR)
    made.look()
    clock.jump(12 * HOUR)
    made.look()
    assert made.is_busy()
    made.stop(kill=True)
    until(made, lambda: not made.is_busy())


def test_a_run_that_outlived_its_killed_schedule_is_found_and_its_answer_read(
    tmp_path: Path, clock: FakeClock, told: Told
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    shell = f"cat {gate}; {answer('findings', 1)}"
    first = schedule(tmp_path / "s", entry(), does=shell, clock=clock)
    clock.advance(2 * HOUR)
    first.look()
    second = schedule(tmp_path / "s", entry(), does=shell, clock=clock, told=told)
    assert second.look() <= 1 and second.is_busy()
    gate.write_text("")
    settled(second)
    assert told.lines == ["opened", "night findings"]


@pytest.mark.parametrize(
    ("missed", "lines"),
    [
        ("skip", ["night interrupted", "night missed 1 left out, 0 late"]),
        (
            "once",
            [
                "night interrupted",
                "night missed 0 left out, 1 late",
                "night begun 02:00",
                "night clean",
            ],
        ),
    ],
)
def test_a_run_that_died_with_its_schedule_is_run_again_unless_missed_is_skip(
    tmp_path: Path, clock: FakeClock, told: Told, missed: str, lines: list[str]
) -> None:
    first = schedule(tmp_path, entry(missed=missed), does=SLOW, clock=clock)
    clock.advance(2 * HOUR)
    first.look()
    os.killpg(first.diary.pages["night"].running.pid, signal.SIGKILL)  # type: ignore[union-attr]
    second = schedule(tmp_path, entry(missed=missed), clock=clock, told=told)
    until(second, lambda: bool(told["interrupted"]))
    settled(second)
    assert told.lines == ["opened", *lines]


def test_a_run_that_always_takes_the_schedule_with_it_is_given_up_after_three_tries(
    tmp_path: Path, clock: FakeClock, told: Told
) -> None:
    schedule(tmp_path, entry(), clock=clock)
    clock.advance(2 * HOUR)
    for n in range(4):
        made = schedule(tmp_path, entry(), does=SLOW, clock=clock, told=told)
        until(made, lambda n=n: len(told["interrupted"]) == n)  # type: ignore[misc]
        made.look()
        if (running := made.diary.pages["night"].running) is not None:
            os.killpg(running.pid, signal.SIGKILL)
    assert len(told["begun"]) == 3
    assert told["missed"][-1] == "night missed 1 left out, 0 late"


def test_a_run_that_is_killed_under_a_living_schedule_has_failed(
    tmp_path: Path, clock: FakeClock, told: Told
) -> None:
    made = schedule(tmp_path, entry(), does="kill -9 $$", clock=clock, told=told)
    clock.advance(2 * HOUR)
    settled(made)
    assert told.lines[1:] == ["night begun 02:00", "night failed"]
    assert told.outcomes[0].message == "the run was killed by signal 9"


def test_a_run_is_in_the_diary_before_it_begins(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = schedule(tmp_path, entry(), clock=clock)
    begin, seen = made.runs.begin, []

    def noted(name: str, command: list[str], environment: dict[str, str]) -> int:
        seen.append(diary.read(tmp_path / diary.FILE).pages[name])
        return begin(name, command, environment)

    monkeypatch.setattr(made.runs, "begin", noted)
    clock.advance(2 * HOUR)
    settled(made)
    (page,) = seen
    assert page.running is not None and page.waiting == ()
    assert page.running.due_at == datetime(2026, 6, 1, 2, tzinfo=UTC)


def test_told_to_stop_it_begins_nothing_and_waits_for_its_runs(
    tmp_path: Path, clock: FakeClock, told: Told
) -> None:
    shell = (
        "trap 'exit 130' INT; touch "
        + str(tmp_path / "on")
        + "; for _ in $(seq 6000); do sleep 0.01; done"
    )
    plan = [entry("a"), entry("b", "1 2 * * *")]
    made = schedule(tmp_path / "s", *plan, does=shell, clock=clock, told=told)
    clock.advance(2 * HOUR)
    until(made, (tmp_path / "on").exists)
    made.stop()
    clock.advance(61)
    until(made, lambda: not made.is_busy())
    assert told["begun"] == ["a begun 02:00"] and told["interrupted"] == ["a interrupted"]
    assert made.diary.pages["a"].waiting, "it is run at the next start"


def test_a_damaged_diary_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / diary.FILE).write_text("{}", "utf-8")
    with pytest.raises(BadInput, match=r"diary.json: not readable; remove it"):
        schedule(tmp_path, entry())


def test_a_diary_is_replaced_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    monkeypatch.setattr(
        os, "fsync", lambda fd: order.append(str(Path(f"/proc/self/fd/{fd}").readlink()))
    )
    diary.write(tmp_path / diary.FILE, diary.Diary())
    assert [Path(one).name for one in order] == [".diary.json.partial", tmp_path.name]
    assert diary.read(tmp_path / diary.FILE) == diary.Diary()
