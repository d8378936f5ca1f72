"""What the machine may draw: jobs, ends of runs, cache writes, faults; the plainest first."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tallybook.testing import POINTS, Fault, crash_at

FAULTS = [
    *(crash_at(point) for point in POINTS),
    Fault("write", "segment", 1, "raise"),
    Fault("write", "cache file", 1, "raise"),
    Fault("rename", "cache file", 1, "raise"),
    Fault("write", "segment", 1, "ENOSPC"),
]
LIKELY = [crash_at(point) for point in ("after_append", "after_sync", "before_commit")] * 3
TOPICS = st.sampled_from(["a", "b", "c"])
WANTED = st.sampled_from([(), (), ("a",), ("b", "c"), ("a", "b")])
WORKERS = st.sampled_from(["w1", "w2"])
LEASES = st.sampled_from([30, 10, 60])
PICKS = st.sampled_from([0, 0, 0, 1, 1, 2, 3, 4, 6, 9])
KEYS = st.sampled_from(["x", "y", "z"])
FAULTY = st.sampled_from([None] * 40 + FAULTS + LIKELY)
NEXT = {"x": ("y",), "y": ("z",), "z": ("x",)}


def maybe(*values: Any, of: int = 2) -> st.SearchStrategy[Any]:
    """One of ``values``, or more often nothing."""
    return st.sampled_from([None] * of * len(values) + list(values))


NEW = st.fixed_dictionaries(
    {
        "topic": TOPICS,
        "payload": st.sampled_from([1, 1.0, {"n": 2}]),
        "key": maybe("k", "l"),
        "priority": st.sampled_from([0, 0, 5, -5]),
        "delay": maybe(0, 5, 20),
        "at_in": maybe(-40, 3, 90, of=4),
        "expires": maybe(15, 70, of=4),
        "order": st.sampled_from([None, None, "o", "o", "o", "p"]),
        "res": maybe("r", "s", of=1),
        "latest": maybe(True, of=3),
    }
)
PLAIN: dict[str, Any] = {"payload": 1, "priority": 0} | dict.fromkeys(
    ("key", "delay", "at_in", "expires", "order", "res", "latest")
)
PUT = st.fixed_dictionaries(
    {
        "key": KEYS,
        "value": st.integers(0, 3),
        "base": maybe(0, 1, 2),
        "ttl": maybe(10, 50),
        "depends": st.booleans(),
    }
).map(lambda put: put | {"depends": NEXT[put["key"]] if put["depends"] else ()})
HOWS: list[st.SearchStrategy[dict[str, Any]]] = [
    st.fixed_dictionaries({"kind": st.just("done"), "puts": st.lists(PUT, max_size=2)}),
    st.fixed_dictionaries(
        {"kind": st.just("retry")},
        optional={"after": st.sampled_from([0, 4, 30]), "counted": st.booleans()},
    ),
    st.just({"kind": "dead"}),
    st.fixed_dictionaries({"kind": st.just("snooze"), "after": st.sampled_from([0, 7])}),
    st.fixed_dictionaries({"kind": st.just("snooze"), "until_in": st.sampled_from([-5, 9])}),
]
HOW = st.sampled_from([0, 0, 1, 1, 2, 2, 3, 4]).flatmap(HOWS.__getitem__)
ENDS = st.lists(st.tuples(PICKS, HOW), min_size=1, max_size=3)
