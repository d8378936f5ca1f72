"""How tests share the machine (``make test``).

A file is one worker's, so that what it makes is made once; the tests of a few long files need
nothing of each other and go to whoever is free. Books lie in memory: on a disk most of the time
would be that of syncs, and none of them could be missed, since no test pulls the plug; the power
cuts follow each sync by its name.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

SPREAD = ("test_power_cuts.py", "test_crash_points.py", "test_storms.py", "test_readme.py")
RECORDED = ("test_demo_run.py", "test_demo_detectors.py")
"""Files that share the recorded demos; they begin first, as the longest."""
LONG = (
    "test_lab_browser.py",
    "test_runbook_selftest.py",
    "test_runbook_sample.py",
    "test_runbook_run.py",
    "test_runbook_tuning.py",
    "test_plans_simulated.py",
)
"""Files that begin next: one of them at the end would leave all but one core idle."""
MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of each session's own in it
ROOM = 4_000_000_000
"""Bytes that must be free in memory; a whole run leaves under one of four."""
PREFIX = "tally-"
OLD_S = 6 * 3600
MADE = pytest.StashKey[str]()


class ByFile(LoadScopeScheduling):
    """Gives each worker whole files."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    """Decide by path: the groups that are marked are lost between pytest 9.2 and xdist 3.8."""
    return ByFile(config, log)


def pytest_configure(config: pytest.Config) -> None:
    """Hear Ctrl-C: begun in the background, a suite ignores it, and so does all that it starts.
    Make what is temporary in memory, unless TMPDIR says where."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if "TMPDIR" not in os.environ and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM:
        sweep()
        made = tempfile.mkdtemp(prefix=PREFIX, dir=MEMORY)
        config.stash[MADE] = os.environ["TMPDIR"] = tempfile.tempdir = made


def sweep() -> None:
    """Remove what sessions left that ended hours ago, killed or with a failure."""
    for left in MEMORY.glob(f"{PREFIX}*"):
        if left.stat().st_mtime < time.time() - OLD_S:
            shutil.rmtree(left, ignore_errors=True)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Leave nothing in memory but where a test failed."""
    made = session.config.stash.get(MADE, None)
    if made and exitstatus != pytest.ExitCode.TESTS_FAILED:
        session.config.add_cleanup(partial(shutil.rmtree, made, ignore_errors=True))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest; then the folders take turns, so that some wait while others work."""
    files = list(dict.fromkeys(item.path for item in items))
    turns = {path: turn for group in by_folder(files) for path, turn in group}
    items.sort(key=lambda item: (rank(item.path.name), turns[item.path]))


def rank(name: str) -> int:
    """Whether a file begins first, next or in its turn."""
    return 0 if name in RECORDED else 1 if name in LONG else 2


def by_folder(files: list[Path]) -> Iterator[list[tuple[Path, float]]]:
    """The files of each folder, each with its turn: how much of the folder is before it."""
    for _, group in groupby(files, key=lambda path: path.parent):
        paths = list(group)
        yield [(path, at / len(paths)) for at, path in enumerate(paths)]


def group_of(nodeid: str) -> str:
    """What a test has to be together with; itself where it stands alone."""
    path = nodeid.partition("::")[0]
    name = path.rpartition("/")[2]
    if name in RECORDED:
        return "recorded demos"
    return nodeid if name in SPREAD else path


@pytest.fixture(scope="session")
def storage() -> Iterator[dict[str, Any]]:
    """A server that speaks S3, and how to reach it."""
    server = pytest.importorskip("moto.server")
    threaded = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    threaded.start()
    host, port = threaded.get_host_and_port()
    yield {"endpoint_override": f"{host}:{port}", "scheme": "http", "access_key": "key",
           "secret_key": "secret", "region": "us-east-1"}  # fmt: skip
    threaded.stop()
