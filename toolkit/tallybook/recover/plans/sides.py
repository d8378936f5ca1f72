"""What both sides have of the keys that differ: one question each to log, cache and export."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tallybook.ids import canonical
from tallybook.ops import cached
from tallybook.ops.exports.profile import Profile
from tallybook.ops.reconciling import Explained, rows
from tallybook.ops.reconciling.rows import Cells
from tallybook.ops.warehouse import Warehouse
from tallybook.recover.plans.shapes import Rules, Shape, fields

_SAMPLE = 1000


@dataclass(frozen=True, slots=True)
class Sides:
    """What both sides have of the keys that differ, asked at once for all of them. ``is_cut``: rows
    of the export cannot be read, so none that is missing there is known to be gone. ``is_covered``:
    somebody said what the export covers; else ``earlier`` has the values of entries before the
    last."""

    key: tuple[str, ...]
    entries: Mapping[str, Any]
    agreed: Mapping[str, Any]
    earlier: Mapping[str, Sequence[Any]]
    cloud: Mapping[tuple[str, str], Cells]
    shape: Shape
    rules: Rules
    topic: str | None
    named_by_key: bool
    is_cut: bool
    is_covered: bool

    @classmethod
    def gather(
        cls,
        warehouse: Warehouse,
        explained: Explained,
        export: Path,
        rules: Rules,
        profile: Profile | None = None,
    ) -> Sides:
        """Ask the log and the export."""
        found = explained.reconciliation
        cache = cached.cache_as_of(warehouse)
        wanted = set(explained.rows["entry_key"].drop_nulls())
        texts = dict(cache.select("key", "value").iter_rows())
        entries = {key: json.loads(texts[key]) for key in sorted(wanted & texts.keys())}
        sample = {key: json.loads(texts[key]) for key in list(texts)[:_SAMPLE]} | entries
        agreed = warehouse.frame("agreed_values", {"keys": sorted(wanted)}).iter_rows()
        numbers = found.rows.filter(found.rows["cloud_row"].is_not_null())
        cells = rows.of_export(export, numbers["cloud_row"].to_list(), profile)
        named = numbers.select("status", "key", "cloud_row").iter_rows()
        return cls(
            key=found.key,
            entries=entries,
            agreed={key: json.loads(value) for key, value in agreed},
            earlier={} if explained.cover else _earlier(warehouse, sorted(wanted)),
            cloud={(status, key): cells[n] for status, key, n in named if n in cells},
            shape=Shape.of(sample.values()),
            rules=_rules(profile) | dict(rules),
            topic=_topic(warehouse),
            named_by_key=_named_by_key(sample, found.key),
            is_cut=bool(found.statuses["unreadable_cloud"]),
            is_covered=explained.cover is not None,
        )

    def entry_key(self, row: Mapping[str, Any]) -> str | None:
        """The cache key of a difference; None where the cache does not say how it is named."""
        if row["entry_key"] is not None:
            return str(row["entry_key"])
        return str(row["key"]) if self.named_by_key else None


def _earlier(warehouse: Warehouse, keys: Sequence[str]) -> dict[str, list[Any]]:
    """{entry: the values that it had before its last one}."""
    found: dict[str, list[Any]] = {}
    for key, value in warehouse.frame("earlier_values", {"keys": keys}).iter_rows():
        found.setdefault(key, []).append(json.loads(value))
    return found


def _rules(profile: Profile | None) -> dict[str, Mapping[str, Any]]:
    """The rules of columns that a profile gives."""
    if profile is None:
        return {}
    typed = {name: {"type": rule.type} for name, rule in profile.rules.items()}
    named = typed.keys() | profile.comparing.keys()
    return {name: typed.get(name, {}) | dict(profile.comparing.get(name, {})) for name in named}


def _topic(warehouse: Warehouse) -> str | None:
    """The topic whose jobs have the value of the entry as payload: then a job for an entry can be
    made from it. None where deliveries look otherwise, or go through several topics."""
    found = warehouse.frame("delivered_payloads", {"most": _SAMPLE}).rows()
    topics = {topic for topic, _, _ in found}
    if len(topics) != 1 or not all(_is_same(payload, value) for _, payload, value in found):
        return None
    (topic,) = topics
    return str(topic)


def _is_same(payload: str | None, value: str | None) -> bool:
    if payload is None or value is None:
        return False
    return canonical(json.loads(payload)) == canonical(json.loads(value))


def _named_by_key(sample: Mapping[str, Any], key: tuple[str, ...]) -> bool:
    """Whether each entry has the key of its row as its own."""
    if len(key) > 1:
        return False
    named = (fields(value).get(key[0], name if key[0] == "key" else None)
             for name, value in sample.items())  # fmt: skip
    return all(str(told) == name for told, name in zip(named, sample, strict=True))
