"""A server that plays a script: what it reads and sends, byte for byte."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import Event, Thread

import pytest

from tallybook.job import Job

Play = Callable[[socket.socket], None]


class Server:
    """Plays ``script`` for each connection and keeps what it received."""

    def __init__(self, script: Play) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._script = script
        self.received: list[bytes] = []
        self.over = Event()
        Thread(target=self._serve, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}/rows?secret=7"

    def close(self) -> None:
        self.over.set()
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                Thread(target=self._play, args=(connection,), daemon=True).start()

    def _play(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            self.received.append(read_request(connection))
            self._script(connection)


def read_request(connection: socket.socket) -> bytes:
    """One whole request: head and as much body as Content-Length says."""
    request = b""
    while b"\r\n\r\n" not in request:
        request += connection.recv(65536)
    head, _, body = request.partition(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


@pytest.fixture
def serve() -> Iterator[Callable[[bytes | Play], Server]]:
    servers: list[Server] = []

    def start(script: bytes | Play) -> Server:
        play = script if callable(script) else lambda connection: connection.sendall(script)
        servers.append(Server(play))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def job() -> Job:
    return Job(
        job_id="018f0000-0000-7000-8000-000000000001",
        topic="rows.sync",
        payload_json='{"id":"007"}',
        payload_digest="",
        idempotency_key="row-007",
        attempt_count=2,
        lease_token=5,
        correlation_id="c-1",
    )
