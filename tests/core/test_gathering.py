"""Threads share a sync, and no thread that goes away leaves the others waiting."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tallybook import Book
from tallybook.book.gathering import Gathering, Ticket
from tallybook.log import writer

WAIT_S = 30


class Interrupted:
    """The call of a thread in which a signal's handler raises while it waits; ``is_called`` to
    lead or not."""

    def __init__(self, leave: Callable[[], None]) -> None:
        self._is_called = True
        self._leave = leave

    def acquire(self) -> bool:
        if self._is_called:
            self._is_called = False
            return True
        self._leave()
        raise KeyboardInterrupt

    def release(self) -> None:
        self._is_called = True

    def locked(self) -> bool:
        return not self._is_called


def ticket() -> Ticket:
    return Ticket(lambda *_: [])


def test_threads_of_one_process_share_syncs(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs: list[str] = []
    real = writer.sync

    def counted(fd: int, name: str) -> None:
        syncs.append(name)
        threading.Event().wait(0.02)
        real(fd, name)

    monkeypatch.setattr(writer, "sync", counted)
    with ThreadPoolExecutor(16) as pool:
        made = list(pool.map(lambda n: book.enqueue("a", n).job_id, range(160)))
    assert len(set(made)) == 160 and book.counts() == {"a": {"pending": 160}}
    assert len(syncs) <= 80


def test_one_bad_change_fails_alone_among_those_that_share_its_sync(book: Book) -> None:
    book.enqueue("a", 1, idempotency_key="k")

    def one(n: int) -> str:
        try:
            return str(book.enqueue("a", n, idempotency_key="k" if n % 2 else None).is_new)
        except Exception as error:  # noqa: BLE001
            return type(error).__name__

    with ThreadPoolExecutor(16) as pool:
        made = list(pool.map(one, range(2, 82)))
    assert made == ["True", "KeyConflict"] * 40


@pytest.mark.parametrize("is_called", [True, False])
def test_a_thread_that_is_interrupted_while_it_waits_leaves_nobody_waiting(is_called: bool) -> None:
    begun, go_on = threading.Event(), threading.Event()
    done: list[Ticket] = []

    def do(tickets: list[Ticket]) -> None:
        begun.set()
        assert go_on.wait(WAIT_S)
        done.extend(tickets)

    gathering = Gathering(do)
    first = threading.Thread(target=gathering.join, args=(ticket(),))
    first.start()
    assert begun.wait(WAIT_S)

    def leave() -> None:
        if is_called:
            go_on.set()
            first.join(WAIT_S)

    late = ticket()
    interrupted = Ticket(lambda *_: [], call=Interrupted(leave))  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        gathering.join(interrupted)
    go_on.set()
    other = threading.Thread(target=gathering.join, args=(late,))
    other.start()
    for thread in (first, other):
        thread.join(WAIT_S)
        assert not thread.is_alive()
    assert late in done and interrupted not in done
