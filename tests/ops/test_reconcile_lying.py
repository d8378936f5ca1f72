"""A CSV file is compared where it lies: nothing of it is copied, and nothing is read otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars
import pytest

from tallybook import ops
from tallybook.errors import IncompleteInput
from tallybook.ops import memory
from tallybook.ops.exports import dialects
from tallybook.ops.exports.target import Target
from tallybook.ops.reconciling import Reconciliation, reconcile
from tallybook.ops.reconciling import compare as compare_

MANY = 60_000
WIDE = "x" * 150


def table(rows: list[str], header: str = "id,x") -> str:
    return "\n".join([header, *rows]) + "\n"


def compare(tmp_path: Path, local: str, cloud: str, **options: Any) -> Reconciliation:
    left, right = tmp_path / "local.csv", tmp_path / "cloud.csv"
    left.write_text(local, "utf-8")
    right.write_text(cloud, "utf-8")
    return reconcile(left, right, **{"key": "id", **options})


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the tables that rows were copied into."""
    seen: list[str] = []
    take = Target.take

    def taken(self: Target, *given: Any, **named: Any) -> int:
        seen.append(self.name)
        return take(self, *given, **named)

    monkeypatch.setattr(Target, "take", taken)
    return seen


def test_a_clean_file_is_not_copied_and_a_row_keeps_its_number_and_its_line(
    tmp_path: Path, copies: list[str]
) -> None:
    """Large enough to be read by several threads, which do not end in the order of the file."""
    rows = [f"{at},{WIDE}" for at in range(MANY)]
    left, right = list(rows), list(rows)
    left[50_000] = "50000,other"
    right[MANY - 1] = "new,1"
    with compare(tmp_path, table(left), table(right)) as found:
        assert found.rows.select("status", "key", "local_row", "cloud_row").rows() == [
            ("differs", "50000", 50_001, 50_001),
            ("only_cloud", "new", None, MANY),
            ("only_local", str(MANY - 1), MANY, None),
        ]
        assert (found.rows_local, found.rows_cloud) == (MANY, MANY)
    assert copies == []


def test_a_bad_row_is_told_with_its_line_and_the_others_are_compared(
    tmp_path: Path, copies: list[str]
) -> None:
    with compare(tmp_path, "id,x\n1,a\n2\n3,c\n", "id,x\n1,a\n2,b\n3,d,e\n") as found:
        told = found.unreadable.select("side", "line", "text").rows()
        assert told == [("local", 3, "2"), ("cloud", 4, "3,d,e")]
        assert found.statuses["match"] == 1
        assert (found.rows_local, found.rows_cloud) == (3, 3)
    assert copies == []


def test_a_bad_row_is_told_once_where_the_file_is_read_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare_, "_ROWS_AT_ONCE", 2)
    text = table(["1,a", "2", "3,c", "4,d", "5,e"])
    with compare(tmp_path, text, text) as found:
        assert found.unreadable.select("side", "line").rows() == [("local", 3), ("cloud", 3)]
        assert (found.rows_local, found.statuses["match"]) == (5, 4)


def test_progress_follows_the_bytes_of_a_file_that_duckdb_takes_for_a_few_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "PERIOD_S", 0.001)
    text = table([f"{at},{WIDE}" for at in range(MANY)])
    told: list[tuple[str, int, int]] = []
    compare(tmp_path, text, text, progress=lambda *how: told.append(how)).close()
    hundredths = [done for stage, done, _ in told if stage == "comparing"]
    assert hundredths == sorted(hundredths)
    assert {done for done in hundredths if 10 < done < 70}


def test_a_row_numbered_behind_a_bad_one_has_its_own_line(tmp_path: Path) -> None:
    with compare(tmp_path, "id,x\n1\n2,b\n3,c\n", "id,x\n2,b\n3,d\n") as found:
        assert found.rows.filter(polars.col("status") == "differs").row(0)[2:] == (2, 2)
    with compare(
        tmp_path, "id,x\n1\n2,b\n3,c\n", "id,x\n2,b\n3,x\n", types={"x": "integer"}
    ) as found:
        lines = found.unreadable.filter(polars.col("column") == "x").select("side", "line").rows()
        assert lines == [("local", 3), ("local", 4), ("cloud", 2), ("cloud", 3)]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(table(["1,a", "id,x", "2,b"]), id="a header that stands again"),
        pytest.param(table(["1,a", '2,"b']), id="a quote that never closes"),
        pytest.param(table(["1,a", '2,"b"c']), id="text behind a quote"),
    ],
)
def test_a_file_that_only_reading_shows_to_be_otherwise_is_read_row_by_row(
    tmp_path: Path, copies: list[str], text: str
) -> None:
    with compare(tmp_path, text, table(["1,a", "2,b"])) as found:
        with ops.read_export(tmp_path / "local.csv") as export:
            bad = export.ledger.unreadable.height
            assert (found.rows_local, found.unreadable.height) == (export.ledger.rows_in, bad)
        assert found.statuses["match"] == 2 - bad
    assert "local_rows" in copies


def test_the_same_header_in_both_files_is_no_row_of_either(tmp_path: Path) -> None:
    text = table(["1,a", "id,x", "2,b"])
    with compare(tmp_path, text, text) as found:
        assert (found.rows_local, found.rows_cloud, found.statuses["match"]) == (2, 2, 2)


def test_a_file_that_is_written_to_while_it_is_compared_is_no_proof(tmp_path: Path) -> None:
    def write(stage: str, done: int, of: int) -> None:
        if stage == "comparing" and done == of:
            with (tmp_path / "cloud.csv").open("a", encoding="utf-8") as file:
                file.write("3,c\n")

    text = table(["1,a", "2,b"])
    with pytest.raises(IncompleteInput, match="was changed while it was read"):
        compare(tmp_path, text, text, progress=write)


@pytest.mark.parametrize("at", range(4))
def test_null_and_empty_and_where_a_cell_stands_are_told_apart(tmp_path: Path, at: int) -> None:
    """What a hash of a row must not make equal."""
    pairs = [(',""', '"",'), (",a", "a,"), ('"",""', ","), ("ab,c", "a,bc")]
    one, other = pairs[at]
    with compare(tmp_path, f"id,x,y\n1,{one}\n", f"id,x,y\n1,{other}\n") as found:
        assert found.statuses["differs"] == 1


@pytest.mark.parametrize("change", ["cut", "gone"])
@pytest.mark.parametrize(
    "text", [table(["1,a", "2,b"]), table(["1,a", "id,x", "2,b"])], ids=["lying", "copied"]
)
def test_a_file_that_is_cut_or_goes_while_it_is_read_gives_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, change: str
) -> None:
    find, times = dialects.find, []

    def found(name: str, path: Path, pinned: Any) -> Any:
        told = find(name, path, pinned)
        times.append(name)
        if len(times) == (4 if "id,x\n2" in text else 2):
            path.unlink() if change == "gone" else path.write_text("id,x\n1,a\n")
        return told

    monkeypatch.setattr(dialects, "find", found)
    with pytest.raises(IncompleteInput, match="was changed while it was read"):
        compare(tmp_path, text, text)


def test_keys_are_set_aside_before_they_take_the_memory_of_what_reads_a_file(
    tmp_path: Path,
) -> None:
    text = table(["1,a"])
    with compare(tmp_path, text, text, memory="900MB") as found:
        asked = "select parse_formatted_bytes(current_setting('operator_memory_limit'))"
        ((limit,),) = found.room.all(asked)
        assert 250e6 < limit < 350e6
    frame = polars.DataFrame({"id": ["1"]})
    with reconcile(frame, frame, key="id", memory="900MB") as found:
        assert found.room.all(asked) == [(None,)], "nothing is read beside"
