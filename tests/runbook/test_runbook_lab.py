"""JupyterLab as ``tallybook lab`` starts it: on loopback, with a token, gone after Ctrl-C."""

from __future__ import annotations

import http.client
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from runbook_notebooks import empty_book, notebook

from tallybook.errors import BadInput
from tallybook.lab import offline
from tallybook.lab import server as lab

SERVE = """
from pathlib import Path
from tallybook.lab import server as lab
place = lab.prepare(Path("out"), None)
lab.serve(place, Path("book"), browser=False, ready=lambda url: print(url, flush=True))
"""


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody listens on."""
    with socket.socket() as listener:
        listener.bind((lab.HOST, 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_port_in_use_is_bad_input_before_anything_starts(tmp_path: Path, taken: int) -> None:
    with pytest.raises(BadInput, match=rf"port {taken} is in use on 127.0.0.1"):
        lab.prepare(tmp_path / "out", taken)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_a_number_that_is_no_port_is_bad_input(tmp_path: Path, port: int) -> None:
    with pytest.raises(BadInput, match=f"no port {port}"):
        lab.prepare(tmp_path, port)


def test_a_folder_without_notebooks_gets_a_copy_and_keeps_what_was_edited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    root = lab.prepare(tmp_path / "out", None).root
    copy = root / "notebooks" / "incident.ipynb"
    assert root == tmp_path / "out" / "lab" and copy.is_file()
    copy.write_text("mine", "utf-8")
    lab.prepare(tmp_path / "out", None)
    assert copy.read_text("utf-8") == "mine"


def test_a_folder_with_notebooks_is_served_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    notebook(tmp_path / "runbooks" / "mine.ipynb")
    assert lab.prepare(tmp_path / "out", None).root == tmp_path


def test_it_serves_on_loopback_with_a_token_and_is_gone_after_ctrl_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    empty_book(tmp_path / "book")
    scripts = offline.scripts(tmp_path / "out")
    scripts.parent.mkdir(parents=True)
    scripts.touch()  # they are there from an earlier time
    server = subprocess.Popen(
        [sys.executable, "-c", SERVE], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert server.stdout
        said = re.fullmatch(
            r"http://127\.0\.0\.1:(\d+)/lab\?token=(\S+)\n", server.stdout.readline()
        )
        assert said
        port, token = int(said[1]), said[2]
        assert answered(port, "/api/contents", None) == 403
        assert answered(port, "/api/contents", token) == 200
        command = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text("utf-8").split()
        assert all(token not in Path(f"/proc/{pid}/cmdline").read_text("utf-8") for pid in command)
    finally:
        server.send_signal(signal.SIGINT)
        assert server.wait(30) != 0
    with pytest.raises(ConnectionRefusedError):
        answered(port, "/api/status", None)


def answered(port: int, path: str, token: str | None) -> int:
    connection = http.client.HTTPConnection(lab.HOST, port, timeout=10)
    try:
        headers = {"Authorization": f"token {token}"} if token else {}
        connection.request("GET", path, headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_port_that_somebody_took_meanwhile_is_left_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: int
) -> None:
    monkeypatch.chdir(tmp_path)
    place = replace(lab.prepare(tmp_path / "out", None), port=taken)
    tried: list[lab.Place] = []

    def serve(place: lab.Place, *_: object, **__: object) -> None:
        tried.append(place)
        if place.port == taken:
            raise lab._PortTaken("not available")

    monkeypatch.setattr(lab, "_serve", serve)
    lab.serve(place, tmp_path, browser=False, ready=print)
    assert [place.port == taken for place in tried] == [True, False]
    with pytest.raises(lab._PortTaken):
        lab.serve(replace(place, named=True), tmp_path, browser=False, ready=print)
