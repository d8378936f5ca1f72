"""The promises of ``tallybook.cache.contract``, for any store: also one of your own."""

from __future__ import annotations

from collections.abc import Callable

from tallybook.cache.contract import Cache
from tallybook.entry import Entry

_ALL_FIELDS = Entry(
    key="a/1",
    value_json='{"n":[1,null,"\\u00e9"]}',
    version=3,
    base_version=2,
    etag="e",
    last_modified="m",
    origin="cloud",
    pending=True,
    ttl_s=2.5,
    depends_on=("x", "y"),
    value_schema="s",
    synced_at="t",
    job_id="j",
    updated_at="u",
    boot_us=7,
    boot_id="b",
)
_PLAIN = Entry("a/2", "null")
_AWKWARD = [Entry(key, "1") for key in ("A", "a%", "a_", "b", "é", "\U0010ffff")]


def check_cache(empty: Callable[[], Cache]) -> None:
    """Put a store through every promise of the contract; ``empty`` makes an empty one.

    Raises AssertionError that says which promise does not hold.
    """
    for promise in (_keeps, _replaces, _drops, _knows_dependents, _scans):
        promise(empty())


def _require(holds: bool, promise: str) -> None:
    if not holds:
        raise AssertionError(f"this cache does not hold: {promise}")


def _keeps(cache: Cache) -> None:
    _require(cache.get("a/1") is None, "get of an absent key is None")
    _require(cache.size() == 0, "a new cache is empty")
    for entry in (_ALL_FIELDS, _PLAIN):
        cache.put(entry)
        _require(cache.get(entry.key) == entry, "get gives every field of what was put")
    _require(cache.size() == 2, "size is the number of keys")


def _replaces(cache: Cache) -> None:
    cache.put(_ALL_FIELDS)
    after = Entry("a/1", "2", version=4, depends_on=("y", "z"))
    cache.put(after)
    _require(cache.get("a/1") == after, "a put takes the place of the entry, field by field")
    _require(cache.size() == 1, "a put of a known key adds none")
    _require(cache.dependents("x") == [], "a put ends the old dependencies")
    _require(cache.dependents("z") == ["a/1"], "a put begins new dependencies")


def _drops(cache: Cache) -> None:
    cache.put(_ALL_FIELDS)
    cache.drop("a/1")
    cache.drop("never there")
    _require(cache.get("a/1") is None and cache.size() == 0, "a dropped key is absent")
    _require(cache.dependents("x") == [], "a dropped key depends on nothing")
    cache.put(_ALL_FIELDS)
    _require(cache.get("a/1") == _ALL_FIELDS, "a dropped key may be put again")


def _knows_dependents(cache: Cache) -> None:
    for key, depends_on in (("c", ("x",)), ("b", ("x", "b", "x")), ("d", ("c",))):
        cache.put(Entry(key, "1", depends_on=depends_on))
    _require(cache.dependents("x") == ["b", "c"], "dependents are given by key, each once")
    _require(cache.dependents("b") == ["b"], "an entry may depend on itself")
    _require(cache.dependents("nothing") == [], "what nothing depends on has no dependents")


def _scans(cache: Cache) -> None:
    for entry in (_PLAIN, *reversed(_AWKWARD), _ALL_FIELDS):
        cache.put(entry)
    keys = [entry.key for entry in cache.scan()]
    _require(keys == sorted(keys) and len(keys) == 8, "a scan gives all by code point of the key")
    _require([e.key for e in cache.scan("a/")] == ["a/1", "a/2"], "a prefix is plain text")
    _require([e.key for e in cache.scan("\U0010ffff")] == ["\U0010ffff"], "any prefix will do")
    _require(list(cache.scan("zz")) == [], "a prefix of no key gives nothing")
