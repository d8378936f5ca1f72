"""Cache entries: written, read with their TTL and version, and forgotten, each as an event."""

from __future__ import annotations

import json
import os
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from core_steps import claim, events, names, outcome

from tallybook import Book
from tallybook.book.folding import fold_history
from tallybook.cache.sqlite import SqliteCache
from tallybook.cli.main import main
from tallybook.entry import Entry, Invalidate, Put
from tallybook.errors import BadInput, VersionConflict
from tallybook.job import Job
from tallybook.testing import FakeClock, run_inline
from tallybook.worker.run import Context


def keys(book: Book) -> list[str]:
    return [entry.key for entry in book.entries()]


def last(book: Book) -> dict[str, Any]:
    return events(book)[-1]


def test_a_write_without_a_job_is_an_event_of_its_own_and_says_its_version(book: Book) -> None:
    first = book.put_entry("k", {"n": 1}, etag="e", origin="cloud", depends_on=["a"])
    second = book.put_entry("k", {"n": 2})
    assert (first.version, second.version) == (1, 2)
    assert book.entry("k") == second
    assert names(book) == ["cache.put", "cache.put"]


def test_a_read_costs_no_write(book: Book) -> None:
    book.put_entry("k", 1, ttl_s=5)
    before = len(events(book))
    assert book.read_entry("k").value == 1
    assert book.get_or("k", lambda: 2).value == 1
    assert len(events(book)) == before


@pytest.mark.parametrize(("after_s", "state"), [(9.9, "fresh"), (10, "expired")])
def test_an_expired_entry_is_not_given_unless_it_is_asked_for(
    book: Book, clock: FakeClock, after_s: float, state: str
) -> None:
    book.put_entry("k", 1, ttl_s=10)
    clock.advance(after_s)
    found = book.read_entry("k")
    assert (found.state, found.entry is None) == (state, state == "expired")
    allowed = book.read_entry("k", allow_expired=True)
    assert (allowed.state, allowed.value) == (state, 1)


def test_a_jump_of_the_wall_clock_neither_ends_a_ttl_nor_lengthens_it(
    book: Book, clock: FakeClock
) -> None:
    book.put_entry("k", 1, ttl_s=10)
    clock.jump(timedelta(days=1).total_seconds())
    assert book.read_entry("k").state == "fresh"
    clock.jump(-timedelta(days=2).total_seconds())
    clock.advance(11)
    assert book.read_entry("k").state == "expired"


def test_after_a_reboot_the_wall_clock_counts_and_one_set_back_ends_the_ttl(
    book: Book, clock: FakeClock
) -> None:
    book.put_entry("k", 1, ttl_s=1000)
    clock.reboot()
    assert book.read_entry("k").state == "fresh"
    clock.jump(1000)
    assert book.read_entry("k").state == "expired"
    clock.jump(-5000)
    assert book.read_entry("k").state == "expired"


def test_an_entry_older_than_asked_is_not_given_and_the_read_says_so(book: Book) -> None:
    book.put_entry("k", 1)
    found = book.read_entry("k", at_least_version=2, allow_expired=True)
    assert (found.state, found.entry) == ("too_old", None)
    assert book.read_entry("k", at_least_version=1).value == 1
    assert book.read_entry("nowhere").state == "absent"


def test_the_source_is_asked_on_a_miss_an_expiry_or_a_version_too_old(
    book: Book, clock: FakeClock
) -> None:
    assert book.get_or("k", lambda: "first", ttl_s=5).value == "first"
    clock.advance(5)
    assert book.get_or("k", lambda: "second").value == "second"
    newer = book.get_or("k", lambda: "third", at_least_version=9)
    assert (newer.value, newer.version) == ("third", 9)
    assert book.get_or("k", lambda: "never", at_least_version=9).value == "third"


def test_a_source_that_fails_leaves_all_as_it_was(book: Book) -> None:
    def broken() -> None:
        raise OSError("no network")

    with pytest.raises(OSError, match="no network"):
        book.get_or("k", broken)
    assert names(book) == []
    assert book.get_or("k", lambda: 1).value == 1


def test_many_threads_that_miss_one_key_ask_its_source_once(book: Book) -> None:
    entered, go = threading.Event(), threading.Event()
    asked: list[int] = []

    def source() -> int:
        asked.append(1)
        entered.set()
        assert go.wait(10)
        return len(asked)

    got: list[Any] = []
    readers = [
        threading.Thread(target=lambda: got.append(book.get_or("k", source).value))
        for _ in range(8)
    ]
    for reader in readers:
        reader.start()
    assert entered.wait(10)
    go.set()
    for reader in readers:
        reader.join(10)
    assert (got, len(asked)) == ([1] * 8, 1)


def test_a_write_on_an_entry_that_has_moved_on_is_refused_and_logged(book: Book) -> None:
    book.put_entry("k", 1)
    book.put_entry("k", 2, base_version=1)
    with pytest.raises(VersionConflict, match="written on version 1, but it has version 2"):
        book.put_entry("k", 3, base_version=1)
    assert book.read_entry("k").value == 2
    assert (last(book)["event"], last(book)["policy"]) == ("conflict.detected", "refused")
    with pytest.raises(VersionConflict):
        book.put_entry("k", 3, base_version=0)
    assert book.put_entry("new", 1, base_version=0).version == 1


def test_an_entry_is_forgotten_by_its_key_and_what_is_not_there_costs_no_event(book: Book) -> None:
    book.put_entry("k", 1)
    assert book.invalidate("k", reason="changed at the cloud")
    assert (keys(book), last(book)["reason"]) == ([], "changed at the cloud")
    count = len(events(book))
    assert not book.invalidate("k")
    assert len(events(book)) == count


def test_what_depends_on_a_key_is_forgotten_in_one_change_also_at_second_hand(book: Book) -> None:
    book.put_entry("user", 1)
    book.put_entry("page", 1, depends_on=["user", "other"])
    book.put_entry("site", 1, depends_on=["page", "site"])
    book.put_entry("apart", 1, depends_on=["user"])
    book.put_entry("apart", 2)
    assert book.dependents("user") == ["page", "site"]
    assert book.invalidate_dependents("user") == ["page", "site"]
    assert keys(book) == ["apart", "user"]
    assert [e["reason"] for e in events(book)[-2:]] == ["depends on user"] * 2
    assert book.invalidate_dependents("user") == []


def test_what_a_handler_forgets_is_part_of_its_settle_and_nothing_else(book: Book) -> None:
    book.put_entry("a", 1, depends_on=["x"])
    book.put_entry("b", 1)
    book.enqueue("t", 1)
    job = claim(book)
    writes = [Put("c", 1, depends_on=("x",)), Invalidate("x", dependents=True), Invalidate("b")]
    book.settle(outcome(book, job, "retry"), writes)
    assert keys(book) == ["a", "b"]


def test_writes_of_one_settle_see_each_other(book: Book) -> None:
    book.put_entry("a", 1, depends_on=["x"])
    book.enqueue("t", 1)

    def handle(job: Job, ctx: Context) -> None:
        ctx.cache.put("b", 1, depends_on=["x"])
        ctx.cache.put("a", 2)
        ctx.cache.invalidate_dependents("x")
        ctx.cache.put("b", 2)
        ctx.cache.invalidate("nowhere")

    assert run_inline(book, {"t": handle}) == ["job.done"]
    told = [(e["event"], e.get("key"), e.get("version")) for e in events(book)[-5:]]
    assert told == [
        ("cache.put", "b", 1),
        ("cache.put", "a", 2),
        ("cache.invalidated", "b", None),
        ("cache.put", "b", 1),
        ("job.done", None, None),
    ]


def test_a_handler_reads_states_and_shares_the_source_of_a_miss(book: Book) -> None:
    book.enqueue("t", 1)
    seen: list[Any] = []

    def handle(job: Job, ctx: Context) -> None:
        seen.append(ctx.cache.get("k").state)
        seen.append(ctx.cache.get_or("k", lambda: "from the source").value)
        seen.append(ctx.cache.get("k", at_least_version=2).state)

    run_inline(book, {"t": handle})
    assert seen == ["absent", "from the source", "too_old"]
    entry = book.entry("k")
    assert entry is not None and entry.job_id


def test_a_handler_that_wrote_on_a_version_that_moved_on_is_done_and_the_conflict_logged(
    book: Book,
) -> None:
    book.put_entry("k", 1)
    book.enqueue("t", 1)

    def handle(job: Job, ctx: Context) -> None:
        ctx.cache.put("k", 2, base_version=1)
        book.put_entry("k", "meanwhile")

    assert run_inline(book, {"t": handle}) == ["job.done"]
    assert names(book)[-2:] == ["conflict.detected", "job.done"]
    assert book.read_entry("k").value == "meanwhile"


def test_a_handler_that_writes_on_an_old_version_is_told_at_once(book: Book) -> None:
    book.put_entry("k", 1)
    book.enqueue("t", 1)

    def handle(job: Job, ctx: Context) -> None:
        ctx.cache.put("k", 2, base_version=7)

    assert run_inline(book, {"t": handle}) == ["job.retry_scheduled"]
    assert last(book)["error_type"] == "VersionConflict"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"ttl_s": 0}, "ttl_s"),
        ({"ttl_s": -1}, "ttl_s"),
        ({"ttl_s": float("nan")}, "ttl_s"),
        ({"version": 0}, "version"),
        ({"base_version": -1}, "base_version"),
        ({"depends_on": "user"}, "depends_on"),
        ({"depends_on": [1]}, "depends_on"),
        ({"origin": "moon"}, "origin"),
        ({"etag": 5}, "etag"),
        ({"synced_at": "x\0"}, "synced_at"),
    ],
)
def test_a_field_that_cannot_be_kept_is_refused_and_named(
    book: Book, fields: dict[str, Any], words: str
) -> None:
    with pytest.raises(BadInput, match=words):
        book.put_entry("k", 1, **fields)
    assert names(book) == []


def test_the_log_alone_gives_every_entry_back_with_its_ttl(book: Book, clock: FakeClock) -> None:
    book.put_entry("a", 1, ttl_s=10, depends_on=["x"])
    book.put_entry("b", 1, depends_on=["x"])
    book.invalidate("b")
    clock.advance(3)
    tables, _ = fold_history(book.layout)
    assert tables.entries == {entry.key: entry for entry in book.entries()}
    book.close()
    book.layout.state.unlink()
    with Book.open(book.layout.root, clock=clock) as again:
        assert again.entries() == list(tables.entries.values())
        assert again.dependents("x") == ["a"]


def test_entries_are_filtered_by_prefix_pending_and_expiry(book: Book, clock: FakeClock) -> None:
    book.put_entry("a/1", 1, ttl_s=1)
    book.put_entry("a/2", 1, pending=True)
    book.put_entry("a%", 1)
    book.put_entry("b/\U0010ffff", 1)
    clock.advance(2)
    assert [e.key for e in book.entries(prefix="a/")] == ["a/1", "a/2"]
    assert [e.key for e in book.entries(pending=True)] == ["a/2"]
    assert [e.key for e in book.entries(expired=True)] == ["a/1"]
    assert [e.key for e in book.entries(prefix="a", expired=False, limit=1)] == ["a%"]
    assert [e.key for e in book.entries(prefix="b/")] == ["b/\U0010ffff"]


# the command


@pytest.fixture
def root(tmp_path: Path) -> Path:
    with Book.open(tmp_path / "b") as book:
        book.put_entry("user/7", {"name": "Ada"}, etag="e1", depends_on=["team"])
        book.put_entry("user/7", {"name": "Ada L."}, depends_on=["team"])
        book.put_entry("user/8", None, pending=True, ttl_s=1e-6)
    return tmp_path / "b"


def answer(capsys: pytest.CaptureFixture[str], *words: str | Path) -> dict[str, Any]:
    assert main(["cache", *map(str, words), "--json"]) == 0
    shown: dict[str, Any] = json.loads(capsys.readouterr().out)
    return shown


def test_the_command_shows_an_entry_and_its_history(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = answer(capsys, "get", "user/7", "--book", root)
    assert (shown["value"], shown["version"], shown["state"]) == ({"name": "Ada L."}, 2, "fresh")
    past = answer(capsys, "get", "user/7", "--history", "--book", root)
    assert [(e["event"], e["version"]) for e in past["events"]] == [
        ("cache.put", 1),
        ("cache.put", 2),
    ]
    assert main(["cache", "get", "user/7", "--book", str(root)]) == 0
    assert "Ada L." in capsys.readouterr().out


def test_the_command_lists_with_filters(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def listed(*options: str) -> list[str]:
        return [e["key"] for e in answer(capsys, "list", *options, "--book", root)["entries"]]

    assert listed() == ["user/7", "user/8"]
    assert listed("--prefix", "user/8") == ["user/8"]
    assert listed("--pending") == listed("--expired") == ["user/8"]
    assert listed("--limit", "1") == ["user/7"]
    assert main(["cache", "list", "--prefix", "none", "--book", str(root)]) == 0
    assert "no cache entries match" in capsys.readouterr().out


def test_the_command_forgets_by_dependency_after_a_dry_run(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wish = ("invalidate", "--depends-on", "team", "--book", root)
    assert answer(capsys, *wish, "--dry-run") == {"invalidated": ["user/7"], "dry_run": True}
    assert answer(capsys, *wish) == {"invalidated": ["user/7"], "dry_run": False}
    assert answer(capsys, *wish)["invalidated"] == []
    past = answer(capsys, "get", "user/7", "--history", "--book", root)
    assert past["events"][-1]["reason"] == "by hand"


def test_the_command_forgets_many_only_within_bounds_and_a_second_time_the_others(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Book.open(root) as book:
        for number in range(1, 103):
            book.put_entry(f"k{number:03}", 1, depends_on=[f"k{number - 1:03}"])
    wish = ("invalidate", "--depends-on", "k000", "--book", root)
    assert main(["cache", *map(str, wish)]) == 2
    assert "more than 100 entries depend on it; say how many" in capsys.readouterr().err
    furthest = answer(capsys, *wish, "--limit", "2", "--dry-run")["invalidated"]
    assert furthest == ["k101", "k102"] == answer(capsys, *wish, "--limit", "2")["invalidated"]
    assert len(answer(capsys, *wish, "--all", "--dry-run")["invalidated"]) == 100
    assert len(answer(capsys, *wish)["invalidated"]) == 100
    assert answer(capsys, *wish)["invalidated"] == []


@pytest.mark.parametrize(
    "words",
    [
        ["get", "nowhere"],
        ["get", "nowhere", "--history"],
        ["invalidate", "nowhere"],
        ["invalidate"],
        ["invalidate", "user/7", "--depends-on", "team"],
        ["invalidate", "user/7", "--limit", "1"],
        ["invalidate", "--depends-on", "team", "--limit", "0"],
        ["invalidate", "--depends-on", "team", "--limit", "1", "--all"],
        ["list", "--limit", "0"],
    ],
)
def test_what_the_command_cannot_do_is_said_in_one_line(
    root: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cache", *words, "--book", str(root)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_cache_rebuild_is_rebuild(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = answer(capsys, "rebuild", "--book", root)
    assert main(["rebuild", "--json", "--book", str(root)]) == 0
    again = json.loads(capsys.readouterr().out)
    assert shown["keys"] == 2
    own = {"events_read": 0, "certificate": "", "set_aside": ""}
    assert shown | own == again | own


def certain(root: Path) -> None:
    """Let the time of the folder log/ be one that proves that no segment came since."""
    os.utime(root / "log", ns=(1_000_000_001, 1_000_000_001))


def test_what_was_read_is_given_again_until_anyone_in_whatever_process_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []
    real = SqliteCache.get

    def counted(self: SqliteCache, key: str) -> Entry | None:
        reads.append(key)
        return real(self, key)

    monkeypatch.setattr(SqliteCache, "get", counted)
    root = tmp_path / "b"
    with Book.open(root) as one, Book.open(root) as other:
        one.put_entry("k", 0)
        certain(root)
        one.put_entry("k", 1)
        reads.clear()
        assert [one.read_entry(key).value for key in "kkxx"] == [1, 1, None, None]
        assert reads == ["k", "x"]
        other.put_entry("k", "new")
        assert [one.read_entry("k").value, one.entry("x")] == ["new", None]
        one.put_entry("x", 7)
        assert [one.read_entry(key).value for key in "kx"] == ["new", 7]
