"""``tallybook reconcile``: exit codes, one JSON object, files that keep null apart from ''."""

from __future__ import annotations

import json
from pathlib import Path

import polars
import pytest
from ops_logs import Log

from tallybook.cli.main import main
from tallybook.ops.reconciling import page, reconcile

SUMMARY = ["rows_local", "rows_cloud", "statuses", "changed_cells", "changed_cells_by_column",
           "columns_only_local", "columns_only_cloud", "warnings"]  # fmt: skip


@pytest.fixture
def pair(tmp_path: Path) -> list[str]:
    (tmp_path / "local.csv").write_text("id,n,t\n1,1.0,a\n2,2,\n")
    (tmp_path / "cloud.csv").write_text('id,n,t\n1,1,a\n2,2,""\n')
    return [str(tmp_path / "cloud.csv"), "--local", str(tmp_path / "local.csv"), "--key", "id"]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["reconcile", *arguments])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_differences_are_exit_1_and_equal_sides_0(
    pair: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, shown, _ = run(capsys, *pair, "--json", "--type", "n=decimal")
    found = json.loads(shown)
    assert code == 1 and list(found) == SUMMARY
    assert found["statuses"]["match"] == 1 and found["changed_cells_by_column"] == {"t": 1}
    same = [pair[2], *pair[1:]]
    assert run(capsys, *same)[0] == 0


def test_a_row_that_cannot_be_read_is_exit_4(
    pair: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cloud.csv").write_text("id,n,t\n1,1,a\n2,2\n")
    code, shown, _ = run(capsys, *pair)
    assert code == 4 and "unreadable cloud" in shown


@pytest.mark.parametrize("place", ["local.csv", "local.csv/below"])
def test_an_out_that_can_be_no_folder_is_refused_before_anything_is_read(
    pair: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    (tmp_path / "cloud.csv").unlink()
    code, shown, said = run(capsys, *pair, "--out", str(tmp_path / place))
    assert (code, shown) == (2, "") and "local.csv is a file; name a folder" in said


def test_an_empty_cache_is_said_and_is_incomplete_where_the_log_is(
    pair: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = Log(tmp_path / "book")
    asked = [pair[0], "--book", str(tmp_path / "book"), "--key", "id"]
    code, _, said = run(capsys, *asked)
    assert code == 2 and "is empty: there is nothing to compare" in said
    log.seq += 1
    log.enqueued("j", 1)
    code, _, said = run(capsys, *asked)
    assert code == 4 and "has no events 2 to 2" in said


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("x.parquet", b"junk and more", "is a damaged Parquet file"),
        ("x.parquet", b"PAR1 and no end", "is no readable Parquet file"),
        ("x.xlsx", b"junk", "is a damaged workbook"),
        ("x.xls", b"\xd0\xcf\x11\xe0\x00", "is a workbook of the old kind"),
        ("x.csv", b"SQLite format 3\x00", "is an SQLite database"),
    ],
)
def test_a_file_of_another_kind_is_named_as_what_it_is(
    pair: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    data: bytes,
    words: str,
) -> None:
    (tmp_path / name).write_bytes(data)
    code, _, said = run(capsys, str(tmp_path / name), *pair[1:])
    assert code == 2 and words in said and said.count("\n") == 1


def test_bad_input_is_one_line_and_exit_2(
    pair: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments, word in (
        ([*pair[:3], "--key", "ID"], "nearest is 'id'"),
        ([*pair, "--type", "n"], "COLUMN=TYPE"),
        ([*pair, "--type", "n=money"], "choose one of"),
        (["nowhere.csv", *pair[1:]], "no such file"),
        ([pair[0], "--key", "id", "--book", "nowhere"], "no book at"),
    ):
        code, shown, said = run(capsys, *arguments)
        assert (code, shown) == (2, "") and word in said and said.count("\n") == 1


def test_the_cache_of_a_book_is_compared_and_a_hole_in_its_log_is_exit_4(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    book, export = tmp_path / "book", tmp_path / "cloud.ndjson"
    log = Log(book)
    log.put("k1", {"id": "007", "lat": 1e-05}, 1)
    export.write_text('{"id":"007","lat":1e-05}\n')
    given = [str(export), "--book", str(book), "--key", "id", "--json"]
    assert run(capsys, *given)[0] == 0
    log.seq += 1
    log.put("k2", {"id": "008"}, 2)
    code, shown, _ = run(capsys, *given)
    assert code == 4 and "has no events 3 to 3" in json.loads(shown)["warnings"][0]


def test_out_keeps_null_apart_from_empty_text(
    pair: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [*pair, "--type", "n=decimal", "--out", str(tmp_path / "out")]
    for kind in ("ndjson", "csv", "parquet"):
        run(capsys, *asked, "--format", kind)
    lines = (tmp_path / "out" / "differences.ndjson").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [
        {"key": "2", "column": "t", "local": None, "cloud": ""}
    ]
    assert (tmp_path / "out" / "differences.csv").read_text() == (
        'key,column,local,cloud\n2,t,,""\n'
    )
    found = polars.read_parquet(tmp_path / "out" / "differences.parquet")
    assert found.rows() == [("2", "t", None, "")]
    summary = json.loads((tmp_path / "out" / "reconciliation.json").read_text())
    assert list(summary) == SUMMARY


def test_what_out_writes_is_for_its_owner_alone_and_leaves_nothing_else(
    pair: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, *pair, "--out", str(tmp_path / "out"))
    files = sorted((tmp_path / "out").iterdir())
    names = "differences.csv reconciliation.json report.html rows.csv unreadable.csv"
    assert [file.name for file in files] == names.split()
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


def test_a_csv_of_differences_holds_no_formula(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "local.csv").write_text('id,x\n=1+1,a\n2,-5\n3,"=HYPERLINK(1)"\n4,+1e3\n')
    (tmp_path / "cloud.csv").write_text("id,x\n=1+1,@b\n2,-6\n3,\uff1dx\n4,-x\n")
    run(capsys, str(tmp_path / "cloud.csv"), "--local", str(tmp_path / "local.csv"), "--key", "id",
        "--out", str(tmp_path / "out"))  # fmt: skip
    written = polars.read_csv(tmp_path / "out" / "differences.csv", infer_schema=False)
    assert written.select("key", "local", "cloud").rows() == [
        ("2", "-5", "-6"), ("3", "'=HYPERLINK(1)", "'\uff1dx"), ("4", "+1e3", "'-x"),
        ("'=1+1", "a", "'@b"),
    ]  # fmt: skip


def test_the_rows_of_each_status_are_named_and_cells_that_look_alike_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "local.csv").write_text("id,x\n1,a\n2,b\n5,c\n5,c\n,d\n")
    (tmp_path / "cloud.csv").write_text("id,x\n1,a \n3,b\n")
    given = [str(tmp_path / "cloud.csv"), "--local", str(tmp_path / "local.csv"), "--key", "id"]
    code, shown, _ = run(capsys, *given)
    assert code == 1 and "'a'    'a '" in shown
    lines = [line.split() for line in shown.splitlines()]
    for told in (["only", "local", "2", "2"], ["only", "cloud", "3", "2"],
                 ["duplicate", "local", "5", "3"], ["null", "key", "local", "-", "5"]):  # fmt: skip
        assert told in lines


def test_no_key_in_common_is_said_first_and_no_row_is_called_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "local.csv").write_text("id,x\n007,a\n")
    (tmp_path / "cloud.csv").write_text("id,x\n7,a\n")
    given = [str(tmp_path / "cloud.csv"), "--local", str(tmp_path / "local.csv"), "--key", "id"]
    code, shown, _ = run(capsys, *given)
    assert code == 1 and shown.startswith("no key is on both sides: is the key column the right")
    assert "with type integer for 'id', keys would be on both sides" in shown


def test_an_empty_side_is_said_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "local.csv").write_text("id,x\n")
    (tmp_path / "cloud.csv").write_text("id,x\n7,a\n")
    given = [str(tmp_path / "cloud.csv"), "--local", str(tmp_path / "local.csv"), "--key", "id"]
    code, shown, _ = run(capsys, *given)
    assert code == 1 and shown.startswith("the local side (") and "has no row" in shown


def test_every_rule_may_be_given_as_an_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "local.csv").write_text(
        "id,p,q,t,u,a,s,n,i,f\n1,1.00,100,2026-07-01T10:00:00,2026-07-01T10:00:00.1Z,A, x  y,-,1,"
        "caf\u00e9\n"
    )
    (tmp_path / "cloud.csv").write_text(
        "id,PRICE,q,t,u,a,s,n,i,f\n"
        '1,1.01,101,2026-07-01T08:00:00Z,2026-07-01T10:00:00.2Z,a,x y,"",2,cafe\u0301\n'
    )
    words = (
        "--rename PRICE=p --type p=decimal --tolerance p=0.01 --type q=integer --relative q=0.01 "
        "--type t=timestamp --zone t=Europe/Berlin --type u=timestamp --precision u=s "
        "--ignore-case a --space s=collapse --null n= --null n=- --ignore i --normal-form f=NFC"
    )
    rules = words.split()
    given = [str(tmp_path / "cloud.csv"), "--local", str(tmp_path / "local.csv"), "--key", "id"]
    assert run(capsys, *given)[0] == 1
    code, shown, said = run(capsys, *given, *rules)
    assert code == 0, shown + said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--tolerance", "n=0.1"], "tolerance does not go with the type text"),
        (["--type", "n=decimal", "--type", "n=integer"], "'n' is given twice"),
        (["--space", "n=much"], "'much' is unknown; choose one of trim, collapse"),
        (["--ignore", "m"], "neither side has it; it has id, n, t"),
        (["--null", "n"], "--null 'n' is not like COLUMN=VALUE"),
        (["--memory", "lots"], "memory 'lots'"),
        (["--zone", "n=Mars", "--type", "n=timestamp"], "is no time zone"),
    ],
)
def test_a_rule_that_cannot_be_is_one_line_and_exit_2(
    pair: list[str], capsys: pytest.CaptureFixture[str], options: list[str], words: str
) -> None:
    code, shown, said = run(capsys, *pair, *options)
    assert (code, shown) == (2, "") and words in said and said.count("\n") == 1


def test_results_take_the_place_of_older_ones_together_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = polars.DataFrame({"id": ["1", "2"], "x": ["a", "b"]})
    with reconcile(left, left, key="id") as found:
        found.write(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert sorted(before) == ["differences.csv", "reconciliation.json", "report.html", "rows.csv",
                              "unreadable.csv"]  # fmt: skip

    def full(*_: object, **__: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(page, "html", full)
    with reconcile(left, left.head(1), key="id") as found, pytest.raises(OSError, match="space"):
        found.write(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
