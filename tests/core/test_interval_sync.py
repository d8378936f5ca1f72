"""The thread of durability "interval" ends when it is told to, whatever it is at."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from tallybook.log.interval import IntervalSync

WAIT_S = 20


def test_a_close_during_a_sync_ends_the_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, at_work = IntervalSync(0.001), threading.Event()
    sync = one.sync

    def late() -> None:
        if threading.current_thread().name == "log sync":
            at_work.set()
            while not (one._over.is_set() and one._unsynced.is_set()):
                at_work.wait(0.001)
        sync()

    monkeypatch.setattr(one, "sync", late)
    fd = os.open(tmp_path / "segment", os.O_WRONLY | os.O_CREAT)
    one.wrote(fd)
    assert at_work.wait(WAIT_S)
    closing = threading.Thread(target=one.close, daemon=True)
    closing.start()
    closing.join(WAIT_S)
    assert not closing.is_alive()
    os.close(fd)
