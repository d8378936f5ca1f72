"""Both cache stores keep the same promises; cache.json is torn, lost and shared without harm."""

from __future__ import annotations

import logging
import multiprocessing
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tallybook import Book
from tallybook.book import store as stores
from tallybook.cache.contract import Cache
from tallybook.cache.json_file import JsonCache
from tallybook.cache.sqlite import SqliteCache
from tallybook.entry import Entry
from tallybook.recover import rebuild
from tallybook.testing import Crashed, FakeClock, Fault, audit, check_cache, faults

Make = Callable[[], Cache]


@pytest.fixture(params=["sqlite", "json"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    number = iter(range(100))

    def sqlite() -> Cache:
        connection = stores.connect(":memory:")
        for part in stores.SCHEMA:
            connection.executescript(part)
        return SqliteCache(connection)

    def json() -> Cache:
        return JsonCache(tmp_path / f"{next(number)}.json")

    return {"sqlite": sqlite, "json": json}[request.param]


def test_a_store_keeps_every_promise_of_the_contract(make: Make) -> None:
    check_cache(make)


def test_a_store_that_breaks_a_promise_is_named_with_the_promise(tmp_path: Path) -> None:
    class Forgetful(JsonCache):
        def dependents(self, key: str) -> list[str]:
            return [name for name in super().dependents(key) if name == "nothing"]

    with pytest.raises(AssertionError, match="begins new dependencies"):
        check_cache(lambda: Forgetful(tmp_path / "c.json"))


# the file alone


def entry(key: str, value: str = "1", **fields: object) -> Entry:
    return Entry(key, value, **fields)  # type: ignore[arg-type] # the fields of any type


def test_what_was_flushed_is_there_again_with_every_field(tmp_path: Path) -> None:
    path = tmp_path / "cache.json"
    cache = JsonCache(path)
    kept = [entry("a", '{"x":[1.5,null]}', depends_on=("b",), ttl_s=1.0), entry("b", pending=True)]
    for one in kept:
        cache.put(one)
    cache.flush()
    again = JsonCache(path)
    assert (list(again.scan()), again.dependents("b")) == (kept, ["a"])
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("ruin", ["zeros", "torn", "empty", "list", "entries", "other"])
def test_a_file_that_is_no_whole_cache_counts_as_absent(tmp_path: Path, ruin: str) -> None:
    path = tmp_path / "cache.json"
    cache = JsonCache(path)
    cache.put(entry("a"))
    cache.flush()
    whole = path.read_bytes()
    path.write_bytes(
        {
            "zeros": bytes(len(whole)),
            "torn": whole[: len(whole) // 2],
            "empty": b"",
            "list": b"[1]",
            "entries": whole.replace(b'"value": 1', b'"worth": 1').replace(b'"value":1', b'"w":1'),
            "other": b'{"v": 99}',
        }[ruin]
    )
    again = JsonCache(path)
    assert (again.size(), again.was_absent) == (0, True)


@pytest.mark.parametrize("step", ["write", "rename"])
def test_a_kill_in_the_middle_of_a_flush_leaves_the_old_file_whole(
    tmp_path: Path, step: str
) -> None:
    path = tmp_path / "cache.json"
    cache = JsonCache(path)
    cache.put(entry("a"))
    cache.flush()
    before = path.read_bytes()
    cache.put(entry("b", "2" * 9000))
    with faults(Fault(step, "cache file", 1, "raise")), pytest.raises(Crashed):
        cache.flush()
    assert path.read_bytes() == before
    cache = JsonCache(path)
    cache.put(entry("c"))
    cache.flush()
    assert [one.key for one in JsonCache(path).scan()] == ["a", "c"]


def write_some(path: Path, writer: int) -> None:
    cache = JsonCache(path)
    for number in range(10):
        cache.put(entry(f"{writer}/{number}", str(number)))
        cache.flush()


def test_eight_processes_lose_no_update_of_one_file(tmp_path: Path) -> None:
    path = tmp_path / "cache.json"
    spawn = multiprocessing.get_context("spawn")
    writers = [spawn.Process(target=write_some, args=(path, number)) for number in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
    assert [writer.exitcode for writer in writers] == [0] * 8
    assert {one.key for one in JsonCache(path).scan()} == {
        f"{writer}/{number}" for writer in range(8) for number in range(10)
    }


# in a book


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "b"
    made.mkdir()
    (made / "book.toml").write_text('[cache]\nstore = "json"\nflush_interval_ms = 3600000\n')
    return made


@pytest.fixture
def book(root: Path, clock: FakeClock) -> Iterator[Book]:
    with Book.open(root, clock=clock) as opened:
        yield opened


def in_file(root: Path) -> dict[str, str]:
    return {one.key: one.value_json for one in JsonCache(root / "cache.json").scan()}


def test_a_book_flushes_its_cache_when_it_is_closed_and_reads_it_again(
    book: Book, root: Path, clock: FakeClock
) -> None:
    book.put_entry("a", 1)
    book.put_entry("b", 1, depends_on=["a"])
    book.invalidate_dependents("a")
    assert (book.read_entry("a").value, book.read_entry("b").state) == (1, "absent")
    assert in_file(root) == {}
    book.close()
    assert in_file(root) == {"a": "1"}
    with Book.open(root, clock=clock) as again:
        assert again.read_entry("a").value == 1
    assert audit(root) == []


def test_a_book_flushes_at_its_interval(tmp_path: Path) -> None:
    root = tmp_path / "quick"
    root.mkdir()
    (root / "book.toml").write_text('[cache]\nstore = "json"\nflush_interval_ms = 1\n')
    with Book.open(root) as book:
        while not in_file(root):
            book.put_entry("a", 1)


def test_two_books_open_on_one_folder_see_each_other_and_lose_nothing(
    book: Book, root: Path, clock: FakeClock
) -> None:
    book.put_entry("a", 1)
    with Book.open(root, clock=clock) as other:
        other.put_entry("a", 2)
        other.put_entry("b", 1)
        assert book.read_entry("a").value == 2
        book.put_entry("c", 1)
        book.put_entry("a", 3)
        assert [one.key for one in other.entries()] == ["a", "b", "c"]
        book.close()
    assert in_file(root) == {"a": "3", "b": "1", "c": "1"}


@pytest.mark.parametrize("content", [None, b"\0" * 900, b'{"v": 1, "posi'])
def test_a_lost_or_torn_file_is_made_anew(
    book: Book, root: Path, clock: FakeClock, content: bytes | None
) -> None:
    book.put_entry("a", 1)
    book.close()
    path = root / "cache.json"
    path.unlink() if content is None else path.write_bytes(content)
    with Book.open(root, clock=clock) as again:
        assert again.read_entry("a").value == 1
    assert in_file(root) == {"a": "1"}


def test_an_old_file_catches_up_with_what_other_processes_wrote(
    book: Book, root: Path, clock: FakeClock
) -> None:
    book.put_entry("a", 1)
    book.put_entry("gone", 1)
    book.close()
    old = (root / "cache.json").read_bytes()
    with Book.open(root, clock=clock) as other:
        other.put_entry("a", 2)
        other.invalidate("gone")
    (root / "cache.json").write_bytes(old)
    with Book.open(root, clock=clock) as again:
        assert [(one.key, one.value) for one in again.entries()] == [("a", 2)]


def _changed(whole: bytes) -> bytes:
    """The same file with another value."""
    changed = whole.replace(b'"value": 1', b'"value": 9')
    assert changed != whole
    return changed


def test_a_rebuild_makes_the_file_anew_with_the_parity_of_the_other_store(
    book: Book, root: Path
) -> None:
    book.put_entry("a", 1)
    book.close()
    path = root / "cache.json"
    path.write_bytes(_changed(path.read_bytes()))
    rebuilt = rebuild(root)
    assert in_file(root) == {"a": "1"}
    (root / "book.toml").write_text('[cache]\nstore = "sqlite"\n')
    assert rebuild(root).parity == rebuilt.parity
    with Book.open(root) as again:
        assert again.read_entry("a").value == 1


def test_a_change_of_the_setting_loses_nothing_either_way(book: Book, root: Path) -> None:
    book.put_entry("a", 1)
    book.close()
    toml = (root / "book.toml").read_text()
    (root / "book.toml").write_text("")
    with Book.open(root) as sqlite:
        assert sqlite.read_entry("a").value == 1
        sqlite.put_entry("a", 2)
    (root / "book.toml").write_text(toml)
    with Book.open(root) as json:
        assert json.read_entry("a").value == 2


def test_a_flush_that_fails_is_told_and_the_change_stays(
    book: Book, root: Path, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    (root / "cache.json").mkdir()
    book.put_entry("a", 1)
    logger = logging.getLogger("tallybook.book")
    logger.addHandler(caplog.handler)
    book.close()
    logger.removeHandler(caplog.handler)
    with Book.open(root, clock=clock) as again:
        assert again.read_entry("a").value == 1
    assert "cache.json is written later" in caplog.text
    (root / "cache.json").rmdir()
    with Book.open(root, clock=clock) as again:
        assert again.read_entry("a").value == 1
