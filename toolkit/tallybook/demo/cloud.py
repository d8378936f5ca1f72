"""The demo's cloud: a process of its own on loopback, with the fault injector at its door.

    python -m tallybook.demo.cloud --folder DIR

Its first line of standard input is a JSON object {"seed", "timeout_s", "records", "token"};
it prints {"port": n} once it listens, and ends when standard input ends.

POST /airports        one delivery; the headers name key, attempt and lease
POST /admin/tamper    {"change": [row parts], "delete": [codes], "add": [rows]}
POST /admin/export    writes airports.csv and airports.ndjson into DIR/exports
POST /admin/ledgers   {kind: [codes]}: what injector and cloud did

The admin paths want the token: Authorization: Bearer TOKEN.
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import json
import select
import socket
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from tallybook.demo import exports, faults
from tallybook.demo.airports import COLUMNS
from tallybook.demo.faults import Fault, Plan
from tallybook.demo.store import Store, Stored

BODY_LIMIT = 16 * 1024 * 1024
REFUSED_AT_THE_DOOR = {faults.UNAVAILABLE: 503, faults.TOO_MANY: 429}


class Cloud(ThreadingHTTPServer):
    """The server; a thread a connection, each of which serves one request."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, folder: Path, plan: Plan, token: str) -> None:
        super().__init__(("127.0.0.1", 0), Exchange)
        self.exports = folder / "exports"
        self.exports.mkdir(mode=0o700, exist_ok=True)
        self.plan = plan
        self.authorization = f"Bearer {token}".encode()
        self.store = Store(folder / "cloud.db")

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no error of the cloud; anything else is shown."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class BadRequest(Exception):
    """The request cannot be used; the status and the reason are the answer."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Exchange(BaseHTTPRequestHandler):
    """One request and its answer."""

    server: Cloud
    protocol_version = "HTTP/1.1"
    timeout = 30
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        """Answer a delivery or an admin request."""
        self.close_connection = True
        try:
            body = self._body()
            if self.path == "/airports":
                self._deliver(body)
            else:
                self._answer(Stored(200, self._admin(body)))
        except BadRequest as error:
            self._answer(Stored(error.status, {"error": str(error)}))

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed: the ledger has every request."""

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            raise BadRequest(411, "Content-Length is missing")
        if int(length) > BODY_LIMIT:
            raise BadRequest(413, f"a body has at most {BODY_LIMIT} bytes")
        return self.rfile.read(int(length))

    def _admin(self, body: bytes) -> dict[str, Any]:
        given = self.headers.get("Authorization", "").encode("latin-1", "replace")
        if not hmac.compare_digest(given, self.server.authorization):
            raise BadRequest(401, "wrong or missing token")
        store = self.server.store
        match self.path:
            case "/admin/tamper":
                order = _object(body)
                store.tamper(order["change"], order["delete"], order["add"])
                return {}
            case "/admin/export":
                exports.write(self.server.exports, store.rows())
                return {}
            case "/admin/ledgers":
                return dict(store.ledgers())
        raise BadRequest(404, "no such path")

    def _deliver(self, body: bytes) -> None:
        row = _object(body)
        if set(row) != set(COLUMNS):
            raise BadRequest(400, f"a row has the columns {', '.join(COLUMNS)}")
        attempt = self._number("Tallybook-Attempt")
        fault = self.server.plan.at(row["icao"], attempt)
        key = self.headers.get("Idempotency-Key")
        if not key:
            raise BadRequest(400, "Idempotency-Key is missing")
        request_id = self.server.store.arrive(self._entry(key, row["icao"], attempt, fault))
        stored, ended = Stored(500, {}), "client_gone"
        try:
            stored = self._decide(key, row, body, fault)
            ended = self._send(stored, fault)
        finally:
            self.server.store.end(request_id, stored.status, stored.replayed, ended)

    def _entry(self, key: str, record: str, attempt: int, fault: Fault | None) -> dict[str, Any]:
        return {
            "idempotency_key": key,
            "record": record,
            "attempt": attempt,
            "lease_token": self._number("Tallybook-Lease-Token"),
            "correlation_id": self.headers.get("Tallybook-Correlation-Id"),
            "fault": fault.kind if fault else None,
            "arrived_at": datetime.now(UTC).isoformat(timespec="microseconds"),
        }

    def _decide(self, key: str, row: dict[str, Any], body: bytes, fault: Fault | None) -> Stored:
        kind = fault.kind if fault else ""
        if kind in REFUSED_AT_THE_DOOR:
            return Stored(REFUSED_AT_THE_DOOR[kind], {"error": kind})
        store = self.server.store
        known = store.register(key, hashlib.blake2b(body).hexdigest(), row["icao"])
        if known is not None:
            return known
        if kind == faults.REFUSED:
            return store.refuse(key, "this airport is closed for good")
        if fault is not None and fault.delay_s:
            time.sleep(fault.delay_s)
        return store.accept(key, row)

    def _send(self, stored: Stored, fault: Fault | None) -> str:
        """Answer, or cut the connection where the fault says so; returns what it came to."""
        if self._client_is_gone():
            return "client_gone"
        if fault is not None and fault.kind == faults.ANSWER_LOST:
            self.connection.shutdown(socket.SHUT_RDWR)
            return "lost"
        with suppress(ConnectionError, TimeoutError):
            self._answer(stored)
            return "answered"
        return "client_gone"

    def _client_is_gone(self) -> bool:
        readable, _, _ = select.select([self.connection], [], [], 0)
        if not readable:
            return False
        with suppress(ConnectionError):
            return not self.connection.recv(1, socket.MSG_PEEK)
        return True

    def _answer(self, stored: Stored) -> None:
        content = json.dumps(stored.answer, ensure_ascii=False).encode()
        self.send_response(stored.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Connection", "close")
        if stored.replayed:
            self.send_header("Idempotency-Replayed", "true")
        if stored.status == 429:
            self.send_header("Retry-After", str(faults.RETRY_AFTER_S))
        self.end_headers()
        self.wfile.write(content)

    def _number(self, header: str) -> int:
        text = self.headers.get(header, "")
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            raise BadRequest(400, f"{header} is no number")
        return int(text)


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except ValueError:
        raise BadRequest(400, "the body is no JSON") from None
    if not isinstance(value, dict):
        raise BadRequest(400, "the body is no JSON object")
    return value


def serve(folder: Path) -> None:
    """Serve until standard input ends."""
    order = json.loads(sys.stdin.readline())
    plan = faults.plan(order["seed"], order["records"], order["timeout_s"])
    with Cloud(folder, plan, order["token"]) as cloud:
        Thread(target=cloud.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        print(json.dumps({"port": cloud.server_address[1]}), flush=True)
        with suppress(KeyboardInterrupt):
            sys.stdin.read()
        cloud.shutdown()
        cloud.store.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="The cloud of 'tallybook demo'")
    parser.add_argument("--folder", type=Path, required=True)
    serve(parser.parse_args().folder)
