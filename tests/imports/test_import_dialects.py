"""Any list of jobs, written out in any dialect and imported, gives the same jobs."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from zoneinfo import ZoneInfo

import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from import_steps import imported, jobs
from polars.testing import assert_frame_equal

from tallybook import ops
from tallybook.ops import imports
from tallybook.ops.imports import mapping

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
WORDS = {"done": "ok", "dead": "bad", "cancelled": "gone", "leased": "runs", "pending": "waits"}
STEPS = {"done": "ended", "dead": "failed", "cancelled": "stopped"}
TEXT = st.text("aZ09 ,;|\"'/äλ-_.:", min_size=1, max_size=6).map(str.strip).filter(bool)


@dataclass(frozen=True, slots=True)
class Job:
    """A job; times in milliseconds since 1970, a start or an end may be missing or early."""

    id: str
    topic: str
    worker: str
    submit: int
    start: int | None
    end: int | None
    ends: str

    @property
    def status(self) -> str:
        if self.end is not None:
            return self.ends
        return "pending" if self.start is None else "leased"

    def expected(self) -> tuple[str | None, ...]:
        started = None if self.start is None else self.worker
        return (self.topic, self.status, *map(_iso, (self.submit, self.start, self.end)), started)


def _moment(ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=ms)


def _iso(ms: int | None) -> str | None:
    return None if ms is None else _moment(ms).isoformat()


TIMES = {
    'format = "iso"': lambda ms: _moment(ms).isoformat(),
    'format = "iso"\nzone = "Asia/Kathmandu"': lambda ms: (
        _moment(ms).astimezone(ZoneInfo("Asia/Kathmandu")).replace(tzinfo=None).isoformat(" ")
    ),
    'format = "%d.%m.%Y %H:%M:%S.%f %z"': lambda ms: (
        _moment(ms).astimezone(ZoneInfo("America/New_York")).strftime("%d.%m.%Y %H:%M:%S.%f %z")
    ),
    'format = "s"': lambda ms: f"{ms / 1000:.3f}",
    'format = "ms"': lambda ms: str(ms),
    'format = "us"': lambda ms: str(ms * 1000),
    'format = "ns"': lambda ms: str(ms * 1_000_000),
}


@st.composite
def job_lists(draw: st.DrawFn) -> list[Job]:
    ids = draw(st.lists(TEXT, min_size=1, max_size=8, unique=True))
    after = st.none() | st.integers(-5000, 10**7)
    made = []
    for id in ids:
        submit = draw(st.integers(10**12, 2 * 10**12))
        start, run = draw(after), draw(st.none() | st.integers(0, 10**7))
        started = None if start is None else submit + start
        end = None if run is None or started is None else started + run
        ends = draw(st.sampled_from(["done", "dead", "cancelled"]))
        made.append(Job(id, draw(TEXT), draw(TEXT), submit, started, end, ends))
    return made


def _job_rows(listed: list[Job], times: str) -> Iterator[dict[str, str]]:
    for job in listed:
        told = {"submit": job.submit, "start": job.start, "end": job.end}
        cells = {name: "" if ms is None else TIMES[times](ms) for name, ms in told.items()}
        yield {"id": job.id, "topic": job.topic, "worker": job.worker, "status": WORDS[job.status],
               **cells}  # fmt: skip


def _event_rows(listed: list[Job], times: str, dice: random.Random) -> Iterator[dict[str, str]]:
    rows = []
    for job in listed:
        told = {"put": job.submit, "begun": job.start, STEPS[job.ends]: job.end}
        rows += [(ms, {"id": job.id, "topic": job.topic, "worker": job.worker, "event": word,
                       "at": TIMES[times](ms)})
                 for word, ms in told.items() if ms is not None]  # fmt: skip
    order = list(range(len(rows)))
    dice.shuffle(order)
    # Rows of one instant keep their order, as a log would have it: nothing else tells them apart.
    instants = {rows[at][0] for at in order}
    ties = len(instants) < len(rows)
    yield from (rows[at][1] for at in (range(len(rows)) if ties else order))


def _profile(form: dict[str, object], of_events: bool, times: str, names: list[str]) -> str:
    given = {"rows": "events" if of_events else "jobs", **form}
    read = "".join(f"{name} = {json.dumps(value)}\n" for name, value in given.items())
    columns = "".join(f'{name} = "{name}"\n' for name in names)
    words = (
        "[events]\nsubmit = ['put']\nstart = ['begun']\ndone = ['ended']\ndead = ['failed']\n"
        "cancelled = ['stopped']\n"
        if of_events
        else "[status]\n" + "".join(f"{kind} = ['{word}']\n" for kind, word in WORDS.items())
    )
    return f"[read]\n{read}[columns]\n{columns}[time]\n{times}\n{words}"


def _written(rows: list[dict[str, str]], names: list[str], kind: str) -> tuple[str, dict]:
    if kind == "ndjson":
        return "".join(json.dumps(row) + "\n" for row in rows), {"format": "ndjson"}
    if kind == "json":
        return json.dumps({"all": rows}), {"format": "json", "each": "all"}
    if kind == "blocks":
        text = "".join("\n".join(f"{n}={row[n]}" for n in names) + "\n--\n" for row in rows)
        pattern = "\n".join(f"{name}=(?P<{name}>[^\n]*)" for name in names)
        return text, {"format": "blocks", "end": "--", "pattern": pattern}
    has_header, delimiter = not kind.startswith("bare"), kind[-1]
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, names, delimiter=delimiter, quoting=csv.QUOTE_MINIMAL)
    if has_header:
        writer.writeheader()
    writer.writerows(rows)
    form: dict[str, object] = {"delimiter": delimiter}
    return out.getvalue(), form if has_header else {**form, "header": False, "columns": names}


KINDS = ["ndjson", "json", "blocks", "csv ,", "csv ;", "csv |", "bare ,", "bare ;"]


@settings(max_examples=10, deadline=None)
@given(
    job_lists(), st.sampled_from(KINDS), st.sampled_from(sorted(TIMES)), st.booleans(),
    st.integers(0, 10**6),
)  # fmt: skip
def test_any_list_of_jobs_in_any_dialect_gives_the_same_jobs(
    listed: list[Job], kind: str, times: str, of_events: bool, seed: int
) -> None:
    dice = random.Random(seed)  # noqa: S311 - a shuffle
    rows = list(_event_rows(listed, times, dice) if of_events else _job_rows(listed, times))
    names = list(rows[0])
    dice.shuffle(names)
    text, form = _written(rows, names, kind)
    with TemporaryDirectory() as folder:
        found = imported(Path(folder), text, _profile(form, of_events, times, names), name="log")
        assert found.complete and found.counts.rows == len(rows)
        assert jobs(Path(folder) / "book") == {job.id: job.expected() for job in listed}


MANY_STEPS = """
[read]
rows = "events"
[columns]
id = "id"
topic = "queue"
event = "what"
at = "at"
worker = "host"
correlation_id = "call"
[events]
submit = ["submit"]
start = ["start"]
done = ["end"]
dead = ["fail"]
cancelled = ["stop"]
retry = ["again"]
requeue = ["back"]
"""


@pytest.mark.parametrize("seed", range(3))
def test_a_plain_job_of_an_event_list_comes_out_as_its_steps_one_by_one_tell_it(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(seed)  # noqa: S311 - a history, no secret
    rows = ["id,queue,what,at,host,call"]
    told = ["submit", "start", "end", "fail", "stop", "again", "back"]
    plain = [["submit", "start", "end"], ["start", "fail"], ["submit", "stop"], ["end"]]
    lives = [dice.choice(plain) if dice.random() < 0.5 else dice.choices(told, k=dice.randint(1, 5))
             for _ in range(200)]  # fmt: skip
    steps = [(job + 2 * number, job, what) for job, life in enumerate(lives)
             for number, what in enumerate(life)]  # fmt: skip
    for second, (_, job, what) in enumerate(sorted(steps)):
        queue = f"q{job % 3}" if dice.random() < 0.9 else dice.choice(["", "other"])
        host, call = dice.choice(["", "h1", "h2"]), "" if job % 2 else f"c{job}"
        moment = f"2024-05-01T{second // 7200:02}:{second // 120 % 60:02}:{second // 2 % 60:02}Z"
        rows.append(f"{job},{queue},{what},{moment},{host},{call}")
    text = "\n".join(rows) + "\n"
    both = [read_by(name, text, tmp_path / name, monkeypatch) for name in ("lives", "lives_none")]
    assert both[0][0] == both[1][0] and both[0][0].jobs == 200
    assert_frame_equal(both[0][1], both[1][1])


def read_by(
    name: str, text: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[imports.Counts, polars.DataFrame]:
    """What an import counts, and its events, with the plain jobs of the statement ``name``."""
    asked = mapping.statement
    folder.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(mapping, "statement", lambda one: asked(name if one == "lives" else one))
        counts = imported(folder, text, MANY_STEPS).counts
    with ops.open(folder / "book") as warehouse:
        return counts, warehouse.sql("from events order by position").pl().drop("node_id")
