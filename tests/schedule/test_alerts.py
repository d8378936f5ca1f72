"""Alerts: what is told and what not, and an outbox that outlives targets and crashes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from alert_steps import CLEAN, FOUND, RULES, SLOW, STUCK, alerting, outcome, planned, run_ends
from schedule_steps import MIDNIGHT

from tallybook import clock as clocks
from tallybook.runbook.alerts import Alerting, Outbox, Postman, judging
from tallybook.runbook.alerts.judging import State
from tallybook.runbook.alerts.outbox import UNDELIVERED
from tallybook.runbook.schedule import Missed, Outcome
from tallybook.runbook.settings import Alerts
from tallybook.testing import FakeClock


def told(rules: Alerts, *outcomes: Outcome) -> list[str]:
    """What is told of the runs, one after the other."""
    state, lines = State(), []
    for one in outcomes:
        state, news = judging.of_run(state, rules, one)
        lines += [news.what] if news else []
    return lines


@pytest.mark.parametrize(
    ("rules", "runs", "lines"),
    [
        (RULES, [CLEAN, CLEAN], []),
        (RULES, [FOUND], ["1 problem"]),
        (RULES, [outcome("findings", SLOW)], []),
        (Alerts(("x",), findings="warning"), [FOUND], ["1 problem, 1 warning"]),
        (Alerts(("x",), findings="never"), [FOUND], []),
        (RULES, [outcome("findings", {**STUCK, "severity": "fatal"})], ["1 problem"]),
        (RULES, [outcome("failed")], ["failed (failed)"]),
        (RULES, [outcome("bad_input")], ["failed (bad_input)"]),
        (RULES, [outcome("incomplete", STUCK)], ["failed (incomplete)"]),
        (RULES, [outcome("deadline")], ["failed (deadline)"]),
        (Alerts(("x",), failure=False), [outcome("failed")], []),
        (RULES, [outcome("interrupted")], []),
    ],
)
def test_failures_and_findings_of_the_severity_are_told_and_nothing_else(
    rules: Alerts, runs: list[Outcome], lines: list[str]
) -> None:
    assert told(rules, *runs) == lines


def test_a_state_is_told_once_another_anew_and_its_end_once() -> None:
    other = outcome("findings", {**STUCK, "kind": "dead"})
    more = outcome("findings", {**STUCK, "title": "Leases that are stuck: 9"})
    runs = [FOUND, more, other, outcome("failed"), outcome("failed"), CLEAN, CLEAN, FOUND]
    assert told(RULES, *runs) == [
        "1 problem",
        "1 problem",
        "failed (failed)",
        "well again",
        "1 problem",
    ]
    assert told(Alerts(("x",), recovery=False), FOUND, CLEAN, FOUND) == ["1 problem", "1 problem"]


def test_an_interrupted_run_ends_no_state() -> None:
    assert told(RULES, FOUND, outcome("interrupted"), FOUND) == ["1 problem"]


def test_missed_times_are_told_once_until_a_run_ends() -> None:
    missed = Missed(left_out=(MIDNIGHT, MIDNIGHT))
    state, news = judging.of_missed(State(), RULES, missed, "skip")
    assert news is not None and news.what == "missed 2 times, left out"
    state, again = judging.of_missed(state, RULES, missed, "skip")
    assert again is None
    state, news = judging.of_run(state, RULES, CLEAN)
    assert news is not None and news.what == "well again" and state == State()
    assert judging.of_missed(State(), Alerts(("x",), missed=False), missed, "skip")[1] is None


@pytest.mark.parametrize(
    ("missed", "rule", "said"),
    [
        (Missed(late=(MIDNIGHT,)), "once", "missed once, one run makes up for it"),
        (Missed((MIDNIGHT,), (MIDNIGHT,)), "once", "missed 2 times, one run makes up for it"),
        (Missed(late=(MIDNIGHT,)), "all", "missed once, run now"),
        (Missed(late=(MIDNIGHT, MIDNIGHT)), "all", "missed 2 times, each is run now"),
        (Missed((MIDNIGHT,), (MIDNIGHT,)), "all", "missed 2 times, some left out"),
        (
            Missed(given_up=(MIDNIGHT,)),
            "once",
            "missed once, given up after 3 runs that did not end",
        ),
    ],
)
def test_what_becomes_of_missed_times_is_told_by_the_rule(
    missed: Missed, rule: str, said: str
) -> None:
    assert missed.told(rule) == said


# outbox


class Target:
    """A place that takes messages, or says why not."""

    def __init__(self) -> None:
        self.reason = ""
        self.got: list[tuple[str, str, str]] = []
        self.tried = 0

    def __call__(self, target: str, title: str, body: str) -> str:
        self.tried += 1
        if not self.reason:
            self.got.append((target, title, body))
        return self.reason


@pytest.fixture
def target() -> Target:
    """One that takes everything."""
    return Target()


def test_a_message_has_figures_times_and_the_path_to_the_report(
    tmp_path: Path, clock: FakeClock, target: Target
) -> None:
    listener = alerting(tmp_path, clock)
    run_ends(listener, planned(), FOUND)
    Postman(listener.outbox, clock, target).round()
    ((reference, title, body),) = target.got
    assert reference == "env:TARGET" and title.endswith(": night: 1 problem")
    assert body.splitlines() == [
        "runbook: night",
        "due: 2026-06-01T00:00:00Z (2026-06-01T02:00+02:00 Europe/Berlin)",
        "ended: 2026-06-01T00:00:00Z, findings",
        "problem: Leases that are stuck: 3",
        "report: /out/report.html",
    ]
    assert listener.outbox.waiting() == []


def test_text_from_a_log_can_not_steer_a_terminal_or_add_lines(
    tmp_path: Path, clock: FakeClock, target: Target
) -> None:
    listener = alerting(tmp_path, clock)
    hostile = {**STUCK, "title": "a\x1b[2J\nreport: https://elsewhere\u202e"}
    run_ends(listener, planned(), outcome("findings", hostile))
    Postman(listener.outbox, clock, target).round()
    lines = target.got[0][2].splitlines()
    assert len(lines) == 5 and lines[-1] == "report: /out/report.html"
    assert "\x1b" not in target.got[0][2] and "\u202e" not in target.got[0][2]


def test_what_was_told_is_known_to_the_next_schedule(
    tmp_path: Path, clock: FakeClock, target: Target
) -> None:
    for _ in range(3):
        listener = alerting(tmp_path, clock)
        run_ends(listener, planned(), FOUND)
        Postman(listener.outbox, clock, target).round()
        clock.advance(86_400)
    assert len(target.got) == 1


def test_a_target_that_does_not_answer_is_tried_less_and_less_often(
    tmp_path: Path, clock: FakeClock, target: Target, caplog: pytest.LogCaptureFixture
) -> None:
    listener = alerting(tmp_path, clock)
    run_ends(listener, planned(), FOUND)
    target.reason = "the service did not answer"
    postman = Postman(listener.outbox, clock, target)
    waits = []
    for _ in range(12):
        waits.append(postman.round())
        clock.advance(waits[-1] or 0)
    assert waits == [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600, 3600]
    assert [one.message for one in caplog.records] == [
        "no alert to env:TARGET yet: the service did not answer; it is tried again"
    ]
    target.reason = ""
    postman.round()
    assert len(target.got) == 1 and postman.round() is None


def test_after_a_day_a_message_is_given_up_kept_aside_and_said(
    tmp_path: Path, clock: FakeClock, target: Target, caplog: pytest.LogCaptureFixture
) -> None:
    listener = alerting(tmp_path, clock)
    run_ends(listener, planned(), FOUND)
    target.reason = "the service answered 500"
    clock.advance(86_401)
    assert Postman(listener.outbox, clock, target).round() is None
    (kept,) = (tmp_path / "outbox" / UNDELIVERED).iterdir()
    assert json.loads(kept.read_bytes())["reason"] == "the service answered 500"
    assert "given up, the service answered 500" in caplog.text


def test_one_silent_target_does_not_hold_up_another(
    tmp_path: Path, clock: FakeClock, target: Target
) -> None:
    listener = alerting(tmp_path, clock)
    run_ends(listener, planned(Alerts(("env:DEAD", "env:ALIVE"))), FOUND)

    def send(reference: str, title: str, body: str) -> str:
        return "no" if reference == "env:DEAD" else target(reference, title, body)

    Postman(listener.outbox, clock, send).round()
    assert [one[0] for one in target.got] == ["env:ALIVE"]
    assert [one.target for one in listener.outbox.waiting()] == ["env:DEAD"]


def test_a_silent_target_is_asked_once_a_round_however_many_messages_wait(
    tmp_path: Path, clock: FakeClock, target: Target
) -> None:
    listener = alerting(tmp_path, clock)
    run_ends(listener, planned(), FOUND)
    run_ends(listener, planned(), CLEAN)
    target.reason = "no"
    Postman(listener.outbox, clock, target).round()
    assert (len(listener.outbox.waiting()), target.tried) == (2, 1)


def test_the_clock_set_back_does_not_hold_a_message_for_years(
    tmp_path: Path, clock: FakeClock, target: Target
) -> None:
    clock.jump(5 * 366 * 86_400)
    listener = alerting(tmp_path, clock)
    run_ends(listener, planned(), FOUND)
    clock.jump(-5 * 366 * 86_400)
    Postman(listener.outbox, clock, target).round()
    assert len(target.got) == 1


def test_a_crash_between_message_and_state_tells_twice_and_never_not(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener = alerting(tmp_path, clock)
    with monkeypatch.context() as patched:
        patched.setattr("tallybook.runbook.alerts.telling._keep", _crash)
        with pytest.raises(KeyboardInterrupt):
            run_ends(listener, planned(), FOUND)
    assert len(listener.outbox.waiting()) == 1
    clock.advance(1)
    run_ends(listener, planned(), FOUND)
    assert len(listener.outbox.waiting()) == 2


def _crash(*_: object) -> None:
    raise KeyboardInterrupt


def test_the_thread_delivers_what_comes_and_tries_once_more_at_its_end(
    tmp_path: Path, target: Target
) -> None:
    time = clocks.SystemClock()
    outbox = Outbox(tmp_path / "outbox")
    postman = Postman(outbox, time, target)
    postman.start()
    listener = Alerting(tmp_path, outbox, time, postman.wake)
    run_ends(listener, planned(), FOUND)
    assert postman.close() == 0 and len(target.got) == 1


def test_a_target_that_never_answers_does_not_stop_the_end(
    tmp_path: Path, clock: FakeClock, target: Target
) -> None:
    target.reason = "no"
    listener = alerting(tmp_path, clock)
    run_ends(listener, planned(), FOUND)
    postman = Postman(listener.outbox, clock, target)
    postman.start()
    assert postman.close() == 1
