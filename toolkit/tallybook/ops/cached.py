"""The cache three ways: folded from the log, as state.db holds it, and both compared."""

import json
from typing import Any

import polars

from tallybook import ids
from tallybook.layout import Layout
from tallybook.ops import surviving, windows
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
_PARITY = {
    "keys_log": polars.Int64,
    "keys_state": polars.Int64,
    "parity_log": polars.String,
    "parity_state": polars.String,
    "same": polars.Boolean,
}
_COMPARED = {"key": polars.String, "status": polars.String}


def cache_as_of(warehouse: Warehouse, as_of: Instant = None) -> polars.DataFrame:
    """One row a key that the log says is cached at ``as_of`` (its end): key, version, value, …

    ``value`` is JSON text.
    """
    moment = windows.instant(as_of, windows.named_zone("UTC"))
    return warehouse.frame("cache_as_of", {"as_of": moment})


def key_changes(warehouse: Warehouse, key: str = "", limit: int = 1000) -> polars.DataFrame:
    """One row a change of ``key``, in order: change, version, value (JSON text), job_id, when it
    came (occurred_at) and until when it held (null: it still does), and its line. Without a key
    those of all, the last first. At most ``limit``.
    """
    return warehouse.frame("key_changes", {"key": key, "limit": limit})


def surviving_cache(warehouse: Warehouse) -> polars.DataFrame | None:
    """One row a key that state.db holds; None where there is no state.db, or no cache in it.

    Nothing is written beside it. Raises TallybookError where it cannot be read.
    """
    query = f"select {', '.join(_SURVIVING)} from cache order by key"  # noqa: S608 - our own names
    found = surviving.rows(Layout(warehouse.book).state, query)
    return None if found is None else polars.DataFrame(found, schema=_SURVIVING, orient="row")


def compare_cache(warehouse: Warehouse) -> polars.DataFrame:
    """One row a key: status (same, differs, only_log, only_state), log_version, state_version."""
    logged, held = _both(warehouse)
    in_log, in_state = _values(logged), _values(held)
    rows = [(key, _status(key, in_log, in_state)) for key in sorted(in_log | in_state)]
    frame = polars.DataFrame(rows, schema=_COMPARED, orient="row")
    for side, cache in (("log", logged), ("state", held)):
        versions = cache.select("key", polars.col("version").alias(f"{side}_version"))
        frame = frame.join(versions, on="key", how="left", maintain_order="left")
    return frame


def cache_parity(warehouse: Warehouse) -> polars.DataFrame:
    """One row: keys_log, keys_state, parity_log, parity_state, same.

    The two digests are equal exactly when the same keys hold the same values, on any machine.
    All are null where the log says nothing of a cache.
    """
    if {"cache", "state"} & warehouse.silent.keys():
        return polars.DataFrame({name: [None] for name in _PARITY}, schema=_PARITY)
    logged, held = (_values(cache) for cache in _both(warehouse))
    digests = ids.parity(logged.items()), ids.parity(held.items())
    return polars.DataFrame(
        {
            "keys_log": [len(logged)],
            "keys_state": [len(held)],
            "parity_log": [digests[0]],
            "parity_state": [digests[1]],
            "same": [digests[0] == digests[1]],
        }
    )


def _both(warehouse: Warehouse) -> tuple[polars.DataFrame, polars.DataFrame]:
    """The cache of the log and that of state.db, empty where it is lost."""
    held = surviving_cache(warehouse)
    lost = polars.DataFrame(schema=_SURVIVING)
    return cache_as_of(warehouse), lost if held is None else held


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
