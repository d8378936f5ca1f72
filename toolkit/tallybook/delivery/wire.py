"""One HTTP exchange over one connection under one deadline."""

from __future__ import annotations

import io
import socket
import ssl
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException, HTTPMessage, HTTPResponse, IncompleteRead, RemoteDisconnected
from typing import cast
from urllib.parse import SplitResult


class Unreached(Exception):
    """No connection came about: nothing was sent."""


class Lost(Exception):
    """The connection ended after something was sent and before a whole answer."""


class Late(Exception):
    """The deadline passed after something was sent."""


class Garbled(Exception):
    """What came back is no HTTP, or more of it than was allowed."""


@dataclass(frozen=True, slots=True)
class Received:
    """A whole answer as it came."""

    status: int
    headers: HTTPMessage
    body: bytes


@dataclass(frozen=True, slots=True)
class Deadline:
    """An instant of the monotonic clock that nothing may outlast."""

    at_s: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """The deadline ``seconds`` from now."""
        return cls(time.monotonic() + seconds)

    def left_s(self) -> float:
        """Seconds that are left; raises TimeoutError when there are none."""
        left = self.at_s - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


def exchange(
    url: SplitResult,
    method: str,
    headers: Mapping[str, str],
    body: bytes,
    timeout_s: float,
    limit: int,
) -> Received:
    """Send one request and read its answer of at most ``limit`` bytes.

    Raises Unreached, Lost, Late or Garbled; never leaves a connection open.
    """
    deadline = Deadline.after(timeout_s)
    try:
        connection = _connect(url, deadline)
    except (OSError, UnicodeError) as error:
        reason = str(error) or f"no connection within {timeout_s:g} s"
        raise Unreached(reason) from None
    with connection:
        return _converse(connection, deadline, _head(url, method, headers, body) + body, limit)


def _connect(url: SplitResult, deadline: Deadline) -> socket.socket:
    host, tls = str(url.hostname), url.scheme == "https"
    port = url.port or (443 if tls else 80)
    plain = _first_that_answers(host, port, deadline)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if not tls:
        return plain
    try:
        plain.settimeout(deadline.left_s())
        return ssl.create_default_context().wrap_socket(plain, server_hostname=host)
    except OSError:
        plain.close()
        raise


def _first_that_answers(host: str, port: int, deadline: Deadline) -> socket.socket:
    failure: OSError = OSError(f"{host} has no address")
    for family, kind, protocol, _, address in socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM
    ):
        left_s = deadline.left_s()
        connection = socket.socket(family, kind, protocol)
        try:
            connection.settimeout(left_s)
            connection.connect(address)
            return connection
        except OSError as error:
            connection.close()
            failure = error
    raise failure


def _head(url: SplitResult, method: str, headers: Mapping[str, str], body: bytes) -> bytes:
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    lines = [f"{method} {target} HTTP/1.1", f"Host: {_authority(url)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines += [f"Content-Length: {len(body)}", "Connection: close", "", ""]
    return "\r\n".join(lines).encode("ascii")


def _authority(url: SplitResult) -> str:
    host = str(url.hostname)
    name = f"[{host}]" if ":" in host else host
    return f"{name}:{url.port}" if url.port else name


def _converse(
    connection: socket.socket, deadline: Deadline, request: bytes, limit: int
) -> Received:
    try:
        # A server may refuse a request before it has read all of it: its answer still counts.
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.settimeout(deadline.left_s())
            connection.sendall(request)
        return _receive(connection, deadline, limit)
    except TimeoutError:
        raise Late("no answer in time") from None
    except (RemoteDisconnected, IncompleteRead, OSError) as error:
        raise Lost(f"the connection ended before an answer ({error})") from None
    except (HTTPException, ValueError) as error:
        raise Garbled(f"the answer is no HTTP ({type(error).__name__})") from None


def _receive(connection: socket.socket, deadline: Deadline, limit: int) -> Received:
    # HTTPResponse asks its socket for makefile() and nothing else.
    response = HTTPResponse(cast("socket.socket", _Timed(connection, deadline)))
    with response:
        response.begin()
        body = response.read(limit + 1)
        if len(body) > limit:
            raise Garbled(f"the answer is longer than {limit} bytes")
        if response.length:
            raise RemoteDisconnected("in the middle of the answer")
        return Received(response.status, response.headers, body)


class _Timed:
    """A socket of which each read waits only for what is left until the deadline."""

    def __init__(self, connection: socket.socket, deadline: Deadline) -> None:
        self._reader = _Reader(connection, deadline)

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(self._reader)


class _Reader(io.RawIOBase):
    def __init__(self, connection: socket.socket, deadline: Deadline) -> None:
        super().__init__()
        self._connection = connection
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        # typeshed's buffer type has no public name on Python 3.11
        self._connection.settimeout(self._deadline.left_s())
        return self._connection.recv_into(buffer)
