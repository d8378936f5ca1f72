"""Importing in tests: a log in, jobs as plain rows out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tallybook import ops
from tallybook.ops import imports

SAMPLES = Path(__file__).parent / "samples"
_ROWS = """
    select job_id, topic, status, created_at, first_started_at, finished_at, worker, wait_s, run_s
    from jobs
    order by position, enqueued_seq
"""


def at(text: str) -> str:
    """A time of the first of May 2024 as the rows here have it."""
    return f"2024-05-01T{text}+00:00"


def jobs(book: Path) -> dict[str, tuple[Any, ...]]:
    """{id: (topic, status, created, first start, end, worker)}, times as ISO text in UTC."""
    with ops.open(book) as warehouse:
        found = warehouse.sql(_ROWS).fetchall()
    return {row[0]: (*row[1:3], *map(_text, row[3:6]), row[6]) for row in found}


def waits(book: Path) -> dict[str, tuple[float | None, float | None]]:
    """{id: (wait_s, run_s)}."""
    with ops.open(book) as warehouse:
        return {row[0]: row[7:] for row in warehouse.sql(_ROWS).fetchall()}


def _text(moment: Any) -> str | None:
    return None if moment is None else moment.isoformat()


def imported(
    folder: Path, text: str, toml: str, name: str = "log.csv", **options: Any
) -> imports.Imported:
    """Import ``text`` with the profile ``toml`` into ``folder / "book"``."""
    file, profile = folder / name, folder / "p.toml"
    file.write_text(text, "utf-8", newline="")
    profile.write_text(toml, "utf-8")
    return imports.import_jobs([file], str(profile), folder / "book", **options)


CSV = """
[columns]
id = "id"
topic = "queue"
submit = "submit"
start = "start"
end = "end"
status = "state"

[status]
pending = ["queued"]
leased = ["running"]
done = ["ok"]
dead = ["bad*"]
cancelled = ["gone"]
"""

EVENTS = """
[read]
rows = "events"

[columns]
id = "id"
event = "what"
at = "at"

[events]
submit = ["submit"]
start = ["start"]
done = ["end"]
dead = ["fail"]
retry = ["retry"]
ignore = ["note"]
"""
HEAD = "id,queue,submit,start,end,state\n"
EVENT_HEAD = "id,what,at\n"
