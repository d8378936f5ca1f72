"""Profiles and --inspect: what is pinned decides, and a file that no longer fits is said where."""

from __future__ import annotations

import json
from datetime import UTC
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from export_steps import cells, profile, reading, write

from tallybook import ops
from tallybook.cli.main import main
from tallybook.errors import BadInput
from tallybook.ops.exports import inspecting


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["reconcile", *arguments])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_inspect_pins_what_it_finds_and_the_profile_reads_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "id;price;sold;n\r\n007;1.234,50;31.12.2024;1\r\n008;2,00;03.04.2024;2\r\n"
    path = write(tmp_path / "a.csv", text.encode("cp1252"))
    assert told(capsys, str(path), "--inspect", "--out", str(tmp_path / "o"))[0] == 1
    with ops.read_export(path, profile=tmp_path / "o" / "profile.toml") as export:
        kinds = [str(kind) for kind in export.relation().types]
        assert kinds == ["VARCHAR", "DECIMAL(38,2)", "DATE", "BIGINT"]
        assert export.ledger.complete and not export.ledger.warnings
    ours = write(
        tmp_path / "b.csv", "id,price,sold,n\n007,1234.5,2024-12-31,1\n008,2,2024-04-03,2\n"
    )
    given = ["--local", str(ours), "--key", "id", "--profile", str(tmp_path / "o/profile.toml")]
    assert told(capsys, str(path), *given)[0] == 0
    assert told(capsys, str(path), "--inspect", "--out", str(tmp_path / "o"))[0] == 2, "never over"


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (["1,9.91E+15", "2,5"], "column 'x': damaged ids? 1 cells"),
        ([f"{n},{n}12140633506000000" for n in range(1, 5)], "all 4 numbers of 16 digits"),
        (["1,03/04/2024", "2,05/06/2024"], "ambiguous dates"),
        (["1,13/04/2024", "2,05/16/2024"], "dates of both kinds: 1 begin with the day, 1 with the"),
        ([*(f"{n},{n}" for n in range(2000)), "x,oops"], "mixed types: most cells look alike"),
        (["1,NA", "2,5"], "1 cells say 'NA'"),
        ([f"{n},a" for n in range(2000)], "exactly 2,000 rows"),
    ],
)  # fmt: skip
def test_inspect_says_what_is_suspicious(tmp_path: Path, rows: list[str], words: str) -> None:
    path = write(tmp_path / "a.csv", "id,x\n" + "\n".join(rows) + "\n")
    assert any(words in said for said in inspecting.inspect(path).suspicious)


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        (["1", "22"], {"type": "integer"}),
        (["1", "007"], {}),
        (["1", "2.50"], {"type": "decimal(38,2)"}),
        (["1.234,5", "7"], {"type": "decimal(38,1)", "decimal": ",", "thousands": "."}),
        (["1,234.5", "7"], {"type": "decimal(38,2)", "thousands": ","}),
        (["13/04/2024", "01/02/2024"], {"type": "date", "format": "%d/%m/%Y"}),
        (["04-13-2024", "01-02-2024"], {"type": "date", "format": "%m-%d-%Y"}),
        (["03/04/2024"], {}),
        (["2024-01-02", "2024-01-02T10:00:00Z"], {"type": "timestamp"}),
        (["true", "false"], {"type": "boolean"}),
        (["1", "NA"], {"type": "integer"}),
        (["9" * 20], {}),
        (["a", "1"], {}),
    ],
)
def test_inspect_suggests_a_type_only_where_every_cell_has_it(
    tmp_path: Path, values: list[str], rule: dict[str, Any]
) -> None:
    path = write(tmp_path / "a.ndjson", "".join(json.dumps({"x": v}) + "\n" for v in values))
    (column,) = inspecting.inspect(path).columns
    assert column.rule() == rule


def test_a_column_with_the_name_of_an_id_stays_text(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "id,zip code,orderId,n\n1,2,3,4\n")
    assert [one.rule() for one in inspecting.inspect(path).columns] == [
        {}, {}, {}, {"type": "integer"}
    ]  # fmt: skip


def test_inspect_names_a_carried_profile_that_knows_the_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "a.csv", "BilledCost,EffectiveCost,ChargePeriodStart\n1,2,3\n")
    code, shown, _ = told(capsys, str(path), "--inspect", "--json")
    found = json.loads(shown)
    assert code == 0 and found["profiles"] == ["focus"] and found["rows"] == 1


def test_an_unreadable_row_is_shown_by_inspect_with_exit_4(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "a.csv", "id,x\n1,a\n2\n")
    code, shown, _ = told(capsys, str(path), "--inspect")
    assert code == 4 and "1 cells where the header has 2" in shown


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id,prise\n1,2\n", "a.csv line 1: column 2 is 'prise', and the profile has 'price'"),
        ("id,price,x\n1,2,3\n", "a.csv line 1: it has 3 columns, and the profile has 2"),
        ("id;price\n1;2\n", "a.csv line 1: column 1 is 'id;price', and the profile has 'id'"),
    ],
)
def test_a_file_that_no_longer_fits_its_profile_is_an_error_that_says_where(
    tmp_path: Path, text: str, words: str
) -> None:
    path = write(tmp_path / "a.csv", text)
    with pytest.raises(BadInput) as error:
        cells(path, layout="csv", read={"columns": ["id", "price"], "delimiter": ","})
    assert words in str(error.value)


def test_a_new_field_of_json_is_said_and_a_missing_one_is_null(tmp_path: Path) -> None:
    path = write(tmp_path / "a.ndjson", '{"id":1}\n')
    assert cells(path, read={"columns": ["id", "x"]}) == (["id", "x"], [["1", None]])
    write(path, '{"id":1}\n{"id":2,"y":3}\n')
    with pytest.raises(BadInput, match=r"a\.ndjson line 2: the field 'y' is not in the profile"):
        cells(path, read={"columns": ["id", "x"]})


def test_a_profile_of_another_layout_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "t_schema.json", '[{"name":"n","type":"STRING"}]')
    path = write(tmp_path / "t.jsonl", '{"n":"x"}\n')
    with pytest.raises(BadInput, match="has the layout bigquery, and the profile is for dynamodb"):
        cells(path, layout="dynamodb")


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"reed": {}}, "no table 'reed'; did you mean 'read'?"),
        ({"read": {"delimeter": ";"}}, "no field of [read] 'delimeter'; did you mean 'delimiter'?"),
        ({"read": {"header": True}}, "[read] header: True is not a whole number"),
        ({"read": {"columns": ["a", "a"]}}, "names a column twice: a"),
        ({"columns": {"x": {"type": "money"}}}, "[columns.x]: no type 'money'; choose one of"),
        ({"columns": {"x": {"type": "decimal(39,2)"}}}, "no type 'decimal(39,2)'"),
        ({"columns": {"x": {"null": "NA"}}}, "[columns.x] null: 'NA' is not a list"),
        ({"columns": {"x": {"format": "%Y"}}}, "a format goes with the type timestamp or date"),
        ({"columns": {"x": {"type": "date", "format": "%Q"}}}, "format '%Q' is none of strptime's"),
        ({"columns": {"x": {"zone": "Berlin"}}}, "no zone 'Berlin'; write one like Europe/Berlin"),
        ({"limits": {"unpacked": "lots"}}, "[limits] unpacked: 'lots' is no size"),
        ({"last": {"rows": "9"}}, "[last] rows: '9' is not a whole number"),
    ],
)
def test_a_profile_with_a_mistake_is_refused_by_its_place(
    tables: dict[str, Any], words: str
) -> None:
    with pytest.raises(BadInput) as error:
        profile(tables)
    assert words in str(error.value) and str(error.value).startswith("given.toml: ")


def test_a_rule_for_a_column_that_is_not_there_names_the_nearest(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "id,price\n1,2\n")
    with pytest.raises(BadInput, match=r"has no column 'prize'.*the nearest is 'price'"):
        cells(path, columns={"prize": {"type": "integer"}})


def test_memory_is_bounded_by_the_profile_and_what_is_spilled_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "aside"))
    (tmp_path / "aside").mkdir()
    rows = "".join(f"{n},{n * 7919 % 100003},{'x' * 60}{n}\n" for n in range(60_000))
    path = write(tmp_path / "a.csv", "id,n,t\n" + rows)
    with reading(path, limits={"memory": "40MB"}, columns={"n": {"type": "integer"}}) as export:
        assert export.ledger.rows == 60_000
        assert export.sql("select sum(n) from rows").fetchall()[0][0] > 0
    assert not list((tmp_path / "aside").iterdir())


def test_a_key_is_asked_for_where_nothing_is_inspected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "a.csv", "id\n1\n")
    code, _, said = told(capsys, str(path), "--local", str(path))
    assert code == 2 and "--key; --inspect shows the columns" in said


ORDERS = """Name,Email,Financial Status,Paid at,Currency,Subtotal,Total,Created at,\
Lineitem quantity,Lineitem name,Lineitem price,Billing Zip,Notes
#1001,a@example.org,paid,2026-03-29 01:30:00 +0100,EUR,53.91,59.90,2026-03-29 01:29:59 +0100,\
1,"Mug, blue",49.90,'00123,"Hello,
two lines"
#1001,,,,,,,2026-03-29 03:30:00 +0200,2,Spoon,2.01,,
#1002,b@example.org,pending,,EUR,7.00,7.00,2026-04-01 00:00:00 +0000,1,Plate,7.00,'8001,""
#1003,c@example.org,paid,yesterday,EUR,1.00,1.00,2026-04-01 00:00:01 +0000,1,Fork,1.00,,
#1004,d@example.org,paid,,EUR,1.00,1.00,2026-04-01 00:00:02 +0000,half,Fork,1.00,,
"""


def test_orders_of_shopify_are_a_row_an_item_with_their_times_and_amounts(tmp_path: Path) -> None:
    path = write(tmp_path / "orders_export.csv", ORDERS)
    with ops.read_export(path, profile="shopify") as export:
        rows = export.pl()
        bad = export.ledger.unreadable.select("line", "column", "text").rows()
    assert rows["Name"].to_list() == ["#1001", "#1001", "#1002"]
    assert rows["Billing Zip"].to_list() == ["'00123", None, "'8001"]
    assert rows["Total"].to_list() == [Decimal("59.90"), None, Decimal("7.00")]
    assert rows["Lineitem quantity"].to_list() == [1, 2, 1]
    assert rows["Notes"].to_list() == ["Hello,\ntwo lines", None, ""]
    utc = [at.astimezone(UTC).isoformat() for at in rows["Created at"]]
    assert utc == ["2026-03-29T00:29:59+00:00", "2026-03-29T01:30:00+00:00",
                   "2026-04-01T00:00:00+00:00"]  # fmt: skip
    assert rows["Paid at"].to_list()[1:] == [None, None]
    assert bad == [(6, "Paid at", "yesterday"), (7, "Lineitem quantity", "half")]


CHARGES = """id,object,amount,amount_refunded,currency,created,livemode,description
ch_1,charge,1999,0,usd,2026-03-01 10:00:00,true,
ch_2,charge,500,500,jpy,2026-03-01 10:00:01,false,"a, b"
ch_3,charge,19.99,0,usd,2026-03-01 10:00:02,true,
ch_4,charge,100,0,usd,03/04/2026,true,
"""
BALANCE = """balance_transaction_id,created_utc,available_on_utc,currency,gross,fee,net,\
reporting_category,source_id,customer_facing_amount,automatic_payout_id
txn_1,2026-03-01 23:59:59,2026-03-03 00:00:00,usd,1234.50,36.10,1198.40,charge,ch_1,1234.50,po_1
txn_2,2026-03-02 00:00:00,2026-03-04 00:00:00,usd,-20.00,0.00,-20.00,refund,re_1,-20.00,po_1
txn_3,2026-03-02 00:00:01,2026-03-04 00:00:00,jpy,500,18,482,charge,ch_2,500,
txn_4,2026-03-02 00:00:02,2026-03-04 00:00:00,kwd,1.005,0.1,0.905,charge,ch_3,1.005,
txn_5,2026-03-02 00:00:03,2026-03-04 00:00:00,usd,"1,50",0,1.50,charge,ch_4,,
"""


def test_tables_of_stripe_have_whole_amounts_and_times_in_utc(tmp_path: Path) -> None:
    path = write(tmp_path / "charges.csv", CHARGES)
    with ops.read_export(path, profile="stripe") as export:
        rows = export.pl()
        bad = export.ledger.unreadable.select("line", "column", "text").rows()
    assert rows.select("id", "amount", "amount_refunded", "livemode").rows() == [
        ("ch_1", 1999, 0, True), ("ch_2", 500, 500, False),
    ]  # fmt: skip
    assert rows["created"][0].astimezone(UTC).isoformat() == "2026-03-01T10:00:00+00:00"
    assert bad == [(4, "amount", "19.99"), (5, "created", "03/04/2026")]


def test_a_balance_report_of_stripe_adds_up_in_units_of_each_currency(tmp_path: Path) -> None:
    path = write(tmp_path / "balance.csv", BALANCE)
    with ops.read_export(path, profile="stripe_balance") as export:
        apart = "select count(*) from rows where gross - fee <> net"
        assert export.sql(apart).fetchall() == [(0,)]
        sums = "select currency, sum(net) from rows group by currency order by currency"
        assert export.sql(sums).fetchall() == [
            ("jpy", Decimal(482)), ("kwd", Decimal("0.905")), ("usd", Decimal("1178.40")),
        ]  # fmt: skip
        created = export.pl()["created_utc"].to_list()
        bad = export.ledger.unreadable.select("line", "column", "text").rows()
    assert created[0].astimezone(UTC).isoformat() == "2026-03-01T23:59:59+00:00"
    assert bad == [(6, "gross", "1,50")]
