"""Alerts: what is told and what not, an outbox that outlives targets and crashes, and secrets."""

from __future__ import annotations

import json
import logging
import os
import socket
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session
from schedule_steps import MIDNIGHT, entry

from tallybook import clock as clocks
from tallybook.errors import BadInput
from tallybook.runbook import alerts
from tallybook.runbook.alerts import Alerting, Outbox, Postman, judging, targets
from tallybook.runbook.alerts.judging import State
from tallybook.runbook.alerts.outbox import UNDELIVERED
from tallybook.runbook.schedule import Ended, Missed, Outcome, Planned
from tallybook.runbook.settings import Alerts
from tallybook.testing import FakeClock

STUCK = {"kind": "stuck_lease", "severity": "problem", "title": "Leases that are stuck: 3"}
SLOW = {"kind": "slow", "severity": "warning", "title": "Waited longer than 60 s: 12"}
NOTE = {"kind": "note", "severity": "info", "title": "All segments are whole"}
RULES = Alerts(("env:TARGET",))


def outcome(status: str, *findings: dict[str, str]) -> Outcome:
    """How a run ended."""
    codes = {"clean": 0, "findings": 1, "bad_input": 2, "incomplete": 4}
    return Outcome(status, codes.get(status, 3), "/out/report.html", "", findings)


def told(rules: Alerts, *outcomes: Outcome) -> list[str]:
    """What is told of the runs, one after the other."""
    state, lines = State(), []
    for one in outcomes:
        state, news = judging.of_run(state, rules, one)
        lines += [news.what] if news else []
    return lines


CLEAN = outcome("clean")
FOUND = outcome("findings", STUCK, SLOW, NOTE)


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


@pytest.fixture
def clock() -> FakeClock:
    """Midnight."""
    return FakeClock(MIDNIGHT)


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


def alerting(place: Path, clock: FakeClock) -> Alerting:
    """The listener, with nobody who delivers."""
    return Alerting(place, Outbox(place / "outbox"), clock, lambda: None)


def planned(rules: Alerts = RULES, **more: Any) -> Planned:
    """An entry with one alert."""
    made = entry(cron="30 2 * * *", zone="Europe/Berlin", **more)
    return Planned(made.entry, made.times, {"night": rules})


def run_ends(listener: Alerting, one: Planned, how: Outcome) -> None:
    """A run of the entry ends so."""
    now = listener.clock.moment().now
    ended = Ended(now, now, how.status, how.exit_code, how.report, how.message)
    listener.ended(one, ended, how)


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


# apprise and real servers


class Web(BaseHTTPRequestHandler):
    """Takes what is posted, or answers with the status in its path."""

    got: list[tuple[str, dict[str, Any]]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.got.append((self.path, json.loads(body)))
        status = 500 if "broken" in self.path else 200
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def web() -> Iterator[tuple[int, list[tuple[str, dict[str, Any]]]]]:
    """A server on loopback: its port, and what it got."""
    handler = type("Handler", (Web,), {"got": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server.server_port, handler.got
    server.shutdown()
    server.server_close()


class Mailbox:
    """Keeps mails."""

    def __init__(self) -> None:
        self.mails: list[Envelope] = []

    async def handle_DATA(  # noqa: N802 - aiosmtpd calls it so
        self, _server: SMTP, _session: Session, envelope: Envelope
    ) -> str:
        self.mails.append(envelope)
        return "250 OK"


def test_a_webhook_gets_the_message(
    web: tuple[int, list[tuple[str, dict[str, Any]]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    port, got = web
    monkeypatch.setenv("TARGET", f"json://127.0.0.1:{port}/hook")
    targets.check("env:TARGET")
    assert targets.send("env:TARGET", "night: 1 problem", "report: /out\nline") == ""
    ((path, sent),) = got
    assert path.startswith("/hook")
    assert (sent["title"], sent["message"]) == ("night: 1 problem", "report: /out\nline")


def test_a_chat_gets_the_message(
    web: tuple[int, list[tuple[str, dict[str, Any]]]], tmp_path: Path
) -> None:
    port, got = web
    (tmp_path / "chat").write_text(f"mmost://127.0.0.1:{port}/3ccdd113474722377935511fc85d3dd4\n")
    assert targets.send(f"file:{tmp_path}/chat", "night: 1 problem", "report: /out") == ""
    assert "report: /out" in got[0][1]["text"]


def test_a_mailbox_gets_the_message(monkeypatch: pytest.MonkeyPatch) -> None:
    box = Mailbox()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    controller = Controller(box, hostname="127.0.0.1", port=port)
    controller.start()
    try:
        monkeypatch.setenv("MAIL", f"mailto://127.0.0.1:{port}?from=book@x.org&to=me@y.org")
        assert targets.send("env:MAIL", "night: 1 problem", "report: /out") == ""
    finally:
        controller.stop()
    (mail,) = box.mails
    assert mail.rcpt_tos == ["me@y.org"] and b"night: 1 problem" in bytes(mail.content or b"")


SECRET = "Zt9xK2vTq8"  # noqa: S105 - what must be found nowhere


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("json://127.0.0.1:{port}/broken/{secret}", "the service answered 500"),
        ("json://127.0.0.1:1/{secret}", "the service did not answer"),
        ("nowhere://{secret}", "it is no address that apprise knows"),
        ("{secret}", "it is no address that apprise knows"),
    ],
)
def test_an_address_is_in_no_log_reason_or_file(
    url: str,
    reason: str,
    web: tuple[int, list[tuple[str, dict[str, Any]]]],
    tmp_path: Path,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("TARGET", url.format(port=web[0], secret=SECRET))
    listener = alerting(tmp_path, clock)
    run_ends(listener, planned(), FOUND)
    Postman(listener.outbox, clock).round()
    (waiting,) = listener.outbox.waiting()
    assert waiting.reason == reason
    files = [path.read_text("utf-8") for path in tmp_path.rglob("*") if path.is_file()]
    printed = capfd.readouterr()
    assert files and not [
        one for one in (*files, caplog.text, printed.out, printed.err) if SECRET in one
    ]


@pytest.mark.parametrize(
    ("reference", "holds", "said"),
    [
        (
            "hooks.example.org/Zt9xK2vTq8",
            "",
            "a secret is given by reference: env:NAME, file:PATH or",
        ),
        (
            "json://example.org/Zt9xK2vTq8",
            "",
            "a secret is given by reference: env:NAME, file:PATH or",
        ),
        ("env:TARGET", "hooks.example.org/Zt9xK2vTq8", "what env:TARGET holds has no scheme"),
        ("env:TARGET", "htps://example.org/Zt9xK2vTq8", "no address that apprise knows: look at"),
        ("env:TARGET", "slack://Zt9xK2vTq8", "(slack) and at the parts that this service needs"),
        ("env:OTHER", "x", "the secret env:OTHER: the environment has no OTHER"),
        ("file:/nowhere/x", "x", "the secret file:/nowhere/x: No such file or directory"),
    ],
)
def test_a_target_that_cannot_be_used_is_named_by_line_and_reference_alone(
    reference: str, holds: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TARGET", holds)
    rules = Alerts((reference,), line=7)
    with pytest.raises(BadInput) as refused:
        alerts.require([planned(rules)], Path("runbooks.toml"))
    line = str(refused.value)
    assert line.startswith("runbooks.toml line 7: [alerts.night] targets: ") and said in line
    assert SECRET not in line and "\n" not in line


def test_without_apprise_it_is_said_which_extra_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "apprise", None)
    with pytest.raises(BadInput, match=r"pip install 'tallybook\[alerts\]'"):
        targets.check("env:PATH")
    assert "tallybook[alerts]" in targets.send("env:PATH", "", "")


def test_the_made_message_is_on_disk_before_anything_is_sent(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    keep = os.fsync
    monkeypatch.setattr(
        os,
        "fsync",
        lambda fd: (synced.append(str(Path(f"/proc/self/fd/{fd}").readlink())), keep(fd)),
    )
    listener = alerting(tmp_path, clock)
    run_ends(listener, planned(), FOUND)
    assert any(one.startswith(str(tmp_path / "outbox")) for one in synced)
    made = listener.outbox.waiting()[0]
    assert clocks.from_text(made.made_at) - MIDNIGHT == timedelta(0)
