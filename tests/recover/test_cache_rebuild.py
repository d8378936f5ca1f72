"""``cache rebuild``: as of an instant, into a folder, from a checkpoint or an export."""

from __future__ import annotations

import errno
import json
import os
import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recover_logs import HandLog, lines, write
from test_proven import DAMAGE, OPS, damage

from tallybook import Book
from tallybook.book import checkpoints
from tallybook.book.pruning import prune
from tallybook.cli.main import main
from tallybook.layout import Layout
from tallybook.log.compress import compress_closed
from tallybook.recover import Steps, rebuild
from tallybook.recover.bulk import BulkFold
from tallybook.recover.caching import fold_cache
from tallybook.recover.certificate import cached
from tallybook.recover.survey import survey
from tallybook.testing import FakeClock

FULL: dict[str, Any] = {
    "base_version": 3,
    "etag": 'W/"1"',
    "last_modified": "yesterday",
    "origin": "cloud",
    "pending": True,
    "ttl_s": 1.5,
    "depends_on": ["a", "b"],
    "value_schema": "s2",
    "synced_at": "2026-03-01T00:00:00.000000Z",
    "job_id": "j",
}


def asked(capsys: pytest.CaptureFixture[str], root: Path, *words: str) -> tuple[int, Any]:
    """``cache rebuild`` of a book: its code and its answer."""
    capsys.readouterr()
    code = main(["cache", "rebuild", *words, "--book", str(root), "--json"])
    out = capsys.readouterr().out
    return code, json.loads(out) if out else None


def files(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def exported(out: Path) -> dict[str, Any]:
    """{key: value} of a cache that was written."""
    rows = [json.loads(line) for line in (out / "cache.ndjson").read_text().splitlines()]
    return {row["key"]: row["value"] for row in rows}


@settings(max_examples=12, deadline=None)
@given(ops=OPS, damages=DAMAGE, cut=st.integers(0, 50), seed=st.integers(0, 9))
def test_the_bulk_fold_gives_what_apply_gives(
    ops: list[Any], damages: list[Any], cut: int, seed: int
) -> None:
    dice = random.Random(seed)  # noqa: S311
    with TemporaryDirectory() as folder:
        log = HandLog(Path(folder) / "b")
        for op in ops:
            if op[0] == "put" and dice.random() < 0.3:
                log.put(op[1], {"n": [op[2], 1.5, 1e-7, "é\x1f"]}, **FULL)
            else:
                log.live([op])
        log.mark()
        compress_closed(Layout(log.root))
        for one in damages:
            damage(log.root / "log", *one)
        found = survey(Layout(log.root))
        as_of = f"2026-03-01T00:00:{cut % 60:02d}.000000Z" if cut else None
        folded = fold_cache(found, None, as_of, Steps())
        with BulkFold(found, Path(folder), as_of) as bulk:
            told: list[int] = []
            bulk.fold(told.append)
            assert max(told, default=0) == found.events
            assert {e.key: e for e in bulk.entries()} == folded.tables.entries
            assert bulk.cached() == cached(found, folded)


def test_the_cache_as_of_each_instant_is_what_it_was_then(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = HandLog(tmp_path / "b")
    log.live([("put", "a", 1), ("put", "b", 2), ("roll", "", 0), ("drop", "a", 0), ("put", "b", 3)])
    before = files(log.root)
    for number, (at, truth) in enumerate(log.values):
        out = tmp_path / f"out{number}"
        code, told = asked(capsys, log.root, "--as-of", at, "--out", str(out))
        assert (code, told["as_of"], told["keys"]) == (0, at, len(truth))
        assert exported(out) == truth
        assert (out / "certificate.html").exists()
    for later in (log.at, "now", "2999-01-01T00:00:00Z"):
        assert asked(capsys, log.root, "--as-of", later)[1]["parity"] == told["parity"]
    assert files(log.root) == before


def test_damage_behind_the_instant_does_not_matter_to_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = HandLog(tmp_path / "b")
    log.live([("put", "a", 1), ("put", "a", 2), ("put", "a", 3), ("put", "a", 4)])
    (path,) = (log.root / "log").iterdir()
    write(path, [line for line in lines(path) if b'"seq":4' not in line])
    at = [at for at, _ in log.values]
    assert asked(capsys, log.root, "--as-of", at[0])[0] == 0
    assert asked(capsys, log.root, "--as-of", at[2])[0] == 4


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--as-of", "2020-01-01T00:00:00Z"], "the log begins at 2026-03-01T00:00:01"),
        (["--as-of", "yesterday"], "--as-of 'yesterday': no time"),
        (["--as-of", "2026-03-01T00:00:00"], "with its zone"),
        (["--from", "gone.csv"], "cannot read gone.csv"),
        (["--from", "no-time.csv"], "does not say when it was taken: give --covers"),
        (["--from", "twice.csv", "--covers", "2026-03-01T00:00:00Z"], "row 2: the key 'a' stands"),
        (["--from", "torn.ndjson", "--covers", "2026-03-01T00:00:00Z"], "row 2 is not JSON"),
        (["--from", "again.ndjson", "--covers", "2026-03-01T00:00:00Z"], "row 1: a name stands"),
        (["--from", "again.json", "--covers", "2026-03-01T00:00:00Z"], "row 2: a name stands"),
        (["--from", "again.csv", "--covers", "2026-03-01T00:00:00Z"], "names a column twice: n"),
        (["--from", "keyless.ndjson", "--covers", "2026-03-01T00:00:00Z"], "no key; name its"),
        (["--covers", "2026-03-01T00:00:00Z"], "name one with --from"),
        (["--out", "twice.csv"], "is a file; name a folder"),
    ],
)
def test_bad_input_is_one_line_and_changes_nothing(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    told: str,
) -> None:
    log = HandLog(tmp_path / "b")
    log.put("a", 1)
    monkeypatch.chdir(tmp_path)
    Path("no-time.csv").write_text("key,value\na,1\n")
    Path("twice.csv").write_text("key,value\na,1\na,2\n")
    Path("torn.ndjson").write_text('{"key": "a", "value": 1}\n{"key"\n')
    Path("keyless.ndjson").write_text('{"id": "a", "value": 1}\n')
    Path("again.ndjson").write_text('{"key": "a", "value": {"n": 1, "n": 2}}\n')
    Path("again.json").write_text('[{"key": "b"}, {"key": "a", "n": 1, "n": 2}]')
    Path("again.csv").write_text("key,n,n\na,1,2\n")
    before = files(tmp_path)
    assert main(["cache", "rebuild", "--book", "b", *words]) == 2
    error = capsys.readouterr().err
    assert told in error and error.count("\n") == 1
    assert files(tmp_path) == before


def test_an_instant_before_what_a_pruned_log_still_knows_is_told_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = FakeClock()
    root = tmp_path / "b"
    root.mkdir()
    (root / "book.toml").write_text("[log]\nsegment_bytes = 1024\n")
    with Book.open(root, clock=clock) as book:
        for number in range(30):
            clock.advance(1)
            book.put_entry("k", {"number": number, "words": "x" * 80})
        then = book.moment().wall()
        clock.advance(1)
        compress_closed(book.layout)
        prune(book)
        book.put_entry("k", "new")
        now = book.moment().wall()
    assert main(["cache", "rebuild", "--book", str(root), "--as-of", then]) == 4
    error = capsys.readouterr().err
    assert "the log was pruned up to" in error and "--from" in error
    code, told = asked(capsys, root, "--as-of", now)
    assert (code, told["keys"]) == (0, 1) and told["checkpoint"]


def test_a_checkpoint_goes_to_parquet_and_comes_back_from_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = FakeClock()
    root, out = tmp_path / "b", tmp_path / "out"
    with Book.open(root, clock=clock) as book:
        book.put_entry("a", {"n": 1}, etag="e", ttl_s=9)
        book.put_entry("b", 2)
        clock.advance(1)
        made = checkpoints.make(book.layout, book.moment().wall())
        clock.advance(1)
        book.put_entry("b", 3)
    words = ("--from", str(made.path), "--as-of", made.made_at)
    told = asked(capsys, root, *words, "--out", str(out), "--format", "parquet")[1]
    assert polars.read_parquet(out / "cache.parquet")["value"].to_list() == ['{"n":1}', "2"]
    again = ("--from", told["cache"], "--covers", made.made_at)
    assert asked(capsys, root, *again, "--as-of", made.made_at)[1]["parity"] == told["parity"]
    code, restored = asked(capsys, root, *again)
    assert (code, restored["put"], restored["refused"]) == (0, 0, 0)
    with BulkFold(survey(Layout(root)), tmp_path) as bulk:
        bulk.fold(lambda _: None)
        bulk.write(tmp_path / "bulk.parquet")
    assert polars.read_parquet(tmp_path / "bulk.parquet")["etag"].to_list() == ["e", None]


def test_a_full_disk_is_told_in_one_line_and_leaves_no_half_cache(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = HandLog(tmp_path / "b")
    log.put("a", 1)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("tallybook.whole.sync", full)
    out = tmp_path / "out"
    assert main(["cache", "rebuild", "--book", str(log.root), "--out", str(out)]) == 3
    error = capsys.readouterr().err
    assert "cache.ndjson: No space left on device; nothing was changed" in error
    assert error.count("\n") == 1 and list(out.iterdir()) == []


def test_a_line_that_no_writer_of_ours_wrote_is_folded_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = HandLog(tmp_path / "b")
    log.put("a", 1, version="one")
    code, told = asked(capsys, log.root, "--as-of", log.at)
    assert (code, told["keys"]) == (0, 1)


# exports


def live(root: Path) -> dict[str, Any]:
    with Book.read(root) as book:
        return {entry.key: entry.value for entry in book.entries(100)}


def lived(root: Path, store: str, clock: FakeClock) -> str:
    """A book whose cache differs from the cloud's; the instant of the export."""
    root.mkdir()
    (root / "book.toml").write_text(f'[cache]\nstore = "{store}"\n')
    with Book.open(root, clock=clock) as book:
        for key in ("same", "stale", "gone", "later", "forgotten"):
            book.put_entry(key, 1)
        book.put_entry("mine", 1, pending=True)
        clock.advance(10)
        covers = book.moment().wall()
        clock.advance(10)
        book.put_entry("later", 2)
        book.invalidate("forgotten")
    return covers


CLOUD = [
    {"key": "same", "value": 1},
    {"key": "stale", "value": 7},
    {"key": "later", "value": 1},
    {"key": "forgotten", "value": 1},
    {"key": "new", "value": {"x": 1}},
]
TRUE = {"same": 1, "stale": 7, "later": 2, "mine": 1, "new": {"x": 1}}


@pytest.mark.parametrize("store", ["sqlite", "json"])
@pytest.mark.parametrize("kind", ["ndjson", "json", "csv", "parquet"])
def test_an_export_and_the_log_since_bring_the_live_cache_back_and_twice_is_harmless(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], store: str, kind: str
) -> None:
    root = tmp_path / "b"
    covers = lived(root, store, FakeClock())
    path = tmp_path / f"cloud.{kind}"
    as_text = [{"key": row["key"], "value": json.dumps(row["value"])} for row in CLOUD]
    if kind == "ndjson":
        path.write_text("".join(json.dumps(row) + "\n" for row in CLOUD))
    elif kind == "json":
        path.write_text(json.dumps(CLOUD))
    elif kind == "csv":
        polars.DataFrame(as_text).write_csv(path)
    else:
        polars.DataFrame(as_text).write_parquet(path)
    words = ("--from", str(path), "--covers", covers)
    before = files(root)
    code, told = asked(capsys, root, *words, "--dry-run")
    assert (code, told["put"], told["keys"]) == (0, None, 5)
    assert files(root) == before
    code, told = asked(capsys, root, *words)
    assert (code, told["put"], told["invalidated"], told["refused"]) == (0, 2, 1, 0)
    assert live(root) == TRUE
    code, told = asked(capsys, root, *words)
    assert (code, told["put"], told["invalidated"]) == (0, 0, 0)
    (root / "state.db").unlink()
    assert rebuild(root).complete
    assert live(root) == TRUE


def test_by_version_the_higher_one_wins_and_what_the_export_lacks_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "b"
    with Book.open(root) as book:
        book.put_entry("old", "here", version=2)
        book.put_entry("new", "here", version=9)
        book.put_entry("only", "here")
    path = tmp_path / "cloud.csv"
    path.write_text('id,value,version\nold,"""there""",5\nnew,"""there""",5\n')
    code, told = asked(capsys, root, "--from", str(path), "--key", "id")
    assert (code, told["put"]) == (0, 1)
    assert live(root) == {"old": "there", "new": "here", "only": "here"}
    with Book.read(root) as read:
        entry = read.entry("old")
        assert entry is not None and (entry.version, entry.origin) == (5, "cloud")


def test_an_export_stands_in_for_checkpoints_that_are_lost_with_a_pruned_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "b"
    clock = FakeClock()
    root.mkdir()
    (root / "book.toml").write_text("[log]\nsegment_bytes = 1024\n")
    with Book.open(root, clock=clock) as book:
        for number in range(20):
            book.put_entry(f"k{number}", "x" * 100)
        compress_closed(book.layout)
        prune(book)
        clock.advance(5)
        covers = book.moment().wall()
        clock.advance(5)
        book.put_entry("k0", "after")
    for path in [*checkpoints.kept(Layout(root))]:
        path.path.unlink()
    for path in root.glob("state.db*"):
        path.unlink()
    cloud = tmp_path / "cloud.ndjson"
    cloud.write_text("".join(f'{{"key": "k{n}", "value": {n}}}\n' for n in range(20)))
    assert main(["rebuild", "--book", str(root)]) == 4
    assert "no checkpoint is good" in capsys.readouterr().err
    _, told = asked(capsys, root, "--from", str(cloud), "--covers", covers)
    assert told["refused"] == 0
    assert live(root) == {f"k{n}": n for n in range(20)} | {"k0": "after"}
    (root / "state.db").unlink()
    assert live(root)["k19"] == 19
