"""An incident to find: a log of an evening, by a seed, with three faults in it.

    python -m tallybook.demo.incident BOOK [--seed N] [--answers FILE]

Ten workers of four threads do the jobs of four topics; each topic calls two endpoints. From some
minute on one endpoint of one topic is slow; at some moment two workers hang with what they hold;
for some minutes one topic is refused and tried again and again. Which, and when, the seed decides.
The answers are written to a file before the log, and nothing in the log names them.
"""

from __future__ import annotations

import argparse
import heapq
import random
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any

import orjson

from tallybook.errors import BadInput
from tallybook.layout import FILE_MODE, FOLDER_MODE

START = datetime(2026, 11, 28, 18, 0, tzinfo=UTC)
MINUTES = 90
TOPICS = ("orders.sync", "stock.sync", "prices.sync", "photos.sync")
WORKERS = tuple(f"till-{number:02d}" for number in range(1, 11))
_THREADS, _JOBS_PER_S, _LEASE_S = 4, 4.0, 60
_RUN_S, _SLOWER, _REFUSED, _STORM_MINUTES = 0.3, 15, 0.85, 6
_BOOT = "5f0c1b1e-0000-4000-8000-000000000001"
Later = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Answers:
    """What is planted; moments are seconds after the start of the log."""

    seed: int
    slow_topic: str
    slow_endpoint: str
    slow_from_s: float
    hung_workers: tuple[str, ...]
    hung_at_s: float
    storm_topic: str
    storm_error: str
    storm_from_s: float
    storm_until_s: float

    @classmethod
    def of(cls, seed: int) -> Answers:
        """The faults of a seed, each in a third of the evening of its own."""
        dice = random.Random(f"answers {seed}")  # noqa: S311 - by a seed
        thirds = [8, 35, 62]
        dice.shuffle(thirds)
        slow, hung, storm = (60 * (minute + dice.random() * 12) for minute in thirds)
        topics = dice.sample(TOPICS, 2)
        return cls(
            seed, topics[0], dice.choice(endpoints(topics[0])), slow,
            tuple(sorted(dice.sample(WORKERS, 2))), hung,
            topics[1], dice.choice(("HTTP 503", "HTTP 429")), storm, storm + 60 * _STORM_MINUTES,
        )  # fmt: skip

    def as_json(self) -> bytes:
        """The answers, with the times as the clock shows them."""
        told = asdict(self)
        for name in [name for name in told if name.endswith("_s")]:
            told[name.removesuffix("_s")] = _text(told.pop(name))
        return orjson.dumps(told, option=orjson.OPT_INDENT_2) + b"\n"


def endpoints(topic: str) -> tuple[str, str]:
    """The two endpoints that the jobs of a topic call."""
    name = topic.partition(".")[0]
    return f"POST /{name}", f"PUT /{name}/details"


def write(book: Path, answers: Answers) -> int:
    """Write the log of the evening into a new book; how many lines. Raises BadInput where there is
    something already."""
    if book.exists():
        raise BadInput(f"{book} is there already: name a folder that is not")
    (book / "log").mkdir(mode=FOLDER_MODE, parents=True)
    writer = f"{random.Random(answers.seed).getrandbits(128):032x}"  # noqa: S311 - by a seed
    path = book / "log" / f"{writer[:8]}-{1:012d}.ndjson"
    with _private(path) as file:
        return _Evening(answers, file, writer).run()


class _Evening:
    """A queue in simulated time. ``at`` is always in seconds after the start."""

    def __init__(self, answers: Answers, file: IO[bytes], writer: str) -> None:
        self.answers, self.file, self.writer, self.seq = answers, file, writer, 0
        self.dice = random.Random(answers.seed)  # noqa: S311 - by a seed
        self.ahead: list[tuple[float, int, Later]] = []
        self.pending: deque[tuple[_Order, int, int, int]] = deque()
        self.idle = deque(worker for _ in range(_THREADS) for worker in WORKERS)
        self.holding: set[str] = set()
        self.order = 0

    def run(self) -> int:
        """Write the whole evening; how many lines."""
        self._open()
        self._later(self.answers.hung_at_s, self._hang)
        at, end = 1.0, MINUTES * 60.0
        while at < end:
            self._later(at, self._arrive)
            at += self.dice.expovariate(_JOBS_PER_S)
        while self.ahead:
            at, _, do = heapq.heappop(self.ahead)
            do(at)
        return self.seq

    def _open(self) -> None:
        opened = {"writer": self.writer, "node_id": "shop-1", "host": "shop", "pid": 7,
                  "boot_id": _BOOT, "versions": {"tallybook": "0.1.0"},
                  "previous_hash": "00" * 32}  # fmt: skip
        self._line("log.opened", 0, opened)
        for worker in WORKERS:
            started = {"worker": worker, "host": "shop", "pid": 7, "threads": _THREADS}
            self._line("worker.started", 0, started | {"topics": list(TOPICS)})

    def _later(self, at: float, do: Later) -> None:
        self.order += 1
        heapq.heappush(self.ahead, (at, self.order, do))

    def _line(self, event: str, at: float, fields: dict[str, Any]) -> None:
        self.seq += 1
        line = {"v": 1, "seq": self.seq, "event": event, "occurred_at": _text(at),
                "boot_us": round(at * 1e6)} | fields  # fmt: skip
        self.file.write(orjson.dumps(line) + b"\n")

    def _arrive(self, at: float) -> None:
        topic = self.dice.choice(TOPICS)
        number = self.seq
        tail = f"7000-8000-{self.dice.getrandbits(48):012x}"
        job = f"0193{number >> 16:04x}-{number & 0xFFFF:04x}-{tail}"
        order = _Order(job, topic, self.dice.choice(endpoints(topic)), f"{topic}-{number}")
        payload = {"id": number, "text": "x" * self.dice.choice((20, 100, 400, 1200))}
        self._line("job.enqueued", at, order.named() | {
            "payload": payload, "payload_digest": f"{number:032x}", "priority": 0,
            "idempotency_key": order.key, "max_attempts": 20,
        })  # fmt: skip
        self._offer((order, 1, 0, 0), at)

    def _offer(self, again: tuple[_Order, int, int, int], at: float) -> None:
        """A job may be claimed: its order, next token, attempts and rescues."""
        self.pending.append(again)
        self._claim(at)

    def _claim(self, at: float) -> None:
        """Idle threads take what is pending; those of a worker that hangs and holds a lease take
        nothing more."""
        while self.pending and self.idle:
            worker = self.idle.popleft()
            if self._hangs(worker, at) and worker in self.holding:
                continue
            lease = _Lease(*self.pending.popleft(), worker)
            self._line("job.leased", at, lease.held() | {
                "lease_ms": _LEASE_S * 1000, "locked_until": _text(at + _LEASE_S),
                "attempt_count": lease.attempts, "rescue_count": lease.rescues,
            })  # fmt: skip
            self._begin(lease, at + self.dice.uniform(0.001, 0.01))

    def _begin(self, lease: _Lease, started: float) -> None:
        """The handler runs; where its worker hangs before it ends, the lease runs out."""
        ends = started + self._run_s(lease.order, started)
        if self._hangs(lease.worker, ends):
            self.holding.add(lease.worker)
            self._later(started + _LEASE_S, lambda at: self._expire(lease, at))
        else:
            self._later(ends, lambda at: self._end(lease, started, at))

    def _hang(self, _: float) -> None:
        """Two workers hang: one that holds nothing takes the next job, else nobody could see it."""
        for worker in self.answers.hung_workers:
            if worker not in self.holding:
                self.idle.remove(worker)
                self.idle.appendleft(worker)

    def _run_s(self, order: _Order, at: float) -> float:
        slow = order.endpoint == self.answers.slow_endpoint and at >= self.answers.slow_from_s
        return _RUN_S * self.dice.lognormvariate(0, 0.5) * (_SLOWER if slow else 1)

    def _hangs(self, worker: str, at: float) -> bool:
        return worker in self.answers.hung_workers and at >= self.answers.hung_at_s

    def _expire(self, lease: _Lease, at: float) -> None:
        fields = {"locked_until": _text(at), "rescue_count": lease.rescues + 1, "reason": "expired"}
        self._line("job.lease_expired", at, lease.held() | fields)
        self._offer((lease.order, lease.token + 1, lease.attempts, lease.rescues + 1), at)

    def _end(self, lease: _Lease, started: float, at: float) -> None:
        """done, refused for now, or refused for good."""
        ran = lease.held() | {
            "started_at": _text(started), "duration_ms": round((at - started) * 1000, 3),
            "attempt_count": lease.attempts + 1, "endpoint": lease.order.endpoint,
        }  # fmt: skip
        chance, error = self.dice.random(), self._refusal(lease.order, at)
        if error:
            self._retry(lease, at, ran, error)
        elif chance < 0.002:
            died = {"http_status": 422, "error_type": "HTTP 422", "error": "refused"}
            self._line("job.dead", at, ran | died | {"reason": "permanent"})
        else:
            entry = {"key": lease.order.key, "value": {"ok": True}, "version": 1}
            self._line("cache.put", at, entry | {"job_id": lease.order.job_id})
            self._line("job.done", at, ran | {"http_status": 200})
        self.idle.append(lease.worker)
        self._claim(at)

    def _refusal(self, order: _Order, at: float) -> str:
        """The error of this attempt, or empty: one in a hundred, and most in the storm."""
        told = self.answers
        storms = order.topic == told.storm_topic and told.storm_from_s <= at < told.storm_until_s
        if self.dice.random() < (_REFUSED if storms else 0.01):
            return told.storm_error if storms else "HTTP 502"
        return ""

    def _retry(self, lease: _Lease, at: float, ran: dict[str, Any], error: str) -> None:
        delay = self.dice.uniform(1, 4)
        self._line("job.retry_scheduled", at, ran | {
            "http_status": int(error[-3:]), "error_type": error,
            "error": f"{lease.order.endpoint}: {error}", "delay_ms": round(delay * 1000),
            "next_attempt_at": _text(at + delay),
        })  # fmt: skip
        again = (lease.order, lease.token + 1, lease.attempts + 1, lease.rescues)
        self._later(at + delay, lambda now: self._offer(again, now))


@dataclass(frozen=True, slots=True)
class _Order:
    """A job, and the endpoint that it calls."""

    job_id: str
    topic: str
    endpoint: str
    key: str

    def named(self) -> dict[str, Any]:
        return {"job_id": self.job_id, "topic": self.topic, "correlation_id": f"order-{self.key}"}


@dataclass(frozen=True, slots=True)
class _Lease:
    """A claim of a job: the order, its token and counts, and who holds it."""

    order: _Order
    token: int
    attempts: int
    rescues: int
    worker: str

    def held(self) -> dict[str, Any]:
        return self.order.named() | {"worker": self.worker, "lease_token": self.token}


def _text(at: float) -> str:
    moment = START + timedelta(microseconds=round(at * 1e6))
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


@contextmanager
def _private(path: Path) -> Iterator[IO[bytes]]:
    path.touch(mode=FILE_MODE)
    with path.open("wb", buffering=1 << 20) as file:
        yield file


def main(arguments: list[str]) -> int:
    """Write answers, then the log."""
    parser = argparse.ArgumentParser(prog="python -m tallybook.demo.incident")
    parser.add_argument("book", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--answers", type=Path, help="default: BOOK-answers.json")
    args = parser.parse_args(arguments)
    answers = Answers.of(args.seed)
    kept = args.answers or args.book.with_name(f"{args.book.name}-answers.json")
    try:
        if not args.book.exists():
            kept.write_bytes(answers.as_json())
        lines = write(args.book, answers)
    except (BadInput, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"{lines:,} events in {args.book}; the answers are in {kept}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
