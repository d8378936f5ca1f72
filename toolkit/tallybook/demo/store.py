"""What the cloud remembers, in SQLite: its rows, the keys that it has seen, its ledgers.

An idempotency key is registered when it arrives. Its effect and its answer are stored in one
transaction. A second request with the key waits for that answer and gets it again.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Condition
from typing import Any

from tallybook.statements import load

WAIT_S = 30.0
LEDGERS = (
    "answer_lost",
    "retried",
    "dead",
    "delivered_twice",
    "changed",
    "missing",
    "extra",
    "rebuilt",
)


@dataclass(frozen=True, slots=True)
class Stored:
    """An answer as it was stored; ``replayed`` when it was given before."""

    status: int
    answer: dict[str, Any]
    replayed: bool = False


class Store:
    """The cloud's SQLite file. Every method may be called from any thread."""

    def __init__(self, path: Path) -> None:
        self._sql = load("tallybook.demo", "cloud.sql")
        self._changed = Condition()
        self._under_way = 0
        fresh = not path.exists()
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._db.row_factory = sqlite3.Row
        # A cloud that is thrown away with the demo need not survive a power cut.
        self._db.executescript("pragma journal_mode = wal; pragma synchronous = off;")
        if fresh:
            self._db.executescript(self._sql["schema"])
        self._run("forget_unanswered", {})

    def close(self) -> None:
        """Close the file."""
        with self._changed:
            self._db.close()

    def arrive(self, request: Mapping[str, Any]) -> int:
        """Write a request into the ledger; returns its number for ``end``."""
        with self._changed:
            self._under_way += 1
            return int(self._run("arrive", request).lastrowid or 0)

    def end(self, request_id: int, status: int, replayed: bool, ended: str) -> None:
        """Write into the ledger what became of a request."""
        named = {"request_id": request_id, "status": status, "replayed": replayed, "ended": ended}
        with self._changed:
            self._run("end", named)
            self._under_way -= 1
            self._changed.notify_all()

    def register(self, key: str, digest: str, record: str) -> Stored | None:
        """None when this request is the first with ``key``; else the stored answer, waited for.

        Another body under the same key is answered 422; no answer in 30 s is answered 409.
        """
        named = {"idempotency_key": key, "request_digest": digest, "record": record}
        with self._changed:
            if self._run("register", named).rowcount:
                return None
            self._changed.wait_for(lambda: self._known(key)["status"] is not None, WAIT_S)
            known = self._known(key)
        if known["request_digest"] != digest:
            return Stored(422, {"error": "this key was used with another body"})
        if known["status"] is None:
            return Stored(409, {"error": "the first request with this key has no answer yet"})
        return Stored(known["status"], json.loads(known["answer"]), replayed=True)

    def accept(self, key: str, row: Mapping[str, Any]) -> Stored:
        """Store a row and its answer; wakes whoever waits for the key."""
        return self._answer(key, Stored(201, {"icao": row["icao"], "etag": etag(row)}), row)

    def refuse(self, key: str, reason: str) -> Stored:
        """Store a refusal as the answer; wakes whoever waits for the key."""
        return self._answer(key, Stored(422, {"error": reason}), None)

    def tamper(self, change: list[dict[str, Any]], delete: list[str], add: list[Any]) -> None:
        """Change, delete and add rows behind the system's back; all or none."""
        with self._changed, self._transaction():
            for changed in change:
                row = dict(self._run("row", changed).fetchone()) | changed
                self._tampered("put", row, "changed")
            for icao in delete:
                self._tampered("delete", {"icao": icao}, "missing")
            for row in add:
                self._tampered("put", row, "extra")

    def rows(self) -> list[dict[str, Any]]:
        """All rows, sorted by code."""
        with self._changed:
            return [dict(row) for row in self._run("rows", {})]

    def ledgers(self) -> dict[str, list[str]]:
        """Record ids by kind. Waits until no request is under way, at most 30 s."""
        with self._changed:
            self._changed.wait_for(lambda: self._under_way == 0, WAIT_S)
            return {
                kind: sorted(row["record"] for row in self._run(f"planted_{kind}", {}))
                for kind in LEDGERS
            }

    def _answer(self, key: str, stored: Stored, row: Mapping[str, Any] | None) -> Stored:
        named = {"idempotency_key": key, "status": stored.status}
        with self._changed:
            with self._transaction():
                if row is not None:
                    self._run("put", row)
                self._run("answer", named | {"answer": json.dumps(stored.answer)})
            self._changed.notify_all()
        return stored

    def _tampered(self, statement: str, row: Mapping[str, Any], kind: str) -> None:
        self._run(statement, row)
        self._run("tamper", {"record": row["icao"], "kind": kind})

    def _known(self, key: str) -> sqlite3.Row:
        known: sqlite3.Row = self._run("key", {"idempotency_key": key}).fetchone()
        return known

    def _run(self, name: str, values: Mapping[str, Any]) -> sqlite3.Cursor:
        return self._db.execute(self._sql[name], values)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("begin immediate")
        try:
            yield
        except BaseException:
            self._db.execute("rollback")
            raise
        self._db.execute("commit")


def etag(row: Mapping[str, Any]) -> str:
    """A tag of a row's content: equal for equal rows."""
    text = json.dumps(row, sort_keys=True, ensure_ascii=False).encode()
    return hashlib.blake2b(text, digest_size=8).hexdigest()
