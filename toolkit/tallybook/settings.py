"""Settings of a book: ``book.toml``, checked whole when the book is opened.

[node]                      id, host: how this node is named in the log; allow_file_system
[log]                       lock_wait_s, segment_bytes, segment_age_s, durability,
                            sync_interval_ms, payload, checkpoint_events, reserve_mb
[worker]                    metrics_interval_s
[cache]                     store, flush_interval_ms
[topics."NAME"]             max_attempts, backoff_first_s, backoff_base, backoff_cap_s,
                            jitter, jitter_cap_s, max_rescues, dedupe_window_s,
                            keep_done_s, keep_dead_s, timeout_s, max_run_s, payload, redact,
                            ordering, max_running, rate_per_s, rate_burst, max_pending,
                            max_pending_bytes
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from tallybook.errors import BadInput


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """How this node is named (empty: the host's own name), and which kind of file system its
    book may lie on besides local ones."""

    id: str = ""
    host: str = ""
    allow_file_system: str = ""


@dataclass(frozen=True, slots=True)
class LogSettings:
    """How the log is written: how long to wait for its lock, when a segment is closed, when what
    was written is synced, what of a payload is kept, how often the state is kept whole, and below
    how much free room on the disk only settles are taken (0: no bound)."""

    lock_wait_s: float = 30.0
    segment_bytes: int = 64 * 1024 * 1024
    segment_age_s: float = 86400.0
    durability: str = "full"
    sync_interval_ms: int = 100
    payload: str = "full"
    checkpoint_events: int = 200_000
    reserve_mb: int = 64


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What every worker of this book does alike; times in seconds."""

    metrics_interval_s: float = 10.0


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """Where reads of the cache come from: state.db, or memory that is flushed to cache.json."""

    store: str = "sqlite"
    flush_interval_ms: int = 1000


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """Rules of a topic. The delay before attempt n + 1 is first · base^(n-1), capped, + jitter.

    ``keep_done_s`` and ``keep_dead_s`` are times after which a final job is pruned; 0: never.
    ``timeout_s`` is how long a run may take; 0: as long as it likes. ``max_run_s`` is how long
    the heartbeat keeps the lease of one run; 0: as long as it runs. ``ordering`` says whether a
    dead job holds up its ordering key or is skipped. Of the limits, 0 means none: ``max_running``
    leases at once, ``rate_per_s`` claims a second with ``rate_burst`` at once (0: those of a
    second), ``max_pending`` jobs and ``max_pending_bytes`` of their payloads.
    """

    max_attempts: int = 10
    max_rescues: int = 3
    backoff_first_s: float = 2.0
    backoff_base: float = 2.0
    backoff_cap_s: float = 300.0
    jitter: float = 0.2
    jitter_cap_s: float = 30.0
    dedupe_window_s: float = 86400.0
    keep_done_s: float = 7 * 86400.0
    keep_dead_s: float = 0.0
    timeout_s: float = 0.0
    max_run_s: float = 3600.0
    payload: str = ""
    redact: tuple[str, ...] = ()
    ordering: str = "hold"
    max_running: int = 0
    rate_per_s: float = 0.0
    rate_burst: int = 0
    max_pending: int = 0
    max_pending_bytes: int = 0

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit to what may be claimed at once or in a second."""
        return bool(self.max_running or self.rate_per_s)

    @property
    def is_bounded(self) -> bool:
        """Whether there is a bound to what may be pending."""
        return bool(self.max_pending or self.max_pending_bytes)

    def backoff_s(self, attempt_count: int, dice: float) -> float:
        """Seconds to wait after ``attempt_count`` failed attempts; ``dice`` is in [0, 1)."""
        steps = min(max(attempt_count - 1, 0), 64)
        delay = min(self.backoff_cap_s, self.backoff_first_s * self.backoff_base**steps)
        return delay + dice * min(self.jitter * delay, self.jitter_cap_s)


_DEFAULT_RULES = TopicSettings()


@dataclass(frozen=True, slots=True)
class Keeping:
    """What the log keeps of the payloads of a topic: ``full``, ``digest`` or ``none``, and which
    names are redacted at any depth."""

    payload: str = "full"
    redact: tuple[str, ...] = ()

    @property
    def keeps_all(self) -> bool:
        """Whether every event goes into the log as it is."""
        return self.payload == "full" and not self.redact

    @property
    def leaves_out(self) -> tuple[str, ...]:
        """The fields that the log does not get at all."""
        return _LEFT_OUT[self.payload]


_LEFT_OUT = {"full": (), "digest": ("payload",), "none": ("payload", "payload_digest")}


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a book."""

    node: NodeSettings = NodeSettings()
    log: LogSettings = LogSettings()
    worker: WorkerSettings = WorkerSettings()
    cache: CacheSettings = CacheSettings()
    topics: Mapping[str, TopicSettings] = field(default_factory=dict)

    def topic(self, name: str) -> TopicSettings:
        """The rules of a topic; the defaults where none are written."""
        return self.topics.get(name) or _DEFAULT_RULES

    def keeping(self, topic: str) -> Keeping:
        """What the log keeps of the payloads of ``topic``."""
        rules = self.topic(topic)
        return Keeping(rules.payload or self.log.payload, rules.redact)

    @property
    def limited(self) -> Mapping[str, TopicSettings]:
        """The topics with a limit to what may be claimed."""
        if not self.topics:
            return self.topics
        return {name: rules for name, rules in self.topics.items() if rules.is_limited}

    @property
    def is_bounded(self) -> bool:
        """Whether any topic has a bound to what may be pending."""
        return any(rules.is_bounded for rules in self.topics.values())

    @property
    def withholds(self) -> bool:
        """Whether the log of this book lacks anything that state.db has."""
        if self.log.payload == "full" and not self.topics:
            return False
        return not all(self.keeping(topic).keeps_all for topic in ("", *self.topics))


_SMALLEST: Mapping[str, float] = {
    "segment_bytes": 1024,
    "segment_age_s": 1,
    "sync_interval_ms": 1,
    "checkpoint_events": 100,
    "metrics_interval_s": 0.1,
    "flush_interval_ms": 1,
    "max_attempts": 1,
    "backoff_first_s": 0.001,
    "backoff_base": 1.0,
}
_LARGEST: Mapping[str, float] = {
    "lock_wait_s": 3600,
    "segment_age_s": 86400 * 366,
    "sync_interval_ms": 60_000,
    "metrics_interval_s": 3600,
    "flush_interval_ms": 3_600_000,
    "max_attempts": 1000,
    "max_rescues": 1000,
    "backoff_base": 100,
    "backoff_cap_s": 86400 * 30,
    "jitter": 1,
    "jitter_cap_s": 86400,
    "dedupe_window_s": 86400 * 366,
    "keep_done_s": 86400 * 3660,
    "keep_dead_s": 86400 * 3660,
    "timeout_s": 86400 * 366,
    "max_run_s": 86400 * 366,
    "reserve_mb": 10**9,
    "rate_per_s": 1_000_000,
    "rate_burst": 1_000_000,
}
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "durability": ("full", "interval"),
    "payload": ("full", "digest", "none"),
    "store": ("sqlite", "json"),
    "ordering": ("hold", "skip"),
}


def load(path: Path) -> Settings:
    """Read ``book.toml``; an absent file means the defaults. Raises BadInput with the place."""
    if not path.exists():
        return Settings()
    try:
        raw = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: not valid TOML: {error}") from None
    return _settings(raw, path)


def _settings(raw: dict[str, Any], path: Path) -> Settings:
    _known(raw, ("node", "log", "worker", "cache", "topics"), f"{path}: table")
    topics = _table(raw, "topics", path)
    return Settings(
        node=_section(NodeSettings(), _table(raw, "node", path), f"{path}: [node]"),
        log=_section(LogSettings(), _table(raw, "log", path), f"{path}: [log]"),
        worker=_section(WorkerSettings(), _table(raw, "worker", path), f"{path}: [worker]"),
        cache=_section(CacheSettings(), _table(raw, "cache", path), f"{path}: [cache]"),
        topics={name: _topic(name, _table(topics, name, path), path) for name in topics},
    )


def _topic(name: str, raw: dict[str, Any], path: Path) -> TopicSettings:
    for part, value in raw.items():
        if isinstance(value, dict):
            raise BadInput(f'{path}: a topic stands in quotes, as in [topics."{name}.{part}"]')
    return _section(TopicSettings(), raw, f'{path}: [topics."{name}"]')


def _table(raw: Mapping[str, Any], name: str, path: Path) -> dict[str, Any]:
    table = raw.get(name, {})
    if not isinstance(table, dict):
        raise BadInput(f"{path}: {name} must be a table, as in [{name}]")
    return table


_Section = TypeVar(
    "_Section", NodeSettings, LogSettings, WorkerSettings, CacheSettings, TopicSettings
)


def _section(default: _Section, raw: dict[str, Any], place: str) -> _Section:
    _known(raw, [item.name for item in fields(default)], place)
    values = {name: _value(name, getattr(default, name), raw[name], place) for name in raw}
    return replace(default, **values)


def _known(raw: Mapping[str, Any], names: list[str] | tuple[str, ...], place: str) -> None:
    for name in raw:
        if name not in names:
            near = get_close_matches(name, names, 1)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(names)}"
            raise BadInput(f"{place} {name}: no such setting; {hint}")


def _value(name: str, default: Any, value: Any, place: str) -> Any:
    if type(value) is type(default) and value == default:
        return default
    if isinstance(default, tuple):
        return _names(name, value, place)
    if isinstance(default, str):
        return _text(name, value, place)
    whole = isinstance(default, int)
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        raise BadInput(f"{place} {name}: write a {'whole ' * whole}number, not {value!r}")
    smallest, largest = _SMALLEST.get(name, 0), _LARGEST.get(name, 10**12)
    if not smallest <= value <= largest:
        raise BadInput(f"{place} {name}: {value} is not in {smallest:g} to {largest:g}")
    return type(default)(value)


def _text(name: str, value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise BadInput(f"{place} {name}: write text in quotes, not {value!r}")
    choices = _CHOICES.get(name)
    if choices and value not in choices:
        raise BadInput(f"{place} {name}: {value!r} is none of {', '.join(choices)}")
    return value


def _names(name: str, value: Any, place: str) -> tuple[str, ...]:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise BadInput(f'{place} {name}: write a list of names, as in ["password"], not {value!r}')
