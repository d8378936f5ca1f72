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
TOPICS = st.sampled_from(["a", "b", "c"])
WANTED = st.sampled_from([(), (), ("a",), ("b", "c"), ("a", "b")])
WORKERS = st.sampled_from(["w1", "w2"])
LEASES = st.sampled_from([30, 10, 60])
PICKS = st.sampled_from([0, 0, 0, 1, 1, 2, 3, 4, 6, 9])
KEYS = st.sampled_from(["x", "y", "z"])
FAULTY = st.sampled_from([None] * 40 + FAULTS)
NEW = st.fixed_dictionaries(
    {"topic": TOPICS, "payload": st.sampled_from([1, 1.0, {"n": 2}])},
    optional={
        "key": st.sampled_from(["k", "l"]),
        "priority": st.sampled_from([0, 5, -5]),
        "delay": st.sampled_from([0, 5, 20]),
        "at_in": st.sampled_from([-40, 3, 90]),
        "expires": st.sampled_from([15, 70]),
        "order": st.sampled_from(["o", "p"]),
        "res": st.sampled_from(["r", "s"]),
        "latest": st.booleans(),
    },
)
PUT = st.fixed_dictionaries(
    {"key": KEYS, "value": st.integers(0, 3)},
    optional={
        "base": st.sampled_from([None, 0, 1, 2]),
        "ttl": st.sampled_from([None, 10, 50]),
        "depends": st.lists(KEYS, max_size=2, unique=True).map(tuple),
    },
)
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
