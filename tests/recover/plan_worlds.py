"""Small worlds to repair: a book, a cloud that is a dictionary, and a story a key, by a seed.

The world knows by itself what happened to each key (``truth``); the book is not asked for it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tallybook import ops
from tallybook.book import Book
from tallybook.errors import Permanent, Retry
from tallybook.ids import parity
from tallybook.recover import plans
from tallybook.testing import FakeClock, run_inline

TOPIC = "rows.sync"
QUICK = '[log]\ndurability = "interval"\n'
"""Power is never cut here."""
Row = dict[str, Any]
Story = Iterator[None]


@dataclass
class Fact:
    """What happened to a key: ``here`` tells what moved on this side."""

    name: str
    here: bool = True


@dataclass
class World:
    """One node and its cloud."""

    root: Path
    seed: int
    clock: FakeClock = field(default_factory=FakeClock)
    cloud: dict[str, Row] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    facts: dict[str, list[Fact]] = field(default_factory=dict)
    answers: dict[str, list[str]] = field(default_factory=dict)
    cut_facts: dict[str, int] = field(default_factory=dict)
    covers: str | None = None

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)  # noqa: S311 - a test has to be repeatable
        self.root.mkdir(parents=True, exist_ok=True)
        (self.root / "book").mkdir()
        (self.root / "book" / "book.toml").write_text(QUICK)
        self.book = Book.open(self.root / "book", clock=self.clock)
        self.note("a", "seed")
        self.write("a", 1)
        self.deliver()

    # what devices and cloud do

    def note(self, key: str, name: str, *, here: bool = True) -> None:
        """Remember what happened."""
        self.facts.setdefault(key, []).append(Fact(name, here))

    def put(self, key: str, x: int, *, pending: bool = False) -> None:
        """A device writes, and nothing more."""
        self.book.put_entry(key, {"id": key, "x": x, "y": "same"}, pending=pending)
        self.note(key, "put")

    def write(self, key: str, x: int) -> str:
        """A device writes, and enqueues the delivery."""
        self.put(key, x, pending=True)
        value = {"id": key, "x": x, "y": "same"}
        receipt = self.book.enqueue(TOPIC, value, idempotency_key=f"{key}-{x}")
        self.note(key, "enqueued")
        return receipt.job_id

    def deliver(self) -> None:
        """Workers run what is due now."""
        run_inline(self.book, {TOPIC: self.handler})

    def drain(self) -> None:
        """The cloud takes everything from now on, and all that waits is delivered."""
        self.answers.clear()
        for _ in range(3):
            self.deliver()
            self.clock.advance(600)
        self.deliver()

    def handler(self, job: Any, ctx: Any) -> None:
        """Deliver a row as its story says, then write the cache."""
        key, answers = job.payload["id"], self.answers.get(job.payload["id"], [])
        answer = answers.pop(0) if answers else "ok"
        if answer == "refused":
            self.note(key, "dead")
            raise Permanent("too large", error_type="HTTP 413", http_status=413)
        if answer == "busy":
            raise Retry("busy", error_type="HTTP 503", http_status=503)
        self.accept(job, again=answer == "again")
        if answer == "lost":
            self.note(key, "lost")
            raise Retry("cut", error_type="AnswerLost")
        ctx.note(http_status=200, replayed=answer == "replayed")
        if answer != "uncached":
            ctx.cache.put(key, job.payload | ({"seen": 1} if answer == "reshaped" else {}))
        self.note(key, "done")

    def accept(self, job: Any, *, again: bool) -> None:
        """The cloud takes a row; one that it takes ``again`` it takes wrong."""
        row = dict(job.payload)
        if again:
            self.note(row["id"], "twice")
            row["x"] *= 2
        if again or job.idempotency_key not in self.seen:
            self.seen.add(job.idempotency_key)
            self.cloud[row["id"]] = row

    def tamper(self, key: str, x: int | None) -> None:
        """Somebody changes, adds or removes a row of the cloud."""
        name = "removed" if x is None else "changed" if key in self.cloud else "added"
        self.note(key, name, here=False)
        if x is None:
            self.cloud.pop(key, None)
        else:
            self.cloud[key] = {"id": key, "x": x, "y": "same"}

    def export(self, name: str) -> Path:
        """The cloud writes all its rows, with the place in the log that they cover."""
        lines = [f"{row['id']},{row['x']},{row['y']}" for _, row in sorted(self.cloud.items())]
        path = self.root / f"{name}.csv"
        path.write_text("\n".join(["id,x,y", *lines]) + "\n")
        position = self.book.position()
        self.covers = f"{position.writer}:{position.seq}"
        self.cut_facts = {key: len(facts) for key, facts in self.facts.items()}
        self.exported = {key: dict(row) for key, row in self.cloud.items()}
        return path

    # what is true

    def truth(self) -> dict[str, str]:
        """The true cause of each key that differs from the export."""
        local = {entry.key: entry.value for entry in self.book.entries(10_000)}
        keys = sorted(local.keys() | self.exported.keys())
        differing = [key for key in keys if local.get(key) != self.exported.get(key)]
        return {key: self._cause(key, local) for key in differing}

    def _cause(self, key: str, local: dict[str, Any]) -> str:
        facts = self.facts.get(key, [])
        names = [fact.name for fact in facts]
        moved = [fact for fact in facts[self.cut_facts.get(key, 0) :] if fact.here]
        if self.is_open(key) or moved:
            return "in_flight"
        last = next((n for n in reversed(names) if n in ("dead", "cancelled", "done")), None)
        if last in ("dead", "cancelled"):
            return str(last)
        if key not in local:
            return "removed_here" if "forgotten" in names else (
                "not_cached" if last == "done" else "added_in_cloud"
            )  # fmt: skip
        if key not in self.exported:
            return "removed_in_cloud" if last == "done" else "never_enqueued"
        if last is None or "put" in names[len(names) - names[::-1].index("done") :]:
            return "never_enqueued"
        return "applied_twice" if "twice" in names else "changed_in_cloud"

    def is_open(self, key: str) -> bool:
        """Whether a job about the key is pending or leased."""
        return any(job.payload["id"] == key for job in self.book.jobs(status="pending"))

    # what is asked

    def explain(self, export: Path) -> ops.Explained:
        """Why rows differ from ``export``, by the log alone."""
        flight = ops.Flight(self.covers, at=self.clock.moment().now)
        with ops.open(self.root / "book") as warehouse:
            return ops.explain(warehouse, export, key="id", flight=flight)

    def plan(self, export: Path, policy: str) -> tuple[Path, plans.Plan]:
        """A plan for the differences from ``export``, and its file."""
        begun = plans.begin(self.root / "book")
        flight = ops.Flight(self.covers, at=self.clock.moment().now)
        with ops.open(self.root / "book") as warehouse:
            explained = ops.explain(warehouse, export, key="id", flight=flight)
            plan = plans.make(begun, warehouse, explained, export, policy)
        path = self.root / f"plan-{plan.head.plan}.ndjson"
        plans.write(path, plan)
        return path, plan

    def apply(self, path: Path, **options: Any) -> plans.Applied:
        """Apply a plan."""
        return plans.apply(self.root / "book", path, clock=self.clock, **options)

    def undo(self, path: Path, **options: Any) -> plans.Applied:
        """Undo a plan."""
        return plans.undo(self.root / "book", path, clock=self.clock, **options)

    def state(self) -> tuple[str, dict[str, list[str]]]:
        """The digest of the cache, and the jobs that are pending or dead."""
        entries = ((entry.key, entry.value) for entry in self.book.entries(10_000))
        jobs = {
            status: sorted(job.job_id for job in self.book.jobs(status=status, limit=10_000))
            for status in ("pending", "dead")
        }
        return parity(entries), jobs


def stories() -> dict[str, Callable[[World, str], Story]]:
    """What may happen to a key, a step a ``yield``."""
    return {
        name.removeprefix("_"): story
        for name, story in globals().items()
        if name.startswith("_") and getattr(story, "__annotations__", {}).get("return") == "Story"
    }


def _settled(world: World, key: str) -> Story:
    world.write(key, 1)
    yield
    world.deliver()


def _dead(world: World, key: str) -> Story:
    world.answers[key] = ["refused"]
    world.write(key, 1)
    yield
    world.deliver()


def _dead_update(world: World, key: str) -> Story:
    yield from _settled(world, key)
    world.deliver()
    yield
    world.answers[key] = ["refused"]
    world.write(key, 2)
    world.deliver()


def _changed(world: World, key: str) -> Story:
    yield from _settled(world, key)
    world.deliver()
    yield
    world.tamper(key, 7)


def _removed(world: World, key: str) -> Story:
    yield from _settled(world, key)
    world.deliver()
    yield
    world.tamper(key, None)


def _added(world: World, key: str) -> Story:
    yield
    world.tamper(key, 5)


def _forgotten(world: World, key: str) -> Story:
    yield from _settled(world, key)
    world.deliver()
    yield
    world.book.invalidate(key)
    world.note(key, "forgotten")


def _never(world: World, key: str) -> Story:
    yield
    world.put(key, 3)


def _never_since(world: World, key: str) -> Story:
    yield from _settled(world, key)
    world.deliver()
    yield
    world.put(key, 4)


def _twice(world: World, key: str) -> Story:
    yield from _lost(world, key, "again")


def _replayed(world: World, key: str) -> Story:
    yield from _lost(world, key, "replayed")


def _lost(world: World, key: str, then: str) -> Iterator[None]:
    """An answer is lost, and the next delivery gets the answer ``then``; no story of its own."""
    world.answers[key] = ["lost", then]
    world.write(key, 6)
    world.deliver()
    yield
    world.clock.advance(60)
    world.deliver()


def _waiting(world: World, key: str) -> Story:
    world.answers[key] = ["busy"] * 9
    yield
    world.write(key, 8)
    world.deliver()


def _updated(world: World, key: str) -> Story:
    yield from _settled(world, key)
    world.deliver()
    yield
    world.write(key, 9)
    yield
    world.deliver()


def _cancelled(world: World, key: str) -> Story:
    job_id = world.write(key, 1)
    if world.book.steer("cancel", [job_id], "by hand"):
        world.note(key, "cancelled")
    yield


def _uncached(world: World, key: str) -> Story:
    world.answers[key] = ["uncached"]
    world.book.enqueue(TOPIC, {"id": key, "x": 2, "y": "same"}, idempotency_key=f"{key}-2")
    world.note(key, "enqueued")
    yield
    world.deliver()


def lived(root: Path, seed: int) -> tuple[World, Path]:
    """A world in which each story is at some point, and the export that was cut at a random
    moment."""
    world = World(root, seed)
    running = [story(world, name) for name, story in stories().items()]
    world.dice.shuffle(running)
    steps = world.dice.randrange(len(running), 3 * len(running))
    cut = world.dice.randrange(steps)
    export = world.root / "first.csv"
    for step in range(steps):
        if step == cut:
            export = world.export("first")
        at = world.dice.randrange(len(running)) if running else 0
        if running and next(running[at], "ended") == "ended":
            running.pop(at)
        world.clock.advance(1)
    return world, export


def ended(root: Path) -> tuple[World, Path]:
    """A world in which each story was told to its end, and an export of then, two hours later."""
    world = World(root, 0)
    for name, story in stories().items():
        list(story(world, name))
    world.clock.advance(7200)
    return world, world.export("end")
