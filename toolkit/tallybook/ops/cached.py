"""The cache three ways: folded from the log, as state.db holds it, and both compared."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars

from tallybook import ids
from tallybook.layout import Layout
from tallybook.ops import windows
from tallybook.ops.warehouse import Warehouse
from tallybook.ops.windows import Instant

_SURVIVING = {
    "key": polars.String,
    "version": polars.Int64,
    "value": polars.String,
    "etag": polars.String,
    "origin": polars.String,
    "updated_at": polars.String,
}
_COMPARED = {"key": polars.String, "status": polars.String}


def cache_as_of(warehouse: Warehouse, as_of: Instant = None) -> polars.DataFrame:
    """One row a key that the log says is cached at ``as_of`` (its end): key, version, value, …

    ``value`` is JSON text.
    """
    moment = windows.instant(as_of, windows.named_zone("UTC"))
    return warehouse.frame("cache_as_of", {"as_of": moment})


def surviving_cache(warehouse: Warehouse) -> polars.DataFrame | None:
    """One row a key that state.db holds; None where there is no state.db, or it cannot be read.

    Nothing is written beside it, not even the files that SQLite would make.
    """
    state = Layout(warehouse.book).state
    if not state.is_file():
        return None
    try:
        return polars.DataFrame(_read_state(state), schema=_SURVIVING, orient="row")
    except sqlite3.DatabaseError:
        return None


def compare_cache(warehouse: Warehouse) -> polars.DataFrame:
    """One row a key: status (same, differs, only_log, only_state), log_version, state_version."""
    logged, surviving = _both(warehouse)
    in_log, in_state = _values(logged), _values(surviving)
    rows = [(key, _status(key, in_log, in_state)) for key in sorted(in_log | in_state)]
    frame = polars.DataFrame(rows, schema=_COMPARED, orient="row")
    for side, cache in (("log", logged), ("state", surviving)):
        versions = cache.select("key", polars.col("version").alias(f"{side}_version"))
        frame = frame.join(versions, on="key", how="left", maintain_order="left")
    return frame


def cache_parity(warehouse: Warehouse) -> polars.DataFrame:
    """One row: keys_log, keys_state, parity_log, parity_state, same.

    The two digests are equal exactly when the same keys hold the same values, on any machine.
    """
    logged, surviving = (_values(cache) for cache in _both(warehouse))
    digests = ids.parity(logged.items()), ids.parity(surviving.items())
    return polars.DataFrame(
        {
            "keys_log": [len(logged)],
            "keys_state": [len(surviving)],
            "parity_log": [digests[0]],
            "parity_state": [digests[1]],
            "same": [digests[0] == digests[1]],
        }
    )


def _both(warehouse: Warehouse) -> tuple[polars.DataFrame, polars.DataFrame]:
    """The cache of the log and that of state.db, empty where it is lost."""
    surviving = surviving_cache(warehouse)
    lost = polars.DataFrame(schema=_SURVIVING)
    return cache_as_of(warehouse), lost if surviving is None else surviving


def _values(cache: polars.DataFrame) -> dict[str, Any]:
    """Each key's value as parsed JSON; a value that is no JSON stays text."""
    return {key: _parsed(value) for key, value in cache.select("key", "value").iter_rows()}


def _parsed(value: str | None) -> Any:
    try:
        return None if value is None else json.loads(value)
    except ValueError:
        return value


def _status(key: str, in_log: dict[str, Any], in_state: dict[str, Any]) -> str:
    if key not in in_state:
        return "only_log"
    if key not in in_log:
        return "only_state"
    same = ids.canonical(in_log[key]) == ids.canonical(in_state[key])
    return "same" if same else "differs"


def _read_state(state: Path) -> list[tuple[Any, ...]]:
    wal, shared = state.with_name("state.db-wal"), state.with_name("state.db-shm")
    if not wal.exists():
        return _query(f"{state.resolve().as_uri()}?mode=ro&immutable=1")
    if shared.exists():
        return _query(f"{state.resolve().as_uri()}?mode=ro")
    # A WAL without its index: SQLite would make one beside it, so it gets a copy elsewhere.
    with TemporaryDirectory(prefix="tallybook-state-") as aside:
        copy = Path(shutil.copy(state, aside))
        shutil.copy(wal, aside)
        return _query(copy.as_uri())


def _query(uri: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        columns = ", ".join(_SURVIVING)
        return connection.execute(f"select {columns} from cache order by key").fetchall()  # noqa: S608
