"""Importing a log that is written anew from a seed, by us and by hand. Times are in seconds."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import duckdb

PROFILES = {
    "jobs": """
[read]
delimiter = "|"
[columns]
id = "id"
topic = "queue"
submit = "submit"
start = "start"
end = "end"
status = "state"
worker = "host"
[status]
done = ["COMPLETED"]
dead = ["FAILED", "TIMEOUT"]
""",
    "events": """
[read]
delimiter = "|"
rows = "events"
[columns]
id = "id"
topic = "queue"
event = "what"
at = "at"
worker = "host"
[events]
submit = ["submit"]
start = ["start"]
done = ["end"]
""",
}
_LOGS = {
    "jobs": """
        select
            100000 + i as id,
            'queue-' || (hash(i) % 7) as queue,
            strftime(timestamp '2024-01-01' + to_seconds(i), $format) as submit,
            strftime(timestamp '2024-01-01' + to_seconds(i + hash(i + 1) % 600), $format) as start,
            strftime(timestamp '2024-01-01' + to_seconds(i + 600 + hash(i + 2) % 6000), $format)
                as "end",
            case hash(i + 3) % 20 when 0 then 'FAILED' when 1 then 'TIMEOUT' else 'COMPLETED' end
                as state,
            'node-' || (hash(i + 4) % 200) as host
        from range($rows) as rows(i)
    """,
    "events": """
        select
            100000 + i // 3 as id,
            'queue-' || (hash(i // 3) % 7) as queue,
            ['submit', 'start', 'end'][1 + i % 3] as what,
            strftime(timestamp '2024-01-01' + to_seconds(i), $format) as "at",
            'node-' || (hash(i // 3) % 200) as host
        from range($rows) as rows(i)
    """,
}
_COLUMNS = {
    "jobs": 'id varchar, queue varchar, submit timestamp, start timestamp, "end" timestamp, '
    "state varchar, host varchar",
    "events": 'id varchar, queue varchar, what varchar, "at" timestamp, host varchar',
}
_BY_HAND = {
    "jobs": """
        select 'job.enqueued' as event, id as job_id, queue as topic, submit as occurred_at,
            null::varchar as worker, null::timestamp as started_at, null::double as duration_ms
        from log
        union all
        select 'job.leased', id, queue, start, host, start, null from log
        union all
        select case state when 'COMPLETED' then 'job.done' else 'job.dead' end, id, queue, "end",
            host, start, (epoch_us("end") - epoch_us(start)) / 1000.0
        from log
    """,
    "events": """
        select
            case what when 'submit' then 'job.enqueued' when 'start' then 'job.leased'
                else 'job.done' end as event,
            id as job_id, queue as topic, "at" as occurred_at, host as worker,
            min(case when what = 'start' then "at" end) over (partition by id) as started_at
        from log
        order by "at"
    """,
}


def _log(folder: Path, rows: int, kind: str) -> Path:
    """The log of that many rows, made once a workshop."""
    file = folder.parent / f"import-{kind}-{rows}.csv"
    if not file.exists():
        partial = file.with_suffix(".partial")
        with duckdb.connect() as connection:
            given = {"rows": rows, "format": "%Y-%m-%dT%H:%M:%S"}
            connection.execute(f"create table log as {_LOGS[kind]}", given)
            connection.execute(f"copy log to '{partial}' (delimiter '|', header)")
        partial.rename(file)
    return file


def ours(folder: Path, jobs: int, durability: str, kind: str, **_: Any) -> float:
    """``imports.import_jobs``: checked, counted, written."""
    from tallybook.ops import imports

    file = _log(folder, jobs, kind)
    (folder / "log.toml").write_text(PROFILES[kind], "utf-8")
    begun = time.perf_counter()
    found = imports.import_jobs([file], str(folder / "log.toml"), folder / "book")
    taken = time.perf_counter() - begun
    assert found.complete and found.counts.rows == jobs
    return taken


def by_hand(folder: Path, jobs: int, durability: str, kind: str, **_: Any) -> float:
    """Declared types, nothing checked, nothing counted."""
    file = _log(folder, jobs, kind)
    begun = time.perf_counter()
    with duckdb.connect() as connection:
        connection.execute(f"create table log ({_COLUMNS[kind]})")
        connection.execute(f"copy log from '{file}' (delimiter '|', header)")
        connection.execute(f"copy ({_BY_HAND[kind]}) to '{folder}/e.parquet' (compression zstd)")
    return time.perf_counter() - begun
