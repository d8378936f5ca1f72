"""Ctrl-C in the middle of a query ends a command as interrupted, not as an unexpected error."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import duckdb
import pytest
from ops_logs import Log

from tallybook import ops
from tallybook.cli.main import main
from tallybook.ops import memory, statements
from tallybook.ops.interrupts import interruptible
from tallybook.ops.reconciling import reading

LONG = (
    "select count(*) from range(100000000) as a, range(100000000) as b where a.range % 7 = b.range"
)


def interrupt_soon() -> None:
    threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT]).start()


@pytest.mark.parametrize("ask", ["frame", "_rows"])
def test_an_interrupted_question_is_a_keyboard_interrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: str
) -> None:
    Log(tmp_path)
    with ops.open(tmp_path) as warehouse:
        monkeypatch.setattr(statements, "query", lambda name: name)
        interrupt_soon()
        with pytest.raises(KeyboardInterrupt):
            getattr(warehouse, ask)(LONG)


def test_an_interrupted_reconcile_is_exit_130_and_one_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def slow(connection: object, *_: object, **__: object) -> None:
        interrupt_soon()
        connection.execute(LONG)  # type: ignore[attr-defined] # a DuckDB connection

    monkeypatch.setattr(reading, "read", slow)
    assert main(["reconcile", "x.csv", "--local", "y.csv", "--key", "id"]) == 130
    assert capsys.readouterr().err == "tallybook: interrupted\n"


def test_a_query_ends_also_where_the_thread_that_asked_does_not_look_for_signals() -> None:
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        with duckdb.connect() as connection:
            interrupt_soon()
            with pytest.raises(KeyboardInterrupt), interruptible(connection):
                connection.execute(LONG)
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_interrupt_of_a_connection_that_was_just_closed_is_one_and_says_nothing() -> None:
    connection = duckdb.connect()
    with pytest.raises(KeyboardInterrupt), interruptible(connection):
        connection.close()
        os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_connection_that_closes_under_the_watch_of_its_progress_ends_the_watch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "PERIOD_S", 0.001)
    asked = threading.Event()
    connection = duckdb.connect()
    connection.close()

    def far() -> float:
        asked.set()
        return connection.query_progress()

    with memory.watched(far, lambda _: None):
        assert asked.wait(10)


def test_what_duckdb_says_once_ctrl_c_was_heard_is_an_interrupt_and_before_it_an_error() -> None:
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        with duckdb.connect() as connection:
            with pytest.raises(duckdb.TransactionException), interruptible(connection):
                raise duckdb.TransactionException("aborted")
            with pytest.raises(KeyboardInterrupt), interruptible(connection):
                os.kill(os.getpid(), signal.SIGINT)
                raise duckdb.TransactionException("aborted")
    finally:
        signal.signal(signal.SIGINT, before)
