"""Formats and native layouts: JSON of every kind, workbooks, Parquet, ORC, COPY and the rest."""

from __future__ import annotations

import json
import zipfile
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import openpyxl
import pyarrow
import pytest
from export_steps import cells, reading, unreadable, warnings, write
from pyarrow import orc, parquet

from tallybook import ops
from tallybook.errors import BadInput, IncompleteInput
from tallybook.ops.exports import choosing


@pytest.mark.parametrize(
    "text",
    [
        '[{"id":"1","n":1.50,"d":{"k":[1,null]}}, {"id":"2"}]',
        '{"id":"1","n":1.50,"d":{"k":[1,null]}}\n\n{"id":"2"}\n',
        '\ufeff[\n {"id":"1","n":1.50,\n "d":{"k":[1, null]}},\n {"id":"2"}\n]\n',
        '{"title":"t","rows":[{"id":"1","n":1.50,"d":{"k":[1,null]}},{"id":"2"}]}',
    ],
)
def test_json_of_any_shape_gives_its_objects_as_rows(tmp_path: Path, text: str) -> None:
    columns, rows = cells(write(tmp_path / "a.json", text))
    assert columns == ["id", "n", "d"]
    assert rows == [["1", "1.50", '{"k":[1,null]}'], ["2", None, None]]


@pytest.mark.parametrize(
    "text",
    ["[1 2", "[1,]", "{a: 1}", '{"a":1}{"b":2}', "[NaN]", "[1] 2", '["\t"]', "[01]", "nul",
     "[" * 200000],
)  # fmt: skip
def test_what_is_no_json_is_refused_with_its_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadInput, match=r"a\.json is no JSON: line 1: "):
        ops.read_export(write(tmp_path / "a.json", text))


@pytest.mark.parametrize(
    "text", ['[{"a":1}', '[{"a":1},', '[{"a":1},\n{"a":', '[{"a":"x', '{"t":1,"rows":[{"a":1}']
)
def test_json_that_ends_before_its_value_is_incomplete(tmp_path: Path, text: str) -> None:
    with pytest.raises(IncompleteInput, match=r"a\.json is cut: it ends "):
        ops.read_export(write(tmp_path / "a.json", text))


def test_what_is_no_json_is_told_with_one_line_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"is no JSON: line 3: Expecting value$"):
        ops.read_export(write(tmp_path / "a.json", '[{"a":1},\n{"b":2,\n"c":x}]'))


def test_a_json_array_larger_than_what_is_held_is_read_piece_by_piece(tmp_path: Path) -> None:
    rows = [{"id": str(n), "t": "x" * 1000} for n in range(3000)]
    path = write(tmp_path / "a.json", json.dumps(rows, indent=1))
    with reading(path, limits={"row": 4000}) as export:
        assert export.ledger.rows == 3000 and export.ledger.complete


def test_a_line_that_is_too_long_is_set_apart_and_not_held(tmp_path: Path) -> None:
    path = write(tmp_path / "a.ndjson", '{"id":1}\n{"id":"' + "x" * 3_000_000 + '"}\n{"id":3}\n')
    assert unreadable(path, limits={"row": "1MB"})[0][0] == 2


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("e.ndjson", '{"id":"1","n":1}\n{"id":"2","n":2,"n":3}\n{"id":"3","n":3}\n', 2),
        ("e.json", '[{"id":"1","n":1},\n{"id":"2","n":2,"n":3},\n{"id":"3","n":3}]', 2),
        ("e.json", '{"n":0,"n":0,"all":[{"id":"1"},{"id":"2","n":2,"n":3},{"id":"3"}]}', None),
    ],
    ids=["lines", "array", "list of an object"],
)
def test_an_object_that_has_one_name_twice_is_no_row(
    tmp_path: Path, name: str, text: str, line: int | None
) -> None:
    path = write(tmp_path / name, text)
    bad = (line, None, "a name stands twice: 'n'", '{"id":"2","n":2,"n":3}')
    assert unreadable(path) == [bad]
    with reading(path) as export:
        assert [row[0] for row in export.relation().fetchall()] == ["1", "3"]


@pytest.mark.parametrize(
    "held", ['{"x":1,"x":1}', '[0,{"x":1,"x":1}]', '{"y":{"x":1,"y":{},"x":1}}', '{"x":{},"x":[]}']
)
def test_a_name_that_stands_twice_inside_a_cell_is_told_too(tmp_path: Path, held: str) -> None:
    text = f'{{"id":"1","a":{held}}}\n{{"id":"2","a":{{"x":{{"x":1}}}}}}\n'
    bad = (1, None, "a name stands twice: 'x'", text.splitlines()[0])
    assert unreadable(write(tmp_path / "e.ndjson", text)) == [bad]


def test_an_object_that_has_its_list_of_rows_twice_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "e.json", '{"all":[{"a":1}],"all":[{"a":2}]}')
    with pytest.raises(BadInput, match="the list 'all' stands twice"), reading(path):
        pass


def test_half_a_letter_makes_its_row_alone_unreadable(tmp_path: Path) -> None:
    path = write(tmp_path / "a.ndjson", '{"id":"\\ud800"}\n{"id":"b"}\n')
    ((line, _, reason, _),) = unreadable(path)
    assert line == 1 and "half a letter" in reason


def test_a_workbook_keeps_digits_dates_and_lines(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for row in (["id", "n", "d", "at"], ["007", 9007199254740993, date(2024, 4, 3),
                datetime(2024, 4, 3, 10, 0)], [None] * 4, ["8", 0.1, None, None]):  # fmt: skip
        book.active.append(row)
    book.create_sheet("other").append(["x"])
    book.save(tmp_path / "a.xlsx")
    _replaced(tmp_path / "a.xlsx", b"9007199254740992", b"9007199254740993")
    columns, rows = cells(tmp_path / "a.xlsx")
    assert columns == ["id", "n", "d", "at"]
    assert rows == [["007", "9007199254740993", "2024-04-03", "2024-04-03 10:00:00"],
                    ["8", "0.1", None, None]]  # fmt: skip
    assert "the sheet 'Sheet' was read, not other" in warnings(tmp_path / "a.xlsx")
    assert cells(tmp_path / "a.xlsx", read={"sheet": "other"}) == (["x"], [])
    found = unreadable(tmp_path / "a.xlsx", columns={"n": {"type": "integer"}})
    assert [(line, text) for line, _, _, text in found] == [(4, "0.1")]
    with pytest.raises(BadInput, match="has no sheet 'nix'"):
        cells(tmp_path / "a.xlsx", read={"sheet": "nix"})


def test_a_workbook_loses_no_cell_to_a_title_or_a_narrow_header(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for row in (["Orders of 2024"], [], ["id", "n"], ["1", "a"], ["2", "b", "c"], ["3"]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    with reading(tmp_path / "a.xlsx") as export:
        assert export.relation().fetchall() == [("1", "a"), ("3", None)]
        assert export.ledger.unreadable.select("line", "reason", "text").rows() == [
            (5, "3 cells where the header has 2", "2,b,c")
        ]
    assert "the header is line 3" in warnings(tmp_path / "a.xlsx")
    book.active.delete_rows(5)
    book.save(tmp_path / "a.xlsx")
    columns, rows = cells(tmp_path / "a.xlsx", read={"header": 0, "columns": ["x", "y"]})
    assert columns == ["x", "y"] and rows[1:] == [["id", "n"], ["1", "a"], ["3", None]]
    assert cells(tmp_path / "a.xlsx", read={"header": 4})[0] == ["1", "a"]


def _replaced(path: Path, old: bytes, new: bytes) -> None:
    """Other bytes in the first sheet: what writes workbooks here rounds long numbers."""
    with zipfile.ZipFile(path) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    held["xl/worksheets/sheet1.xml"] = held["xl/worksheets/sheet1.xml"].replace(old, new)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in held.items():
            archive.writestr(name, content)


def test_a_password_protected_workbook_is_named_as_such(tmp_path: Path) -> None:
    ole = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600) + "EncryptedPackage".encode("utf-16-le")
    with pytest.raises(BadInput, match="is a password-protected workbook"):
        ops.read_export(write(tmp_path / "a.xlsx", ole))


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_columnar_files_keep_every_digit(tmp_path: Path, kind: str) -> None:
    table = pyarrow.table({
        "id": ["007", None], "n": pyarrow.array([Decimal("1.50"), None], pyarrow.decimal128(38, 2)),
        "i": [2**62, 1], "d": [date(2024, 4, 3), None], "b": [True, None],
    })  # fmt: skip
    path = tmp_path / f"a.{kind}"
    (parquet if kind == "parquet" else orc).write_table(table, path)
    assert cells(path)[1] == [["007", "1.50", str(2**62), "2024-04-03", "true"],
                              [None, None, "1", None, None]]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ('{"$oid":"507f1f77bcf86cd799439011"}', "507f1f77bcf86cd799439011"),
        ('{"$numberLong":"9007199254740993"}', "9007199254740993"),
        ('{"$numberDecimal":"1.50"}', "1.50"),
        ('{"$numberDouble":"NaN"}', "NaN"),
        ('{"$date":1409836258000}', "2014-09-04T13:10:58.000Z"),
        ('{"$date":{"$numberLong":"1409836258001"}}', "2014-09-04T13:10:58.001Z"),
        ('{"$date":"2014-09-04T13:10:58Z"}', "2014-09-04T13:10:58Z"),
        ('{"$binary":"aGk=","$type":"00"}', "aGk="),
        ('{"$binary":{"base64":"aGk=","subType":"00"}}', "aGk="),
        ('{"a":[{"$numberInt":"1"}]}', '{"a":[1]}'),
        ('{"$undefined":true}', None),
    ],
)
def test_mongodb_values_of_both_versions_are_unwrapped(
    tmp_path: Path, value: str, cell: str | None
) -> None:
    text = '{"_id":{"$oid":"507f1f77bcf86cd799439011"},"x":' + value + "}\n"
    with reading(write(tmp_path / "a.json", text)) as export:
        assert export.ledger.layout == "mongodb"
        assert export.relation().fetchall() == [("507f1f77bcf86cd799439011", cell)]


def test_bigquery_types_come_from_the_schema_beside_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", '{"n":"9007199254740993","d":"1.5"}\n{"n":"x"}\n{}\n')
    schema = [{"name": "n", "type": "INTEGER"}, {"name": "d", "type": "NUMERIC"},
              {"name": "z", "type": "STRING", "mode": "REPEATED"}]  # fmt: skip
    write(tmp_path / "t_schema.json", json.dumps(schema))
    with reading(path) as export:
        assert export.relation().fetchall() == [(9007199254740993, Decimal("1.5"), None),
                                                (None, None, None)]  # fmt: skip
        assert export.ledger.unreadable.select("line", "text").rows() == [(2, "x")]


def test_a_date_of_bigquery_needs_no_zero_before_its_month_or_day(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", '{"d":"2023-12-6"}\n{"d":"2023-12-06"}\n{"d":"2023-2-30"}\n')
    write(tmp_path / "t_schema.json", json.dumps([{"name": "d", "type": "DATE"}]))
    with reading(path) as export:
        assert export.relation().fetchall() == [(date(2023, 12, 6),)] * 2
        assert export.ledger.unreadable["line"].to_list() == [3]


def test_bulk_documents_are_rows_with_the_fields_of_their_action(tmp_path: Path) -> None:
    text = '{"index":{"_id":"1"}}\n{"n":5}\n{"index":{"_id":"2"}}\n{"n":6}\n{"index":{"_id":"3"}}\n'
    path = write(tmp_path / "a.ndjson", text)
    with reading(path) as export:
        assert export.relation().fetchall() == [("1", "5"), ("2", "6")]
        assert export.ledger.unreadable.select("line", "reason").rows() == [
            (5, "the file ends before the document of this action")
        ]


def test_an_action_without_its_fields_is_set_apart(tmp_path: Path) -> None:
    text = '{"index":{"_id":"1"}}\n{"n":5}\n{"index":"2"}\n{"index":{"_id":"3"}}\n{"n":7}\n'
    with reading(write(tmp_path / "a.ndjson", text)) as export:
        assert export.relation().fetchall() == [("1", "5"), ("3", "7")]
        assert export.ledger.unreadable.select("line", "reason").rows() == [
            (3, "the action index has no object of fields")
        ]


def test_an_orc_file_whose_text_is_none_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a.orc"
    orc.write_table(pyarrow.table({"id": ["needle"]}), path)
    path.write_bytes(path.read_bytes().replace(b"needle", b"nee\xde\xffe"))
    with pytest.raises(BadInput, match=r"a\.orc is no readable ORC file"), reading(path):
        pass


def test_copy_knows_null_from_empty_and_takes_escapes_apart(tmp_path: Path) -> None:
    path = write(tmp_path / "a.copy", "1\t\\N\t\n2\ta\\tb\\\\\t\\x41\\n\n3\ta\n")
    rule = {"columns": ["id", "x", "y"]}
    with reading(path, read=rule) as export:
        assert export.relation().fetchall() == [("1", None, ""), ("2", "a\tb\\", "A\n")]
        assert export.ledger.unreadable["line"].to_list() == [3]


def test_a_dump_of_one_table_is_read_and_a_cut_one_is_incomplete(tmp_path: Path) -> None:
    head = "-- PostgreSQL database dump\nSET x = 1;\nCOPY public.t (id, x) FROM stdin;\n"
    whole = write(tmp_path / "a.sql", head + "1\ta\n\\.\n\n-- done\n")
    assert cells(whole) == (["id", "x"], [["1", "a"]])
    with pytest.raises(IncompleteInput, match=r"is cut: the table public\.t"):
        ops.read_export(write(tmp_path / "b.sql", head + "1\ta\n"))
    with pytest.raises(BadInput, match="has several tables"):
        ops.read_export(write(tmp_path / "c.sql", (head + "1\ta\n\\.\n") * 2))


def test_a_bill_sums_to_the_last_digit(tmp_path: Path) -> None:
    text = "BilledCost,EffectiveCost,ChargePeriodStart\n0.00000080000,NULL,2024-09-18 22:00:00\n"
    path = write(tmp_path / "a.csv", text + "0.1000000000001,2,NULL\n")
    with ops.read_export(path, profile="focus") as export:
        assert export.sql("select sum(BilledCost) from rows").fetchall() == [
            (Decimal("0.1000008000001"),)
        ]


@pytest.mark.parametrize("name", choosing.built_in())
def test_every_profile_that_is_carried_can_be_used(tmp_path: Path, name: str) -> None:
    known = choosing.tables_of(choosing.BUILT_IN / f"{name}.toml")["known_by"]
    path = write(tmp_path / "a.csv", ",".join(known) + "\n")
    with ops.read_export(path, profile=name) as export:
        assert export.columns == known


def test_names_that_differ_only_in_case_or_are_empty_stay_columns_of_their_own(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "a.ndjson", '{"id":"1","ID":"2","":"3","\\ud800":"4"}\n'
                 '{"id":"1","ID":"2","":"3"}\n')  # fmt: skip
    with reading(path) as export:
        assert export.columns == ["id", "ID (2)", "column 3"]
        assert export.relation().fetchall() == [("1", "2", "3")]
        assert export.ledger.unreadable["line"].to_list() == [1]
    path = write(tmp_path / "b.csv", "id,ID\n1,2\n")
    with reading(path) as export:
        assert export.columns == ["id", "ID (2)"] and export.relation().fetchall() == [("1", "2")]
