"""A wrong key is never called proven: random histories, damaged at random, against a model."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import example, given, settings
from hypothesis import strategies as st
from recover_logs import HandLog, Op, lines, write

from tallybook.layout import Layout
from tallybook.log.compress import compress_closed
from tallybook.recover import Certificate, look

KEYS = st.sampled_from("abcde")
OPS = st.lists(
    st.tuples(
        st.sampled_from(["put"] * 6 + ["drop", "enqueue", "roll", "roll", "writer"]),
        KEYS,
        st.integers(0, 99),
    ),
    min_size=3,
    max_size=40,
)
DAMAGE = st.lists(
    st.tuples(
        st.sampled_from(
            ["lose segment", "lose line", "double line", "copy segment", "rename segment",
             "shuffle lines", "edit value", "edit key", "tear line"]
        ),
        st.integers(0, 10**6),
        st.integers(0, 10**6),
    ),
    max_size=4,
)  # fmt: skip
HARMLESS = {"double line", "copy segment", "rename segment", "shuffle lines"}


def damage(log: Path, kind: str, which: int, where: int) -> None:
    """Do one thing to one segment."""
    segments = sorted(log.glob("*.ndjson"))
    if not segments:
        return
    path = segments[which % len(segments)]
    of = lines(path)
    at = where % len(of) if of else 0
    if kind == "lose segment" or not of:
        path.unlink()
    elif kind == "copy segment":
        write(path.with_name(f"copy-{len(segments)}-{path.name}"), of)
    elif kind == "rename segment":
        path.rename(path.with_name(f"renamed-{len(segments)}-{path.name}"))
    elif kind == "shuffle lines":
        write(path, [of[at], *of[:at], *of[at + 1 :]])
    elif kind == "double line":
        write(path, [*of[: at + 1], *of[at:]])
    elif kind == "lose line":
        write(path, of[:at] + of[at + 1 :])
    elif kind == "tear line":
        write(path, [*of[:at], of[at][: len(of[at]) // 2] + b"\n", *of[at + 1 :]])
    elif b"cache.put" in of[at] and of[at].endswith(b"}\n"):
        edited = json.loads(of[at])
        edited |= {"value": -1} if kind == "edit value" else {"key": "a"}
        write(path, [*of[:at], json.dumps(edited).encode() + b"\n", *of[at + 1 :]])


def check(certificate: Certificate, rebuilt: dict[str, object], truth: dict[str, object]) -> None:
    """Nothing that is called proven is wrong, and a complete answer is the truth."""
    admitted = {*certificate.unknown_keys, *certificate.unsealed_keys}
    wrong = {key for key, value in rebuilt.items() if truth.get(key, "absent") != value}
    assert wrong <= admitted
    if certificate.complete:
        assert rebuilt == truth
    if truth.keys() - rebuilt.keys():
        assert not certificate.complete


@settings(max_examples=60, deadline=None)
@given(ops=OPS, damages=DAMAGE)
@example(
    ops=[("put", "a", 1), ("roll", "a", 0), ("put", "a", 2), ("roll", "a", 0)],
    damages=[("edit value", 1, 1)],
)
@example(
    ops=[("put", "a", 1), ("writer", "a", 0), ("put", "b", 2)], damages=[("lose segment", 0, 0)]
)
@example(ops=[("put", "a", 1), ("put", "b", 2), ("put", "b", 3)], damages=[("lose line", 0, 3)])
@example(
    ops=[("put", "a", 1), ("roll", "a", 0), ("writer", "a", 0), ("put", "a", 0)],
    damages=[("lose line", 20, 0), ("lose line", 20, 0)],
)
def test_a_wrong_key_is_never_called_proven(
    ops: list[Op], damages: list[tuple[str, int, int]]
) -> None:
    with TemporaryDirectory() as folder:
        log = HandLog(Path(folder) / "b")
        log.live(ops)
        log.mark()
        for one in damages:
            damage(log.root / "log", *one)
        certificate, folded = look(log.root)
        rebuilt = {key: entry.value for key, entry in folded.tables.entries.items()}
        check(certificate, rebuilt, log.truth)
        if {kind for kind, *_ in damages} <= HARMLESS:
            assert certificate.complete
            assert not certificate.unknown_keys


@settings(max_examples=12, deadline=None)
@given(ops=OPS, which=st.integers(0, 100), cut=st.booleans())
def test_a_damaged_archive_proves_nothing_that_is_wrong(
    ops: list[Op], which: int, cut: bool
) -> None:
    with TemporaryDirectory() as folder:
        log = HandLog(Path(folder) / "b")
        log.live([*ops, ("roll", "a", 0), ("put", "e", 5)])
        log.mark()
        compress_closed(Layout(log.root))
        archives = sorted((log.root / "log").glob("*.zst"))
        path = archives[which % len(archives)]
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2] if cut else whole[:-1])
        certificate, folded = look(log.root)
        assert not certificate.complete
        check(certificate, {k: e.value for k, e in folded.tables.entries.items()}, log.truth)
