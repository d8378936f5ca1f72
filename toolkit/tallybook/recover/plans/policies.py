"""Who is right about a difference: a policy gives its cause an action; pure.

last-write-wins   whoever wrote last: the cloud where it changed after the delivery, else here
version-check     whoever has the higher version; equal or unknown versions are left
merge             field by field against the last value that both had; a field that both changed
                  is left
server            the cloud, always
manual            a person, always
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

POLICIES = ("last-write-wins", "version-check", "merge", "server", "manual")
NO_SHAPE = "how a job for it looks is not known: enqueue it by hand"
_MOVING = {
    "overdue": "its job is still open: look at the workers",
    "after_export": "changed here after what the export covers: take a newer export",
}
_OLDER = {
    "take_export": "was here before, and the export may be older: "
    "say with --covers up to where it goes",
    "delete": "nothing says until when the export is: give --covers",
}
_BY_HISTORY = ("last-write-wins", "merge")
_CLOUD = ("changed_in_cloud", "removed_in_cloud", "added_in_cloud", "not_cached")
_HERE = ("dead", "never_enqueued", "applied_twice")


class Choice(NamedTuple):
    """An action, and why in a few words."""

    action: str
    why: str


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference with all that a policy looks at.

    ``can`` are the actions that are possible, each with "" or, where it is not, absent; ``no`` says
    why one is not. Values are JSON objects or, of other values, ``{"value": …}``; None where the
    side has none. ``base`` is the last value that both had. ``may_be_older``: nobody said what
    the export covers, and it has no value, or one that was here before.
    """

    difference: str
    cause: str
    can: frozenset[str]
    no: Mapping[str, str] = field(default_factory=dict)
    local: Mapping[str, Any] | None = None
    cloud: Mapping[str, Any] | None = None
    base: Mapping[str, Any] | None = None
    version: int = 0
    cloud_version: int | None = None
    moved_at: str = ""
    cloud_moved_at: str | None = None
    is_changed_since: bool = False
    may_be_older: bool = False


def decide(policy: str, one: Difference) -> Choice:
    """What a policy does about a difference."""
    if policy == "manual":
        return Choice("leave", "the policy leaves all to a person")
    if one.cause in _MOVING:
        return Choice("leave", _MOVING[one.cause])
    if policy != "server" and one.cause == "unexplained":
        return Choice("leave", "nothing says who is right")
    choice = _RULES[policy](one)
    if one.may_be_older and policy in _BY_HISTORY and choice.action in _OLDER:
        return Choice("leave", _OLDER[choice.action])
    return choice


def merged(one: Difference) -> tuple[dict[str, Any], list[str]] | None:
    """The fields of both sides over their base, and the fields that both changed; None where one of
    the three values is not known."""
    if one.local is None or one.cloud is None or one.base is None:
        return None
    value, both = dict(one.local), []
    for name, theirs in one.cloud.items():
        ours, was = one.local.get(name), one.base.get(name)
        if theirs in (ours, was):
            continue
        if ours != was:
            both.append(name)
        else:
            value[name] = theirs
    return value, both


def _here(one: Difference) -> Choice:
    """Deliver what is here."""
    if one.cause in ("dead", "cancelled") and not one.is_changed_since and "requeue" in one.can:
        return Choice("requeue", "what it was to deliver still holds")
    if "enqueue" in one.can:
        return Choice("enqueue", "what is cached here is to be delivered")
    return Choice("leave", one.no.get("enqueue", NO_SHAPE))


def _cloud(one: Difference) -> Choice:
    """Take what the cloud has."""
    if one.difference == "only_local":
        if "delete" in one.can:
            return Choice("delete", "the cloud does not have it")
        return Choice("leave", one.no.get("delete", "it is no entry of the cache"))
    if "take_export" in one.can:
        return Choice("take_export", "the cloud has the right value")
    return Choice("leave", one.no.get("take_export", "the export's value cannot be taken"))


def _last_write_wins(one: Difference) -> Choice:
    if one.cause == "removed_here":
        return Choice("leave", "forgotten here last: enqueue its removal by hand")
    if one.cause == "cancelled":
        return Choice("leave", "a person has cancelled its job")
    is_later = bool(one.cloud_moved_at and one.moved_at and one.cloud_moved_at > one.moved_at)
    return _cloud(one) if one.cause in _CLOUD or is_later else _here(one)


def _version_check(one: Difference) -> Choice:
    if one.difference == "only_cloud" and not one.version:
        return _cloud(one)
    if one.difference == "only_local" and one.cause in _HERE:
        return _here(one)
    if one.cloud_version is None:
        return Choice("leave", "the export has no version of it")
    if one.cloud_version == one.version:
        return Choice("leave", f"both sides have version {one.version}")
    return _cloud(one) if one.cloud_version > one.version else _here(one)


def _merge(one: Difference) -> Choice:
    if one.difference != "differs":
        return _last_write_wins(one)
    found = merged(one)
    if found is None:
        return Choice("leave", "no value is known that both had")
    value, both = found
    if both:
        return Choice("leave", f"both sides changed {', '.join(both)}")
    if value == one.local:
        return _here(one)
    if all(value.get(name) == theirs for name, theirs in (one.cloud or {}).items()):
        return _cloud(one)
    if "merge" in one.can:
        return Choice("merge", "each side changed other fields")
    return Choice("leave", one.no.get("merge", NO_SHAPE))


_RULES: Mapping[str, Callable[[Difference], Choice]] = {
    "last-write-wins": _last_write_wins,
    "version-check": _version_check,
    "merge": _merge,
    "server": _cloud,
}
