"""A checkpoint as Parquet: the same state as from its file, and damage is refused."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import polars
import pytest

from tallybook import Book
from tallybook.book import checkpoints
from tallybook.book.checkpoints import Checkpoint
from tallybook.cli.main import main
from tallybook.errors import BadInput
from tallybook.job import Outcome
from tallybook.recover import columnar, rebuild
from tallybook.testing import FakeClock

SETTINGS = """
[topics."sync"]
max_running = 2
rate_per_s = 5.0
rate_burst = 3
"""


@pytest.fixture
def made(tmp_path: Path) -> Checkpoint:
    """A checkpoint with a row in each table, and a log that goes on behind it."""
    root = tmp_path / "b"
    root.mkdir()
    (root / "book.toml").write_text(SETTINGS, "utf-8")
    clock = FakeClock()
    with Book.open(root, clock=clock) as book:
        for number in range(6):
            book.enqueue("sync", {"n": number, "text": "é\u2028"}, ordering_key=f"o{number % 2}",
                         resource="printer" if number == 1 else None,
                         idempotency_key=f"k{number}", delay_s=float(number == 5))  # fmt: skip
        book.put_entry("a", {"x": 1.5})
        book.put_entry("b", [1, None], depends_on=("a",))
        book.pause("mail", "by hand")
        first, _ = book.claim("w1"), book.claim("w1")
        assert first is not None
        book.settle(
            Outcome(
                first.job_id, "sync", "w1", first.lease_token, "done", book.moment().wall(), 5.0
            )
        )
        kept = checkpoints.make(book.layout, book.moment().wall())
        clock.advance(5)
        book.put_entry("a", {"x": 2})
        book.enqueue("mail", {}, idempotency_key="late")
    return kept


def dump(path: Path) -> list[str]:
    """The whole of a state file, but for where it stands in the log of which writer."""
    with closing(sqlite3.connect(path)) as connection:
        return [line for line in connection.iterdump() if '"position"' not in line]


def test_the_parquet_form_restores_every_table_byte_by_byte(
    made: Checkpoint, tmp_path: Path
) -> None:
    folder = columnar.write(made, tmp_path / "out")
    told = json.loads((folder / "checkpoint.json").read_bytes())
    assert min(one["rows"] for one in told["tables"].values()) > 0
    assert polars.read_parquet(folder / "jobs.parquet")["status"].to_list().count("done") == 1
    with columnar.as_file(folder) as file, closing(sqlite3.connect(file)) as restored:
        with closing(sqlite3.connect(made.path)) as given:
            assert list(restored.iterdump()) == list(given.iterdump())
        assert checkpoints.position_of(file) == made.position


def test_a_rebuild_from_parquet_gives_the_state_that_one_from_the_checkpoint_gives(
    made: Checkpoint, tmp_path: Path
) -> None:
    folder = columnar.write(made, tmp_path / "out")
    shown = []
    for name, source in (("file", made.path), ("parquet", folder)):
        root = tmp_path / name
        shutil.copytree(made.path.parent.parent, root)
        shutil.rmtree(root / "checkpoints")
        (root / "state.db").unlink()
        done = rebuild(root, source=source, clock=FakeClock())
        assert (done.complete, done.jobs, done.keys) == (True, 7, 2)
        shown.append(dump(root / "state.db"))
    assert shown[0] == shown[1]


def test_a_checkpoint_of_parquet_that_is_damaged_newer_or_of_another_log_is_refused(
    made: Checkpoint, tmp_path: Path
) -> None:
    damaged, newer, lacking = (columnar.write(made, tmp_path / str(at)) for at in range(3))
    (damaged / "jobs.parquet").write_bytes(b"PAR1 not")
    told = json.loads((newer / "checkpoint.json").read_bytes())
    (newer / "checkpoint.json").write_text(json.dumps(told | {"schema": 99}))
    (lacking / "topics.parquet").unlink()
    for folder, said in ((damaged, "jobs.parquet is not the file"), (newer, "newer version"),
                         (lacking, "is no whole checkpoint")):  # fmt: skip
        with pytest.raises(BadInput, match=said):
            rebuild(made.path.parent.parent, source=folder, dry_run=True)


def test_checkpoint_out_and_rebuild_from_it_on_the_command_line(
    made: Checkpoint, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    book, out = made.path.parent.parent, tmp_path / "out"
    assert main(["checkpoint", "--book", str(book), "--out", str(out), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert Path(told["parquet"]) == out / told["checkpoint"].removesuffix(".db")
    for command in (["rebuild"], ["cache", "rebuild"]):
        words = [*command, "--from", told["parquet"], "--dry-run", "--json", "--book", str(book)]
        assert main(words) == 0
        assert json.loads(capsys.readouterr().out)["checkpoint"] == Path(told["parquet"]).name
