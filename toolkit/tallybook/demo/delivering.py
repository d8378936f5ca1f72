"""Delivering: workers, two victims among them, and what the killer does to those."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from tallybook.book import Book
from tallybook.demo import killer
from tallybook.demo.airports import TOPIC
from tallybook.demo.children import Children
from tallybook.demo.folder import Folder
from tallybook.demo.handlers import CLOUD, DEMO_PID, VICTIM
from tallybook.demo.killer import Victim
from tallybook.errors import TallybookError

VICTIM_LEASE_S = 5
LEASE_S = 60
WORKERS = ("worker-1", "worker-2")
REPLACEMENT = "replacement"
KILLED, STOPPED = "killed", "stopped"
STRIKE_AT = 0.2
STALL_S = 90.0
LOOK_S = 0.1
_FINAL = ("done", "dead")


class _Watch:
    """Looks at the book and the processes each time it is asked how far the jobs are."""

    def __init__(
        self, book: Book, children: Children, progress: Callable[[str, int, int], None]
    ) -> None:
        self.stage = "deliver"
        self._book = book
        self._children = children
        self._progress = progress

    def settled(self) -> float:
        """The share of jobs that are done or dead; raises when a worker ended badly."""
        self._children.check(KILLED)
        counts = self._book.counts().get(TOPIC, {})
        total = sum(counts.values())
        settled = sum(counts.get(status, 0) for status in _FINAL)
        self._progress(self.stage, settled, total)
        return settled / total


def deliver(
    book: Book,
    cloud_url: str,
    place: Folder,
    children: Children,
    progress: Callable[[str, int, int], None],
) -> tuple[Victim, Victim]:
    """Deliver all jobs of the book; returns the victim that was killed and the one stopped."""
    start = _Starter(cloud_url, place, children)
    watch = _Watch(book, children, progress)
    victims = [start.victim(KILLED), start.victim(STOPPED)]
    for name in WORKERS:
        start.worker(name)
    _until(lambda: watch.settled() >= STRIKE_AT, watch, "a fifth of the jobs")
    killed, stopped = victims
    killer.kill(book, killed)
    killer.stop(book, stopped)
    start.worker(REPLACEMENT, threads=1)
    watch.stage = "deliver with one worker killed and one stopped"
    _until(lambda: killer.is_settled_by_another(book, stopped), watch, "the rescue of a job")
    killer.wake(stopped)
    watch.stage = "deliver to the end"
    ended = (*WORKERS, REPLACEMENT, STOPPED)
    _until(lambda: children.ended(*ended), watch, "the end of all workers")
    if watch.settled() < 1:
        raise TallybookError("demo: the workers ended and left jobs open")
    return killed, stopped


class _Starter:
    """Starts worker processes for one book and one cloud."""

    def __init__(self, cloud_url: str, place: Folder, children: Children) -> None:
        self._cloud_url = cloud_url
        self._place = place
        self._children = children

    def worker(self, name: str, threads: int = 4) -> None:
        """A worker that goes on until no job is open."""
        self._children.start(name, self._arguments(name, threads, LEASE_S), self._env())

    def victim(self, name: str) -> Victim:
        """A worker with one thread and a short lease, once it holds a job and waits."""
        report = self._place.processes / f"{name}.json"
        env = self._env() | {VICTIM: str(report)}
        process = self._children.start(name, self._arguments(name, 1, VICTIM_LEASE_S), env)
        return killer.victim(report, process, self._children)

    def _env(self) -> dict[str, str]:
        return {CLOUD: self._cloud_url, DEMO_PID: str(os.getpid())}

    def _arguments(self, name: str, threads: int, lease_s: int) -> list[str]:
        given = {
            "--book": str(self._place.book),
            "--name": name,
            "--threads": str(threads),
            "--topics": TOPIC,
            "--lease": str(lease_s),
        }
        options = [part for option in given.items() for part in option]
        return [
            "-m",
            "tallybook",
            "worker",
            "tallybook.demo.handlers",
            "--drain",
            *options,
        ]


def _until(condition: Callable[[], bool], watch: _Watch, what: str) -> None:
    """Wait for as long as jobs are being settled; a stall of 90 s is a failure."""
    most, since = 0.0, time.monotonic()
    while not condition():
        settled = watch.settled()
        if settled > most:
            most, since = settled, time.monotonic()
        elif time.monotonic() - since > STALL_S:
            raise TallybookError(f"demo: {what} did not come; no job ended for {STALL_S:g} s")
        time.sleep(LOOK_S)
