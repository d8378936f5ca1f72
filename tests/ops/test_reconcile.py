"""Two tables compared: every trap, every status, both sums."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import polars
import pytest

from tallybook.errors import BadInput, IncompleteInput
from tallybook.ops.reconciling import Reconciliation, reconcile


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def compare(tmp_path: Path, local: str, cloud: str, **options: Any) -> Reconciliation:
    left, right = write(tmp_path / "local.csv", local), write(tmp_path / "cloud.csv", cloud)
    return reconcile(left, right, **{"key": "id", **options})


def one_cell(tmp_path: Path, local: str, cloud: str, kind: str = "text") -> str:
    """The status of one row whose only cell is given as CSV on each side."""
    found = compare(tmp_path, f"id,x\n1,{local}\n", f"id,x\n1,{cloud}\n", types={"x": kind})
    assert sums_hold(found)
    return next(status for status, count in found.statuses.items() if count)


def sums_hold(found: Reconciliation) -> bool:
    shared = found.statuses["match"] + found.statuses["differs"]
    return all(
        total
        == shared
        + found.statuses[f"only_{side}"]
        + sum(count for status, count in found.statuses.items() if status.endswith(f"_{side}"))
        - found.statuses[f"only_{side}"]
        for side, total in (("local", found.rows_local), ("cloud", found.rows_cloud))
    )


@pytest.mark.parametrize(
    ("kind", "local", "cloud"),
    [
        ("decimal", "0.12", "0.120"),
        ("decimal", "7.50", "7.5"),
        ("decimal", "-0", "0"),
        ("decimal", "+5", "5"),
        ("decimal", "1", "1e0"),
        ("decimal", "0.00001", "1e-05"),
        (
            "decimal",
            "12345678901234567890123456789012345678",
            "12345678901234567890123456789012345678.0",
        ),
        ("integer", "5.0", "5"),
        ("integer", "007", "7"),
        ("timestamp", "2024-05-06T10:00:00+02:00", "2024-05-06T08:00:00Z"),
        ("timestamp", "2024-05-06T08:00:00Z", "2024-05-06 08:00:00Z"),
        ("timestamp", "2024-05-06T08:00:00.120Z", "2024-05-06T08:00:00.12Z"),
        ("timestamp", "2024-05-06T00:30:00+05:30", "2024-05-05T19:00:00Z"),
        ("text", '"a\nb"', '"a\nb"'),
        ("text", '"a,b"', '"a,b"'),
        ("text", "", ""),
        ("text", '""', '""'),
    ],
)
def test_equal_values_match_however_they_are_written(
    tmp_path: Path, kind: str, local: str, cloud: str
) -> None:
    assert one_cell(tmp_path, local, cloud, kind) == "match"


@pytest.mark.parametrize(
    ("kind", "local", "cloud"),
    [
        ("decimal", "10000000000000.0001", "10000000000000.0002"),
        ("decimal", "1" * 38, "1" * 37 + "2"),
        ("integer", "9007199254740992", "9007199254740993"),
        ("timestamp", "2024-05-06T08:00:00.120Z", "2024-05-06T08:00:00.121Z"),
        ("timestamp", "2024-05-06T08:00:00.000000001Z", "2024-05-06T08:00:00.000000002Z"),
        ("text", "007", "7"),
        ("text", "1.0", "1"),
        ("text", "a ", "a"),
        ("text", "A", "a"),
        ("text", "caf\u00e9", "cafe\u0301"),
        ("text", "NA", ""),
        ("text", "null", ""),
        ("text", "", '""'),
        ("text", "NULL", "null"),
    ],
)
def test_different_values_differ_however_close_they_are(
    tmp_path: Path, kind: str, local: str, cloud: str
) -> None:
    assert one_cell(tmp_path, local, cloud, kind) == "differs"


@pytest.mark.parametrize(
    ("kind", "cell"),
    [("integer", "5.4"), ("integer", " 7 "), ("decimal", "abc"), ("decimal", '""'),
     ("decimal", "N/A"), ("timestamp", "2024-02-30T00:00:00Z"), ("timestamp", "6.5.2024")],
)  # fmt: skip
def test_a_cell_without_a_value_of_its_type_makes_its_row_alone_unreadable(
    tmp_path: Path, kind: str, cell: str
) -> None:
    good = {"integer": "5", "decimal": "5.5", "timestamp": "2024-05-06T08:00:00Z"}[kind]
    rows = [f"{number},{good}" for number in range(1, 101)]
    spoiled = [*rows[:41], f"42,{cell}", *rows[42:]]
    found = compare(
        tmp_path, "id,x\n" + "\n".join(spoiled), "id,x\n" + "\n".join(rows), types={"x": kind}
    )
    assert found.statuses["match"] == 99
    assert found.statuses["unreadable_local"] == 1 and sums_hold(found)
    assert found.statuses["only_cloud"] == 0, "its partner is there: it is not missing"
    assert found.unreadable.select("side", "line", "column").row(0) == ("local", 43, "x")
    assert not found.complete


def test_a_bad_cell_after_quoted_newlines_is_found_at_its_line(tmp_path: Path) -> None:
    found = compare(tmp_path, 'id,t,x\n1,"a\n\nb",1\n2,c,oops\n', "id,t,x\n1,b,1\n2,c,2\n",
                    types={"x": "integer"})  # fmt: skip
    assert found.unreadable.select("line", "text").row(0) == (5, "oops")


def test_untypable_cells_that_look_alike_are_not_called_equal(tmp_path: Path) -> None:
    assert one_cell(tmp_path, "abc", "xyz", "integer") == "unreadable_local"
    assert one_cell(tmp_path, "", "N/A", "decimal") == "unreadable_local"


def test_duplicates_are_listed_on_their_own_side_and_never_paired(tmp_path: Path) -> None:
    found = compare(tmp_path, "id,x\n1,a\n1,a\n2,b\n3,c\n", "id,x\n1,a\n2,b\n2,z\n2,b\n4,d\n")
    assert found.statuses["duplicate_local"] == 3 and found.keys("duplicate_local") == ["1", "2"]
    assert found.statuses["duplicate_cloud"] == 4 and found.keys("duplicate_cloud") == ["1", "2"]
    assert found.keys("only_local") == ["3"] and found.keys("only_cloud") == ["4"]
    assert sums_hold(found)


def test_null_keys_are_counted_and_match_nothing(tmp_path: Path) -> None:
    found = compare(tmp_path, "id,x\n,a\n,b\n1,c\n", "id,x\n,a\n1,c\n")
    assert found.statuses["null_key_local"] == 2 and found.statuses["null_key_cloud"] == 1
    assert found.statuses["match"] == 1 and sums_hold(found)


def test_a_ragged_row_is_unreadable_with_its_line_and_takes_nothing_with_it(tmp_path: Path) -> None:
    found = compare(tmp_path, "id,x\n1,a\n2\n3,c,d\n4,e\n", "id,x\n1,a\n4,e\n")
    assert found.statuses["match"] == 2 and found.statuses["unreadable_local"] == 2
    assert found.unreadable["line"].to_list() == [3, 4] and sums_hold(found)


def test_keys_of_several_columns_are_compared_as_tuples(tmp_path: Path) -> None:
    found = compare(tmp_path, "a,b,x\n1,23,p\n12,3,q\n", "a,b,x\n1,23,p\n12,3,r\n", key=["a", "b"])
    assert found.keys("differs") == ['["12","3"]'] and found.statuses["match"] == 1


def test_a_typed_key_pairs_equal_values(tmp_path: Path) -> None:
    found = compare(tmp_path, "id,x\n007,a\n", "id,x\n7.0,a\n", types={"id": "integer"})
    assert found.statuses["match"] == 1


def test_differences_name_key_column_and_both_texts(tmp_path: Path) -> None:
    found = compare(tmp_path, "id,x,y\n1,a,\n2,b,c\n", "id,y,x,z\n1,q,a,9\n2,c,B,9\n")
    assert found.differences.rows() == [("1", "y", None, "q"), ("2", "x", "b", "B")]
    assert found.changed_cells_by_column == {"y": 1, "x": 1} and found.changed_cells == 2
    assert found.columns_only_cloud == ("z",) and found.columns_only_local == ()


@pytest.mark.parametrize(
    "suffix", ["csv", "tsv", "ndjson", "json", "parquet", "csv.gz", "ndjson.gz"]
)
def test_every_format_reads_to_the_same_cells(tmp_path: Path, suffix: str) -> None:
    rows = [{"id": "007", "n": "1.50", "t": "a,\"b\"\nc", "e": "", "z": None},
            {"id": "1e5", "n": "10000000000000.01", "t": "null", "e": "NA", "z": None}]  # fmt: skip
    frame = polars.DataFrame(rows, schema=dict.fromkeys(rows[0], polars.String))
    found = reconcile(frame, written(tmp_path / f"export.{suffix}", rows), key="id")
    assert found.statuses["match"] == 2, found.differences


def written(path: Path, rows: list[dict[str, str | None]]) -> Path:
    """The rows in the format of the file's name."""
    kind = path.name.removeprefix("export.").removesuffix(".gz")
    if kind == "parquet":
        polars.DataFrame(rows, schema=dict.fromkeys(rows[0], polars.String)).write_parquet(path)
        return path
    if kind == "json":
        content = json.dumps(rows)
    elif kind == "ndjson":
        content = "".join(json.dumps(row) + "\n" for row in rows)
    else:
        content = delimited(rows, "\t" if kind == "tsv" else ",")
    data = content.encode()
    path.write_bytes(
        gzip.compress(data[:40]) + gzip.compress(data[40:]) if path.suffix == ".gz" else data
    )
    return path


def delimited(rows: list[dict[str, str | None]], mark: str) -> str:
    def cell(value: str | None) -> str:
        return "" if value is None else '"' + value.replace('"', '""') + '"'

    lines = [mark.join(rows[0])] + [mark.join(map(cell, row.values())) for row in rows]
    return "\ufeff" + "\r\n".join(lines) + "\r\n"


def test_numbers_in_json_keep_every_digit(tmp_path: Path) -> None:
    local = write(
        tmp_path / "local.ndjson", '{"id":1,"n":10000000000000.0001,"d":{"k":[1.50,null]}}\n'
    )
    cloud = write(tmp_path / "cloud.csv", 'id,n,d\n1,10000000000000.0001,"{""k"":[1.50,null]}"\n')
    assert reconcile(local, cloud, key="id").statuses["match"] == 1


def test_a_bad_json_line_is_unreadable_and_takes_nothing_with_it(tmp_path: Path) -> None:
    local = write(tmp_path / "local.ndjson", '{"id":1}\n{"id":2}{"id":3}\n123\n{"id":4}\n')
    cloud = write(tmp_path / "cloud.ndjson", '{"id":1}\n{"id":4}\n')
    found = reconcile(local, cloud, key="id")
    assert found.statuses["match"] == 2 and found.statuses["unreadable_local"] == 2
    assert found.unreadable["line"].to_list() == [2, 3] and sums_hold(found)


def test_a_bad_cell_of_an_ndjson_file_is_found_at_its_line(tmp_path: Path) -> None:
    local = write(tmp_path / "local.ndjson", '{"id":1,"n":1}\n\n{"id":2,"n":"x"}\n')
    cloud = write(tmp_path / "cloud.ndjson", '{"id":1,"n":1}\n{"id":2,"n":2}\n')
    found = reconcile(local, cloud, key="id", types={"n": "integer"})
    assert found.unreadable.select("line", "column", "text").row(0) == (3, "n", "x")


def test_a_missing_key_column_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="nearest is 'id'"):
        compare(tmp_path, "id,x\n1,a\n", "id,x\n1,a\n", key="ID")
    with pytest.raises(BadInput, match="nearest is 'price'"):
        compare(tmp_path, "id,price\n1,2\n", "id,price\n1,2\n", types={"prize": "decimal"})
    with pytest.raises(BadInput, match="type 'money' is unknown"):
        compare(tmp_path, "id,x\n1,2\n", "id,x\n1,2\n", types={"x": "money"})


def test_files_that_are_no_tables_are_refused_by_name(tmp_path: Path) -> None:
    good = write(tmp_path / "good.csv", "id,x\n1,a\n")
    spoiled = {
        "empty.csv": b"",
        "twice.csv": b"id,id\n1,2\n",
        "x.parquet": b"PAR1junk",
        "x.json": b"{not json",
    }
    for name, content in spoiled.items():
        bad = tmp_path / name
        bad.write_bytes(content)
        with pytest.raises(BadInput, match=name):
            reconcile(good, bad, key="id")
    with pytest.raises(BadInput, match="no such file"):
        reconcile(good, tmp_path / "nowhere.csv", key="id")
    cut = tmp_path / "cut.csv.gz"
    cut.write_bytes(gzip.compress(b"id,x\n1,a\n" * 1000)[:-9])
    with pytest.raises(IncompleteInput, match="cut archive"):
        reconcile(good, cut, key="id")
    cut = tmp_path / "cut.json"
    cut.write_bytes(b"[1, 2")
    with pytest.raises(IncompleteInput, match=r"cut\.json is cut"):
        reconcile(good, cut, key="id")


def test_no_key_in_common_is_said_as_such(tmp_path: Path) -> None:
    found = compare(tmp_path, "id,x\n1,a\n", "id,x\n2,a\n")
    assert any("no key is on both sides" in warning for warning in found.warnings)
    empty = compare(tmp_path, "id,x\n1,a\n", "id,x\n")
    assert any("no row that could be read" in warning for warning in empty.warnings)


def test_the_counts_are_a_table_of_the_rows_of_each_side_and_status() -> None:
    local = polars.DataFrame({"id": ["1", "2"], "n": ["1", "1"]})
    cloud = polars.DataFrame({"id": ["1"], "n": ["2"]})
    counted = reconcile(local, cloud, key="id").counted
    assert counted.rows() == [("rows local", 2), ("rows cloud", 1), ("differs", 1),
                              ("only local", 1)]  # fmt: skip
