"""Targets of alerts: apprise, real servers on loopback, and addresses that stay secret."""

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
from alert_steps import FOUND, alerting, planned, run_ends
from schedule_steps import MIDNIGHT

from tallybook import clock as clocks
from tallybook.errors import BadInput
from tallybook.runbook import alerts
from tallybook.runbook.alerts import Postman, judging, targets
from tallybook.runbook.alerts.judging import State
from tallybook.runbook.schedule import Outcome
from tallybook.runbook.settings import Alerts
from tallybook.testing import FakeClock


def told(rules: Alerts, *outcomes: Outcome) -> list[str]:
    """What is told of the runs, one after the other."""
    state, lines = State(), []
    for one in outcomes:
        state, news = judging.of_run(state, rules, one)
        lines += [news.what] if news else []
    return lines


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
        alerts.require({"night": rules}, Path("runbooks.toml"))
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
