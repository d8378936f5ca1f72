"""How tests share the cores (``make test``): a file is one worker's, so that what it makes is made
once; the tests of a few long files need nothing of each other and go to whoever is free."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

SPREAD = ("test_power_cuts.py", "test_crash_points.py", "test_storms.py")
RECORDED = ("test_demo_run.py", "test_demo_detectors.py")
"""Files that share the recorded demos; they begin first, as the longest."""


class ByFile(LoadScopeScheduling):
    """Gives each worker whole files."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    """Decide by path: the groups that are marked are lost between pytest 9.2 and xdist 3.8."""
    return ByFile(config, log)


def pytest_configure() -> None:
    """Hear Ctrl-C: begun in the background, a suite ignores it, and so does all that it starts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest."""
    items.sort(key=lambda item: item.path.name not in RECORDED)


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
