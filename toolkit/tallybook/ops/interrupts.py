"""Ctrl-C in the middle of a query: DuckDB tells it as an error of its own, we as what it is.

DuckDB looks for a signal between two pieces of work of the calling thread. Where that thread only
waits for the others it may never look: so the query is interrupted as the signal comes in.
"""

import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from threading import Event, Thread, current_thread, main_thread

import duckdb

_SAID = "Query interrupted"


@contextmanager
def interruptible(connection: duckdb.DuckDBPyConnection | None = None) -> Iterator[None]:
    """Raise KeyboardInterrupt where a query inside was interrupted; one of ``connection`` ends at
    once, another where DuckDB looks next. Whatever DuckDB says once Ctrl-C was heard, of a
    transaction that is aborted or data that cannot be read, is what became of that."""
    came = Event()
    try:
        with _heard(connection, came) if connection else nullcontext():
            yield
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except (RuntimeError, duckdb.Error) as error:
        if not came.is_set() and _SAID not in str(error):
            raise
        raise KeyboardInterrupt from None


@contextmanager
def _heard(connection: duckdb.DuckDBPyConnection, came: Event) -> Iterator[None]:
    """Interrupt what ``connection`` does as soon as this process gets SIGINT, whose number Python
    writes to a socket at once, and set ``came``. Signals are the main thread's: in another, nothing
    is done."""
    if current_thread() is not main_thread():
        yield
        return
    told, heard = socket.socketpair()
    told.setblocking(False)
    before = signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
    listener = Thread(target=_listen, args=(heard, connection, came), daemon=True)
    listener.start()
    try:
        yield
    finally:
        try:
            signal.set_wakeup_fd(before)
        except OSError:  # Ctrl-C came as that one was entered or left, and it is closed already
            signal.set_wakeup_fd(-1)
        told.close()
        listener.join()
        heard.close()


def _listen(heard: socket.socket, connection: duckdb.DuckDBPyConnection, came: Event) -> None:
    while numbers := heard.recv(64):
        if signal.SIGINT in numbers:
            came.set()
            with suppress(duckdb.ConnectionException):  # closed: there is nothing to interrupt
                connection.interrupt()
