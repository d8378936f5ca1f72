"""state.db is lost and rebuilt under four running workers, with a cloud that keeps count."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tallybook import Book
from tallybook.layout import Layout
from tallybook.log.verify import verify
from tallybook.recover import rebuild

JOBS = 160
HANDLERS = """
import os
from tallybook import handler
from tallybook.delivery import post

@handler("a")
def send(job, ctx):
    post(os.environ["CLOUD"], job)
    ctx.cache.put(f"k{job.payload % 7}", job.payload)
"""


class Cloud(ThreadingHTTPServer):
    """Applies a key once; what comes again is answered and counted."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Door)
        self.lock = threading.Lock()
        self.applied: Counter[str] = Counter()
        self.came: Counter[str] = Counter()

    def take(self, key: str) -> None:
        with self.lock:
            self.came[key] += 1
            if self.came[key] == 1:
                self.applied[key] += 1


class Door(BaseHTTPRequestHandler):
    """One delivery a request."""

    server: Cloud

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.take(self.headers["Idempotency-Key"].strip('"'))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def listening() -> Iterator[Cloud]:
    with Cloud() as cloud:
        threading.Thread(target=cloud.serve_forever, args=(0.01,), daemon=True).start()
        yield cloud
        cloud.shutdown()


def done(root: Path) -> int:
    """How many jobs are done, by the log alone."""
    texts = [path.read_bytes() for path in (root / "log").glob("*.ndjson")]
    return sum(text.count(b'"event":"job.done"') for text in texts)


def test_a_state_that_is_deleted_and_rebuilt_under_four_workers_loses_and_doubles_nothing(
    tmp_path: Path,
) -> None:
    root = tmp_path / "b"
    (tmp_path / "work.py").write_text(HANDLERS)
    with listening() as cloud:
        with Book.open(root) as book:
            keys = {
                book.enqueue("a", n, idempotency_key=f"key-{n}") and f"key-{n}" for n in range(JOBS)
            }
        command = [sys.executable, "-m", "tallybook", "worker", "work", "--processes", "4"]
        workers = subprocess.Popen(
            [*command, "--drain", "--book", str(root)],
            cwd=tmp_path,
            env={"CLOUD": f"http://127.0.0.1:{cloud.server_address[1]}/", "PATH": ""},
        )
        deadline = time.monotonic() + 120
        for goal in (10, 50, 90):
            while done(root) < goal and time.monotonic() < deadline:
                time.sleep(0.005)
            if goal == 50:
                assert rebuild(root).complete
            else:
                (root / "state.db").unlink(missing_ok=True)
        assert workers.wait(timeout=120) == 0
        with Book.open(root) as book:
            assert book.counts() == {"a": {"done": JOBS}}
            assert len(book.entries()) == 7
        assert set(cloud.applied) == keys
        assert set(cloud.applied.values()) == {1}
    assert done(root) == JOBS
    assert verify(Layout(root)).complete
    assert rebuild(root).complete
