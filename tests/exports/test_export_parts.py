"""Whole or not at all: parts, manifests, checksums and archives."""

from __future__ import annotations

import gzip
import hashlib
import json
import zipfile
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from export_steps import cells, dynamodb, inventoried, inventory, profile, reading, warnings, write
from pyarrow import orc, parquet

from tallybook import ops
from tallybook.errors import BadInput, IncompleteInput


def refused(kind: type[Exception], path: str | Path, words: str) -> None:
    """The export is refused, in one line that has these words, as ``kind``."""
    with pytest.raises(kind, match=words) as told:
        ops.read_export(path)
    assert str(told.value).count("\n") == 0


def zipped(**files: bytes) -> bytes:
    target = BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return target.getvalue()


def test_the_parts_of_a_folder_are_one_export_in_the_order_of_their_names(tmp_path: Path) -> None:
    for at in (1, 0, 2):
        write(tmp_path / "e" / f"part-{at:05}.csv", f"id,x\n{at},a\n")
    write(tmp_path / "e" / "_SUCCESS", "")
    write(tmp_path / "e" / ".part-00000.csv.crc", "x")
    assert [row[0] for row in cells(tmp_path / "e")[1]] == ["0", "1", "2"]
    assert [row[0] for row in cells(tmp_path / "e" / "part-*[01].csv")[1]] == ["0", "1"]


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["part-00000.csv", "part-00002.csv"], "part 1 is missing"),
        (["part-00002.csv", "part-00003.csv"], "part 0 is missing"),
        (["000000000000.csv", "000000000002.csv"], "part 1 is missing"),
        (["a-00001-of-00003.csv", "a-00002-of-00003.csv"], "one of 3 parts, and 2 are there"),
        (["a-00001-of-00002.csv"], "one of 2 parts, and 1 are there"),
        (["a.csv", "b.csv.crdownload"], "a download that has not ended"),
    ],
)
def test_a_missing_part_is_incomplete_input(tmp_path: Path, names: list[str], words: str) -> None:
    for name in names:
        write(tmp_path / "e" / name, "id,x\n1,a\n")
    refused(IncompleteInput, tmp_path / "e", words)


def test_files_of_days_need_no_number_after_another(tmp_path: Path) -> None:
    for name in ("orders-2024-01-05.csv", "orders-2024-01-08.csv", "20240109.csv"):
        write(tmp_path / "e" / name, "id,x\n1,a\n")
    assert len(cells(tmp_path / "e")[1]) == 3


@pytest.mark.parametrize(
    "spoil",
    [
        lambda home: (home / "data" / "1.json.gz").unlink(),
        lambda home: (home / "data" / "1.json.gz").write_bytes(gzip.compress(b'{"Item":{}}\n')),
        lambda home: (home / "manifest-files.json").write_text('{"itemCount":1,'),
    ],
)
def test_a_dynamodb_export_with_a_lost_or_changed_file_is_no_verdict(
    tmp_path: Path, spoil: object
) -> None:
    dynamodb(tmp_path, [[{"id": {"S": "1"}}], [{"id": {"S": "2"}}]])
    assert cells(tmp_path)[1] == [["1"], ["2"]]
    spoil(tmp_path / "AWSDynamoDB" / "01-ab")  # type: ignore[operator] # a function above
    with pytest.raises((IncompleteInput, BadInput)):
        ops.read_export(tmp_path)


def test_a_dynamodb_export_of_fewer_items_than_it_says_is_incomplete(tmp_path: Path) -> None:
    dynamodb(tmp_path, [[{"id": {"S": "1"}}]], total=2)
    refused(IncompleteInput, tmp_path, "says 2 rows")


def test_a_file_of_a_dynamodb_export_alone_is_read_and_said_to_be_unproven(tmp_path: Path) -> None:
    dynamodb(tmp_path, [[{"id": {"S": "1"}}]])
    part = next(tmp_path.rglob("0.json.gz"))
    assert cells(part)[1] == [["1"]] and "without the manifest" in warnings(part)


def test_an_inventory_has_the_columns_of_its_manifest_and_plain_keys(tmp_path: Path) -> None:
    inventory(tmp_path, '"b","a%20b/c%2Bd","12","true"\n"b","e+f","",""\n')
    columns, rows = cells(tmp_path)
    assert columns == ["Bucket", "Key", "Size", "IsLatest"]
    assert rows[0] == ["b", "a b/c+d", 12, True] and rows[1][1] == "e f"


_SCHEMAS = {
    "Parquet": "message s3.inventory { required binary bucket (UTF8); required binary key (UTF8); "
    "optional boolean is_latest; optional int64 size; "
    "optional int64 last_modified_date (TIMESTAMP_MILLIS); }",
    "ORC": "struct<bucket:string,key:string,is_latest:boolean,size:bigint,"
    "last_modified_date:timestamp>",
}


def columnar(folder: Path, form: str) -> Path:
    """An S3 Inventory of one ORC or Parquet file; in those no key is encoded."""
    at = datetime(2026, 11, 30, 1, 2, 3, 456000, tzinfo=UTC)
    table = pyarrow.table({
        "bucket": ["b", "b"],
        "key": ["a%20b/c+d", "é"],
        "is_latest": [True, None],
        "size": pyarrow.array([2**53 + 1, None], pyarrow.int64()),
        "last_modified_date": pyarrow.array([at, None], pyarrow.timestamp("ms", "UTC")),
    })  # fmt: skip
    path = folder / "data" / f"a.{form.lower()}"
    path.parent.mkdir(parents=True)
    (orc if form == "ORC" else parquet).write_table(table, path)
    return inventoried(folder, path, form, _SCHEMAS[form])


@pytest.mark.parametrize("form", ["ORC", "Parquet"])
def test_a_columnar_inventory_has_its_types_and_keys_as_they_are(tmp_path: Path, form: str) -> None:
    columns, rows = cells(columnar(tmp_path, form))
    assert columns == ["bucket", "key", "is_latest", "size", "last_modified_date"]
    at = datetime(2026, 11, 30, 1, 2, 3, 456000, tzinfo=UTC)
    assert rows == [["b", "a%20b/c+d", True, 2**53 + 1, at], ["b", "é", None, None, None]]
    with reading(tmp_path) as export:
        assert export.ledger.layout == "s3-inventory"


@pytest.mark.parametrize("form", ["ORC", "Parquet"])
def test_a_columnar_inventory_that_is_cut_or_another_file_is_refused(
    tmp_path: Path, form: str
) -> None:
    path = columnar(tmp_path, form) / "data" / f"a.{form.lower()}"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    refused(IncompleteInput, tmp_path, f"a.{form.lower()}")
    path.write_bytes(bytes(len(whole)))
    refused(IncompleteInput, tmp_path, f"a.{form.lower()}")


def test_an_inventory_of_another_checksum_is_incomplete(tmp_path: Path) -> None:
    inventory(tmp_path, '"b","a","1","true"\n')
    manifest = next(tmp_path.rglob("manifest.json"))
    write(manifest.with_name("manifest.checksum"), "0" * 32 + "\n")
    refused(IncompleteInput, tmp_path, "manifest.json is damaged or cut")


def test_an_unloaded_table_has_the_rows_and_bytes_of_its_manifest(tmp_path: Path) -> None:
    path = write(tmp_path / "0000_part_00", "id,x\n1,a\n")
    entry = {"url": "s3://b/t/0000_part_00", "meta": {"content_length": path.stat().st_size,
                                                      "record_count": 1}}  # fmt: skip
    write(tmp_path / "manifest", json.dumps({"entries": [entry]}))
    assert cells(tmp_path)[1] == [["1", "a"]]
    entry["meta"] = {"record_count": 2}
    write(tmp_path / "manifest", json.dumps({"entries": [entry]}))
    refused(IncompleteInput, tmp_path, "it has 1 rows, and its manifest says 2")


def test_checksums_beside_an_export_are_checked(tmp_path: Path) -> None:
    path = write(tmp_path / "e" / "a.csv", "id,x\n1,a\n")
    good = hashlib.sha256(path.read_bytes()).hexdigest()
    write(tmp_path / "e" / "SHA256SUMS", f"{good}  a.csv\n")
    assert cells(tmp_path / "e")[1] == [["1", "a"]]
    write(tmp_path / "e" / "SHA256SUMS", f"{good}  a.csv\n{good}  b.csv\n")
    refused(IncompleteInput, tmp_path / "e", "names b.csv, which is not there")
    write(tmp_path / "e" / "a.csv.sha256", "0" * 64)
    refused(IncompleteInput, path, "a.csv is damaged or cut: its sha256")


def test_a_count_that_is_round_or_much_smaller_than_last_time_is_said(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "id\n" + "".join(f"{n}\n" for n in range(1000)))
    assert "exactly 1,000 rows" in warnings(path)
    assert "had 1,300 when its profile was written" in warnings(path, last={"rows": 1300})
    assert "had" not in warnings(path, last={"rows": 1200})


def test_two_exports_in_one_folder_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "a" / "a.csv", "id,x\n1,a\n")
    write(tmp_path / "a" / "b.csv", "id,y\n1,a\n")
    refused(BadInput, tmp_path / "a", "mixes two exports: a.csv and b.csv .*'x'")
    write(tmp_path / "b" / "a.csv", "id,x\n1,a\n")
    write(tmp_path / "b" / "b.ndjson", '{"id": 1}\n')
    refused(BadInput, tmp_path / "b", "a.csv is csv and b.ndjson is ndjson")
    for name in ("one", "two"):
        dynamodb(tmp_path / "c" / name, [[{"id": {"S": "1"}}]])
    refused(BadInput, tmp_path / "c", "holds 2 exports")


def test_a_zip_archive_is_read_and_its_parts_are_one_export(tmp_path: Path) -> None:
    alone = write(tmp_path / "a.zip", zipped(**{"x/a.csv": b"id,x\n1,a\n"}))
    assert cells(alone)[1] == [["1", "a"]]
    inside = gzip.compress(b"id,x\n2,b\n")
    both = write(tmp_path / "b.zip", zipped(**{"1.csv": b"id,x\n1,a\n", "2.csv.gz": inside}))
    assert cells(both)[1] == [["1", "a"], ["2", "b"]]


@pytest.mark.parametrize("name", ["../a.csv", "/etc/a.csv", "..\\a.csv", "C:\\a.csv", "x/../../a"])
def test_an_entry_that_would_leave_its_folder_refuses_the_archive(
    tmp_path: Path, name: str
) -> None:
    path = write(tmp_path / "a.zip", zipped(**{"b.csv": b"id\n1\n", name: b"id\n1\n"}))
    refused(BadInput, path, "would leave the folder")


@pytest.mark.parametrize("packing", ["gz", "zip", "zip of zips"])
def test_an_archive_that_unpacks_to_too_much_is_refused_before_it_takes_the_disk(
    tmp_path: Path, packing: str
) -> None:
    big = b"id\n" + b"0" * 200_000
    inner = {f"{at}.zip": zipped(a=big[:90_000]) for at in range(3)}
    data = {"gz": gzip.compress(big), "zip": zipped(a=big), "zip of zips": zipped(**inner)}
    path = write(tmp_path / "a", data[packing])
    how = profile({"limits": {"unpacked": 100_000}})
    with pytest.raises(BadInput, match="unpacks to more than 100,000 bytes"):
        ops.read_export(path, profile=how)


def test_a_bomb_is_known_by_how_much_larger_it_becomes(tmp_path: Path) -> None:
    target = BytesIO()
    with gzip.GzipFile(fileobj=target, mode="wb", compresslevel=9) as file:
        for _ in range(70):
            file.write(bytes(1024 * 1024))
    path = write(tmp_path / "a.csv.gz", target.getvalue())
    refused(BadInput, path, "more than 300 times its size, as a zip bomb")


@pytest.mark.parametrize("cut", [lambda data: data[:-9], lambda data: data[: len(data) // 2]])
@pytest.mark.parametrize("packing", ["gz", "zip", "xlsx"])
def test_a_cut_archive_is_incomplete(tmp_path: Path, cut: object, packing: str) -> None:
    text = "id,x\n" + "".join(f"{n},{hash(n)}\n" for n in range(2000))
    data = gzip.compress(text.encode()) if packing == "gz" else zipped(a=text.encode())
    path = write(tmp_path / f"a.{packing}", cut(data))  # type: ignore[operator] # a function above
    refused(IncompleteInput, path, "damaged or cut")


def test_a_password_protected_entry_is_named_as_such(tmp_path: Path) -> None:
    data = bytearray(zipped(**{"a.csv": b"id\n1\n"}))
    for magic, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(magic) + at] |= 1
    refused(BadInput, write(tmp_path / "a.zip", bytes(data)), "is password-protected")


def test_a_place_in_a_bucket_is_read_like_a_folder(tmp_path: Path) -> None:
    dynamodb(tmp_path / "b", [[{"id": {"S": "1"}}], [{"id": {"S": "2"}}]])
    assert cells(f"file://{tmp_path}/b")[1] == [["1"], ["2"]]
    with reading(write(tmp_path / "c" / "a.csv", "id\n1\n").as_uri()) as export:
        assert export.ledger.rows == 1
    refused(BadInput, f"file://{tmp_path}/nowhere", "there is no such bucket or folder")


def test_an_export_in_a_bucket_of_s3_is_read_by_its_parts(
    storage: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from moto.core import DEFAULT_ACCOUNT_ID
    from moto.s3.models import s3_backends

    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://{storage['endpoint_override']}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", storage["access_key"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", storage["secret_key"])
    backend = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
    backend.create_bucket("exports", "us-east-1")
    backend.put_object("exports", "day/part-0001.csv", b"id\n007\n")
    backend.put_object("exports", "day/part-0002.csv.gz", gzip.compress(b"id\nNA\n"))
    assert cells("s3://exports/day")[1] == [["007"], ["NA"]]
    refused(BadInput, "s3://nowhere/day", "there is no such bucket or folder")
