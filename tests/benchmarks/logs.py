"""A log of any size, by a seed: jobs that arrive, run, fail, come back late; written as fast as
Python can, in segments as the runtime cuts them.

    python -m tests.benchmarks.logs BOOK EVENTS [TORN_EVERY]
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

START = datetime(2026, 11, 29, 10, 0, tzinfo=UTC)
WRITER = "0190aaaa" + "0" * 24
SEGMENT_BYTES = 64 * 1024 * 1024
_RING, _STEP_US = 4096, 2000
_HEAD = '{"v":1,"seq":%d,"event":"%s","occurred_at":"%s","boot_us":%d'
_OPENED = (
    ',"writer":"%s","node_id":"node-1","host":"host-1","pid":7,"boot_id":"boot-1",'
    '"versions":{"tallybook":"0.1.0"},"previous_hash":"%s"}\n'
)

Later = Callable[[], None]


def write_book(book: Path, events: int, seed: int = 1, torn_every: int = 0) -> Path:
    """A book whose log has ``events`` lines, each ``torn_every``-th of them cut in half.

    A job has 3.4 events: 1 in 16 attempts is retried, 1 job in 100 dies, 1 lease in 256 runs out
    and its holder comes back late, 1 job in 4 writes the cache.
    """
    (book / "log").mkdir(parents=True)
    _History(book / "log", events, random.Random(seed), torn_every).run()  # noqa: S311 - by a seed
    return book


class _History:
    def __init__(self, log: Path, events: int, dice: random.Random, torn_every: int) -> None:
        self.log, self.events, self.dice, self.torn_every = log, events, dice, torn_every
        self.seq, self.step, self.room, self.chain = 0, 0, 0, bytes(32)
        self.file: BinaryIO | None = None
        self.ring: list[list[Later]] = [[] for _ in range(_RING)]

    def run(self) -> None:
        """Write every line; a job arrives each step, what is due at a step happens in it."""
        while self.seq < self.events:
            due, self.ring[self.step % _RING] = self.ring[self.step % _RING], []
            for event in due:
                event()
            self.arrive()
            self.step += 1
        if self.file:
            self.file.close()

    def text(self, ahead_us: int = 0) -> str:
        """The time so long after this step."""
        seconds, rest = divmod(self.step * _STEP_US + ahead_us, 1_000_000)
        return _second(seconds) + f".{rest:06d}Z"

    def line(self, name: str, rest: str) -> None:
        """Append one event, in a new segment where this one is full."""
        if self.seq >= self.events:
            return
        if self.room <= 0:
            self.open_segment()
        self.write(name, rest)

    def write(self, name: str, rest: str) -> None:
        """One line, torn where its turn has come."""
        self.seq += 1
        line = ((_HEAD % (self.seq, name, self.text(), self.step * _STEP_US)) + rest).encode()
        if self.torn_every and self.seq % self.torn_every == self.torn_every // 2:
            line = line[: len(line) // 2] + b"\n"
        self.room -= len(line)
        self.chain = blake2b(self.chain + line[:-1], digest_size=32).digest()
        if self.file:
            self.file.write(line)

    def open_segment(self) -> None:
        """Close the full segment and open the next."""
        if self.file:
            self.file.close()
        path = self.log / f"{WRITER[:8]}-{self.seq + 1:012d}.ndjson"
        self.file, self.room = path.open("wb", buffering=1 << 20), SEGMENT_BYTES
        self.write("log.opened", _OPENED % (WRITER, self.chain.hex()))

    def later(self, steps: int, do: Later) -> None:
        """Do something so many steps from now."""
        self.ring[(self.step + 1 + steps) % _RING].append(do)

    def arrive(self) -> None:
        """A job is enqueued, and claimed a little later."""
        job = f"0193{self.step:08x}-7000-8000-{self.dice.getrandbits(48):012x}"
        topic = f"topic-{self.step % 7}"
        named = f',"job_id":"{job}","topic":"{topic}"'
        payload = f'"payload":{{"id":{self.step},"name":"n{self.dice.getrandbits(32)}"}}'
        key = f'"idempotency_key":"key-{self.step}","max_attempts":10}}\n'
        self.line("job.enqueued", f'{named},{payload},"payload_digest":"{job[-12:]}",{key}')
        self.later(self.dice.getrandbits(5), lambda: self.claim(named, 1))

    def claim(self, named: str, token: int) -> None:
        """A worker takes the job, and its run ends some way."""
        held = f'{named},"worker":"host-1-{self.step & 15:08x}","lease_token":{token}'
        until = self.text(60_000_000)
        self.line("job.leased", f'{held},"lease_ms":60000,"locked_until":"{until}"'
                  f',"attempt_count":{token - 1},"rescue_count":0}}\n')  # fmt: skip
        started, lag = self.text(700), int(self.dice.lognormvariate(4, 0.8)) % 1000
        self.later(lag, lambda: self.end(named, held, started, token, lag * _STEP_US / 1000))

    def end(self, named: str, held: str, started: str, token: int, ms: float) -> None:
        """done, retry, dead, or a lease that ran out."""
        chance = self.dice.getrandbits(8)
        ran = f'{held},"started_at":"{started}","duration_ms":{ms},"attempt_count":{token}'
        if chance == 0:
            self.line("job.lease_expired", f'{held},"rescue_count":1,"reason":"expired"}}\n')
            self.later(5, lambda: self.claim(named, token + 1))
            self.later(9, lambda: self.line("job.settle_refused", f'{held},"settle":"done"}}\n'))
        elif chance <= 16:
            failed = ',"http_status":503,"error_type":"HTTP 503","error":"POST /x: HTTP 503"'
            self.line("job.retry_scheduled", f'{ran}{failed},"delay_ms":1000}}\n')
            self.later(500, lambda: self.claim(named, token + 1))
        elif chance <= 19:
            failed = ',"http_status":422,"error_type":"HTTP 422","error":"refused"'
            self.line("job.dead", f'{ran}{failed},"reason":"permanent"}}\n')
        else:
            self.done(named, ran)

    def done(self, named: str, ran: str) -> None:
        """The handler returned; one in four wrote the cache."""
        if not self.step % 4:
            entry = f'"key":"key-{self.step % 50_021}","value":{{"n":{self.step}}},"version":1'
            self.line("cache.put", f",{entry},{named[1:]}}}\n")
        self.line("job.done", f'{ran},"http_status":200,"endpoint":"POST /x"}}\n')


_seconds: dict[int, str] = {}


def _second(number: int) -> str:
    """The second ``number`` as text; the last few are kept, as formatting one is dear."""
    if number not in _seconds:
        if len(_seconds) > 1000:
            _seconds.clear()
        _seconds[number] = (START + timedelta(seconds=number)).strftime("%Y-%m-%dT%H:%M:%S")
    return _seconds[number]


if __name__ == "__main__":
    torn = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    write_book(Path(sys.argv[1]), int(sys.argv[2]), torn_every=torn)
