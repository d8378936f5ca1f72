"""JupyterLab on the notebooks and runbooks, for this machine alone.

The server listens on loopback, asks for a token that is never on a command line, asks no network
for news or updates, and ends with us: no server and no kernel is left after Ctrl-C.
"""

from __future__ import annotations

import http.client
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import BinaryIO, NoReturn

from tallybook.errors import BadInput, TallybookError
from tallybook.lab import offline
from tallybook.layout import FILE_MODE, carried
from tallybook.runbook.engine import require
from tallybook.runbook.folder import private_folder
from tallybook.runbook.kernels import TABLES

HOST = "127.0.0.1"
FIRST_PORT = 8888
_PORTS_TRIED = 50
_READY_S = 60.0
_STOP_S = 10.0
_TRIALS = 3
_CARRIED = ("notebooks", "runbooks")
_SETTINGS = offline.FOLDER
_TABLES = {**TABLES, "POLARS_FMT_STR_LEN": "1000"}  # a long text scrolls on a screen
_ASKS_NOBODY = {
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False}
}


class _PortTaken(TallybookError):
    """Somebody took the port between our look and the start of the server."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server is to run; ``url`` carries the token. A ``named`` port is a user's choice."""

    root: Path
    port: int
    token: str
    out: Path
    named: bool = False

    @property
    def log(self) -> Path:
        """What the server prints, its address with the token among it."""
        return self.out / "lab.log"

    @property
    def url(self) -> str:
        """What to open in a browser."""
        return f"http://{HOST}:{self.port}/lab?token={self.token}"


def prepare(out: Path, port: int | None) -> Place:
    """Check the port and lay out the notebooks; raises BadInput where the port is taken."""
    require("jupyterlab")
    chosen = _checked(port) if port is not None else _free()
    private_folder(out)
    place = Place(_root(out), chosen, secrets.token_urlsafe(24), out.resolve(), port is not None)
    place.log.touch(mode=FILE_MODE)
    private_folder(out / _SETTINGS)
    (out / _SETTINGS / "overrides.json").write_text(json.dumps(_ASKS_NOBODY) + "\n", "utf-8")
    return place


def serve(place: Place, book: Path | str, *, browser: bool, ready: Callable[[str], None]) -> None:
    """Run the server until it ends; ``ready`` is told the URL once it answers.

    Raises TallybookError where it does not come up; KeyboardInterrupt (Ctrl-C, SIGTERM) passes
    through after server and kernels have ended.
    """
    with _terminable():
        for trial in range(_TRIALS):
            try:
                _serve(place, book, browser=browser, ready=ready)
            except _PortTaken:
                if place.named or trial + 1 == _TRIALS:
                    raise
                place = replace(place, port=_free())
            else:
                return


def _serve(place: Place, book: Path | str, *, browser: bool, ready: Callable[[str], None]) -> None:
    with place.log.open("wb") as log, _started(place, book, browser, log) as server:
        _write_scripts(place, log)
        _await(place, server)
        ready(place.url)
        code = server.wait()
    if code:
        raise TallybookError(f"JupyterLab ended with code {code}; its log is {place.log}")


def _root(out: Path) -> Path:
    """The working folder where it has notebooks, else a copy of the carried ones under ``out``."""
    here = Path.cwd()
    if any((here / name).is_dir() for name in _CARRIED):
        return here
    root = out / "lab"
    for name in _CARRIED:
        private_folder(root / name)
        for source in sorted(carried(name).glob("*.ipynb")):
            if not (root / name / source.name).exists():
                shutil.copyfile(source, root / name / source.name)
    return root.resolve()


def _checked(port: int) -> int:
    if not 1 <= port <= 65535:
        raise BadInput(f"no port {port}: choose one from 1 to 65535")
    if not _is_free(port):
        raise BadInput(f"port {port} is in use on {HOST}: choose another with --port")
    return port


def _free() -> int:
    ports = range(FIRST_PORT, FIRST_PORT + _PORTS_TRIED)
    found = next((port for port in ports if _is_free(port)), None)
    if found is None:
        raise BadInput(f"ports {ports[0]} to {ports[-1]} are in use: choose one with --port")
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _command(place: Place, browser: bool) -> list[str]:
    options = [
        f"--ServerApp.ip={HOST}",
        f"--ServerApp.port={place.port}",
        "--ServerApp.port_retries=0",
        f"--ServerApp.root_dir={place.root}",
        f"--LabApp.app_settings_dir={place.out / _SETTINGS}",
        "--LabApp.news_url=None",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.extension_manager=readonly",
    ]
    if os.geteuid() == 0:
        options.append("--allow-root")  # in a container; loopback and token still hold
    return [sys.executable, "-m", "jupyterlab", *options, *([] if browser else ["--no-browser"])]


def _write_scripts(place: Place, log: BinaryIO) -> None:
    """Have the scripts of the charts put together beside the start of the server, once.

    It is waited for: what fails here a kernel does for itself.
    """
    path = offline.scripts(place.out)
    if not path.is_file():
        command = [sys.executable, "-m", "tallybook.lab.offline", str(path)]
        subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False)


@contextmanager
def _started(
    place: Place, book: Path | str, browser: bool, log: BinaryIO
) -> Iterator[subprocess.Popen[bytes]]:
    """A server in a session of its own, so that Ctrl-C reaches us first; ended on the way out."""
    own = {"JUPYTER_TOKEN": place.token, "JUPYTER_PREFER_ENV_PATH": "1"}
    own |= {offline.OUT: str(place.out), "TALLYBOOK_BOOK": str(book)}
    server = subprocess.Popen(
        _command(place, browser),
        env={**os.environ, **_TABLES, **own},
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield server
    finally:
        _stop(server)


def _stop(server: subprocess.Popen[bytes]) -> None:
    """SIGTERM has the server shut its kernels down; one that hangs is killed."""
    server.terminate()
    try:
        server.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _await(place: Place, server: subprocess.Popen[bytes]) -> None:
    """Wait until the server answers, and only to those who know the token."""
    deadline = time.monotonic() + _READY_S
    while _status(place.port, place.token) != 200:
        if server.poll() is not None:
            error = TallybookError if _is_free(place.port) else _PortTaken
            raise error(f"JupyterLab did not start: {_last_line(place.log)}")
        if time.monotonic() > deadline:
            raise TallybookError(f"JupyterLab is silent after {_READY_S:.0f} s; see {place.log}")
        time.sleep(0.1)
    if _status(place.port, None) == 200:
        raise TallybookError("your Jupyter settings turn the token off; nothing is served so")


def _last_line(log: Path) -> str:
    lines = log.read_text("utf-8", "replace").strip().splitlines()
    return f"{lines[-1]} ({log})" if lines else f"see {log}"


def _status(port: int, token: str | None) -> int:
    """HTTP status of the server's status page, 0 where nothing answers."""
    connection = http.client.HTTPConnection(HOST, port, timeout=5)
    headers = {"Authorization": f"token {token}"} if token else {}
    try:
        connection.request("GET", "/api/status", headers=headers)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM ends us as Ctrl-C does: the server must not stay behind."""
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(_signum: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
