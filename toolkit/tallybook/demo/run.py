"""The story of the demo, from the first job to the tally."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tallybook.book import Book
from tallybook.demo import airports, folder, killer, page, reading
from tallybook.demo.airports import TOPIC, Airport
from tallybook.demo.children import Children
from tallybook.demo.client import CloudClient
from tallybook.demo.delivering import deliver
from tallybook.demo.faults import Plan, plan
from tallybook.demo.folder import Folder
from tallybook.demo.handlers import TIMEOUT_S
from tallybook.demo.tally import Row, tally
from tallybook.demo.tampering import tampering
from tallybook.errors import BadInput, TallybookError
from tallybook.layout import FILE_MODE, Layout

NEEDED = ("airportsdata", "duckdb", "polars", "altair", "papermill", "vl_convert")

Progress = Callable[[str, int, int], None]
"""Called with a stage, how much of it is done, and how much there is."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a demo is asked. ``jobs`` None: all airports; ``node``: a fixed name for the log."""

    jobs: int | None = 5000
    seed: int = 1
    folder: Path = Path("tallybook-demo")
    node: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a demo came out: ten rows, and the page that leads to the reports."""

    rows: tuple[Row, ...]
    report: Path

    @property
    def holds(self) -> bool:
        """Whether all that was planted was found, and nothing else."""
        return all(row.holds for row in self.rows)


def run(settings: Settings, progress: Progress) -> Outcome:
    """Run the demo; no process is left, however it ends.

    Raises BadInput for a folder or a number that cannot be used, TallybookError when a part fails.
    """
    _require_extra()
    records = airports.airports(settings.jobs, settings.seed)
    told = {"seed": settings.seed, "jobs": len(records)}
    with (
        folder.fresh(settings.folder, told) as place,
        _ended_by_sigterm(),
        Children(place.processes) as children,
    ):
        planted = _record(settings, records, place, children, progress)
        place.planted.write_text(json.dumps(planted, indent=1) + "\n", "utf-8")
        _lose_and_rebuild(place, progress)
        answers = reading.read(children, place, progress)
    found = [(one["kind"], one["ids"]) for answer in answers for one in answer["findings"]]
    outcome = Outcome(tally(planted, found), place.report)
    page.write(place, outcome.rows, answers)
    return outcome


def _require_extra() -> None:
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise BadInput(f"the demo needs {missing[0]}; run: pip install 'tallybook[demo]'")


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """SIGTERM unwinds like Ctrl-C, so that no child is left; only in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _record(
    settings: Settings,
    records: list[Airport],
    place: Folder,
    children: Children,
    progress: Progress,
) -> dict[str, list[str]]:
    """Deliver all jobs, tamper, export; returns the three ledgers as one."""
    faults = plan(settings.seed, [airport.icao for airport in records], TIMEOUT_S)
    cloud = CloudClient.start(children, place, faults, [airport.icao for airport in records])
    _write_settings(place, settings)
    with Book.open(place.book) as book:
        _enqueue(book, records, faults, progress)
        killed = deliver(book, cloud.url, place, children, progress)
    progress("tamper and export", 0, 1)
    rows = {airport.icao: airport.row for airport in records}
    accepted = {record: rows[record] for record in cloud.ledgers()["rebuilt"]}
    cloud.tamper(tampering(settings.seed, accepted, list(rows)))
    cloud.export()
    progress("tamper and export", 1, 1)
    return cloud.ledgers() | killer.ledger(*killed)


def _enqueue(book: Book, records: list[Airport], faults: Plan, progress: Progress) -> None:
    """The victims' jobs come first, so that they hold one each before the others are taken."""
    first = [airport for airport in records if airport.icao in faults.victims]
    rest = [airport for airport in records if airport.icao not in faults.victims]
    for done, airport in enumerate([*first, *rest], start=1):
        book.enqueue(
            TOPIC,
            airport.row,
            idempotency_key=airport.idempotency_key,
            priority=int(airport.icao in faults.victims),
        )
        if done % 50 == 0 or done == len(records):
            progress("enqueue", done, len(records))


def _write_settings(place: Folder, settings: Settings) -> None:
    """Quick retries: the demo's cloud is back within a second."""
    lines = [
        "[worker]",
        "metrics_interval_s = 1.0",
        f'[topics."{TOPIC}"]',
        "backoff_first_s = 0.2",
        "backoff_cap_s = 2.0",
    ]
    if settings.node:
        lines += ["[node]", f'id = "{settings.node}"', f'host = "{settings.node}"']
    place.book.mkdir(mode=0o700)
    path = Layout(place.book).settings
    path.touch(mode=FILE_MODE)
    path.write_text("\n".join(lines) + "\n", "utf-8")


def _lose_and_rebuild(place: Folder, progress: Progress) -> None:
    """Delete the queue and the cache, and fold them anew from the log."""
    from tallybook import recover  # it brings DuckDB along

    progress("lose and rebuild", 0, 1)
    state = Layout(place.book).state
    for suffix in ("", "-wal", "-shm"):
        Path(f"{state}{suffix}").unlink(missing_ok=True)
    rebuilt = recover.rebuild(place.book)
    if not rebuilt.complete:
        raise TallybookError(f"demo: the log of {place.book} has holes; nothing is tallied")
    progress("lose and rebuild", 1, 1)
