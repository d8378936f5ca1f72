"""What went wrong elsewhere with files like these (F40 to F54), and comes out right here."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path

import polars
import pytest
from export_steps import cells, dynamodb, reading, unreadable, warnings, write

from tallybook import ops
from tallybook.errors import IncompleteInput
from tallybook.ops import reconcile
from tallybook.ops.exports import choosing
from tallybook.ops.exports.profile import Profile


def test_ids_keep_their_zeros_and_all_their_digits(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "id,n\n007,1\n0870,\n12345678901234567890,3\n")
    assert cells(path)[1] == [["007", "1"], ["0870", None], ["12345678901234567890", "3"]]


def test_an_integer_column_with_an_empty_cell_stays_exact(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "id,n\n1,9007199254740993\n2,\n")
    rows = cells(path, columns={"n": {"type": "integer"}})[1]
    assert rows == [["1", 9007199254740993], ["2", None]]


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "\ufeffid,n\n1,2\n")
    assert cells(path)[0] == ["id", "n"]


def test_words_mean_no_value_only_where_a_profile_says_so(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "id,x\n1,NA\n2,null\n3,None\n")
    assert [row[1] for row in cells(path)[1]] == ["NA", "null", "None"]
    told = cells(path, columns={"x": {"null": ["NA", "None"]}})[1]
    assert [row[1] for row in told] == [None, "null", None]


def test_a_date_that_means_two_days_is_refused_unless_its_format_is_told(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "id,d\n1,03/04/2024\n")
    ((line, column, reason, text),) = unreadable(path, columns={"d": {"type": "date"}})
    assert (line, column, text) == (2, "d", "03/04/2024") and "means two days" in reason
    told = cells(path, columns={"d": {"type": "date", "format": "%d/%m/%Y"}})[1]
    assert str(told[0][1]) == "2024-04-03"


def test_a_decimal_comma_is_read_by_its_profile_and_no_other_way(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "id;n\n1;1,50\n2;100.000,00\n3;1.5\n4;12.34,5\n")
    rule = {"type": "decimal(38,2)", "decimal": ",", "thousands": "."}
    with reading(path, columns={"n": rule}) as export:
        assert [row[1] for row in export.relation().fetchall()] == [Decimal("1.5"), 100_000]
        apart = export.ledger.unreadable.select("line", "text").rows()
    assert apart == [(4, "1.5"), (5, "12.34,5")]


@pytest.mark.parametrize("text", ["id,x,\n1,a,\n2,b,\n", "id,x\n1,a,\n2,b,\n3,c,,,\n"])
def test_trailing_delimiters_make_no_column(tmp_path: Path, text: str) -> None:
    path = write(tmp_path / "a.csv", text)
    columns, rows = cells(path)
    assert columns == ["id", "x"] and rows[:2] == [["1", "a"], ["2", "b"]]
    assert "delimiter" in warnings(path)


def test_rows_that_end_as_their_header_does_are_said_once(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "id,x,\n" + "1,a,\n" * 1000)
    assert warnings(path).count("delimiter") == 1


@pytest.mark.parametrize("more", ["", "e,f,\n"], ids=["by DuckDB", "row by row"])
def test_a_quoted_empty_cell_behind_the_last_column_is_a_cell_too_many(
    tmp_path: Path, more: str
) -> None:
    path = write(tmp_path / "a.csv", f'id,x\n1,a\n2,b,""\n{more}')
    ((line, _, reason, _),) = unreadable(path)
    assert (line, reason) == (3, "3 cells where the header has 2")


def numbers(column: str) -> Profile:
    """A profile in which one column is integer."""
    return choosing.parse("p", {"columns": {column: {"type": "integer"}}}, "p")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_bad_row_has_its_own_line_byte_and_text_whatever_ends_lines(
    tmp_path: Path, end: str
) -> None:
    lines = ["id,x", "1,a", "z", "2,b", "", "y", "3,c", "", "", "x,1,2", "4,no"]
    path = write(tmp_path / "a.csv", end.join(lines) + end)
    with ops.read_export(path, profile=numbers("x")) as export:
        told = export.ledger.unreadable.select("line", "offset", "text").rows()
    starts = [len(end.join([*lines[:at], ""])) for at in range(len(lines))]
    bad = [(at + 1, starts[at], lines[at]) for at in (2, 5, 9)]
    cells_ = [(at + 1, starts[at], lines[at][2:]) for at in (1, 3, 6, 10)]
    assert sorted(told) == sorted([*bad, *cells_])


def test_a_quoted_cell_may_end_in_a_newline(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 'id,x\n1,"a\n"\n2,"\r\n"\n')
    assert cells(path)[1] == [["1", "a\n"], ["2", "\r\n"]]


@pytest.mark.parametrize(
    "rule", [{}, {"ignore_case": True}, {"type": "decimal"}, {"space": "trim"}], ids=str
)
def test_ids_that_a_spreadsheet_shortened_stop_a_comparison_by_them(
    tmp_path: Path, rule: dict[str, object]
) -> None:
    good = write(tmp_path / "a.csv", "id,x\n9912140633506421,1\n")
    bad = write(tmp_path / "b.csv", "id,x\n1,0\n9.91214E+15,1\n")
    frame = polars.read_csv(bad, infer_schema=False)
    assert "damaged ids? 1 cells" in warnings(bad)
    for sides in ((good, bad), (bad, bad), (frame, good)):
        with pytest.raises(IncompleteInput, match=r"damaged ids: 1 cells .* like 9\.91214E\+15"):
            reconcile(*sides, key="id", columns={"id": rule})
    assert reconcile(bad, bad, key="x").statuses["match"] == 2, "they are no key there"


def test_a_part_of_only_a_header_changes_nothing(tmp_path: Path) -> None:
    write(tmp_path / "e" / "part-0.csv", "id,n\n")
    write(tmp_path / "e" / "part-1.csv", "id,n\n1,2.50\n")
    rows = cells(tmp_path / "e", columns={"n": {"type": "decimal(38,2)"}})[1]
    assert rows == [["1", Decimal("2.50")]]


def test_every_member_of_a_gzip_file_is_read(tmp_path: Path) -> None:
    parts = [b"id,x\n1,a\n2", b",b\n", b"3,c\n"]
    path = write(tmp_path / "a.csv.gz", b"".join(map(gzip.compress, parts)))
    assert [row[0] for row in cells(path)[1]] == ["1", "2", "3"]


def test_a_json_text_of_digits_stays_text(tmp_path: Path) -> None:
    path = write(tmp_path / "a.ndjson", '{"id":"007","n":"30"}\n{"id":"7","n":30}\n')
    assert cells(path)[1] == [["007", "30"], ["7", "30"]]


def test_the_first_bytes_decide_and_not_the_name(tmp_path: Path) -> None:
    packed = gzip.compress(b"id,x\n1,a\n")
    assert cells(write(tmp_path / "a.csv", packed)) == (["id", "x"], [["1", "a"]])
    ndjson = write(tmp_path / "b.csv", '{"id":1}\n{"id":2}\n')
    assert cells(ndjson) == (["id"], [["1"], ["2"]])


def test_dynamodb_items_are_unwrapped_by_their_tags_with_every_digit(tmp_path: Path) -> None:
    number = "1234567890123456789012345678901234567.8"
    item = {
        "id": {"S": "007"}, "n": {"N": number}, "b": {"BOOL": False}, "z": {"NULL": True},
        "s": {"NS": ["3", "2"]}, "m": {"M": {"k": {"L": [{"N": "1.50"}, {"S": "a"}]}}},
    }  # fmt: skip
    columns, rows = cells(dynamodb(tmp_path, [[item]]))
    assert columns == ["id", "n", "b", "z", "s", "m"]
    assert rows == [["007", number, "false", None, "[2,3]", '{"k":[1.50,"a"]}']]
    told = cells(tmp_path, columns={"n": {"type": "decimal(38,1)"}})[1]
    assert told[0][1] == Decimal(number)


def test_a_cell_that_does_not_fit_is_set_apart_with_file_line_byte_and_text(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 'id,t,n\n1,"a\n\nb",1\n2,c,1.5\n3,d, 7 \n4,e,8\n')
    with reading(path, columns={"n": {"type": "integer"}}) as export:
        ledger = export.ledger
        assert [row[0] for row in export.relation().fetchall()] == ["1", "4"]
    assert ledger.rows_in == 4 and ledger.rows == 2
    told = ledger.unreadable.drop("reason").rows()
    begins = path.read_bytes().index
    assert told == [
        ("a.csv", 5, begins(b"2,c"), "n", "1.5"),
        ("a.csv", 6, begins(b"3,d"), "n", " 7 "),
    ]


@pytest.mark.parametrize(
    ("kind", "word", "value"),
    [
        ("integer", "5.0", "5"),
        ("integer", "5.5", None),
        ("integer", "99999999999999999999", None),
        ("decimal(38,2)", "1e2", "100.00"),
        ("decimal(38,2)", "1.005", None),
        ("decimal(4,2)", "123.45", None),
        ("timestamp", "2024-05-06T10:00:00+02:00", "2024-05-06 08:00:00+00"),
        ("timestamp", "2024-05-06T10:00:00.1234567Z", None),
        ("date", "2024-02-30", None),
        ("date", "2024-05-06T10:00:00Z", None),
        ("boolean", "TRUE", "true"),
        ("boolean", "yes", None),
    ],
)
def test_no_value_is_coerced_unseen(
    tmp_path: Path, kind: str, word: str, value: str | None
) -> None:
    path = write(tmp_path / "a.ndjson", json.dumps({"x": word}) + "\n")
    with reading(path, columns={"x": {"type": kind}}) as export:
        found = export.sql("select cast(x as varchar) from rows").fetchall()
        assert found == ([(value,)] if value else [])
        assert export.ledger.unreadable["text"].to_list() == ([] if value else [word])


def test_times_of_a_zone_and_seconds_since_1970_become_instants(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "a,b\n2024-07-01 12:00:00,1700000000123\n,\n")
    rules = {"a": {"type": "timestamp", "zone": "Europe/Berlin"},
             "b": {"type": "timestamp", "format": "epoch_ms"}}  # fmt: skip
    with reading(path, columns=rules) as export:
        found = export.sql("select cast(a as varchar), cast(b as varchar) from rows").fetchall()
    assert found == [("2024-07-01 10:00:00+00", "2023-11-14 22:13:20.123+00"), (None, None)]


@pytest.mark.parametrize("word", ["9223372036854775807", "-9223372036854775", "9" * 32])
def test_seconds_beyond_all_time_are_a_bad_cell(tmp_path: Path, word: str) -> None:
    path = write(tmp_path / "a.csv", f"id,t\n1,0\n2,{word}\n")
    rule = {"type": "timestamp", "format": "epoch_s"}
    assert [row[3] for row in unreadable(path, columns={"t": rule})] == [word]


def test_an_hour_that_a_zone_leaves_out_is_no_time(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "id,t\n1,31.03.2024 02:30\n2,31.03.2024 03:30\n")
    rule = {"type": "timestamp", "format": "%d.%m.%Y %H:%M", "zone": "Europe/Berlin"}
    assert [row[3] for row in unreadable(path, columns={"t": rule})] == ["31.03.2024 02:30"]
