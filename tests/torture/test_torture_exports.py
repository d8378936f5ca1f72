"""A fuzz target for each reader of exports: spoiled files end as rows, or as one clear error.

No other exception, no hang and no memory beyond a bound; rows in = rows + unreadable. Seeded, so
that a failure is found again: TALLYBOOK_SEED and TALLYBOOK_SECONDS (for each reader; else 20).
"""

from __future__ import annotations

import gzip
import json
import os
import random
import resource
import time
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import openpyxl
import pyarrow
import pytest
from backports import zstd
from pyarrow import orc, parquet

from tallybook import ops
from tallybook.errors import TallybookError

SEED = int(os.environ.get("TALLYBOOK_SEED", "1"))
SECONDS = float(os.environ.get("TALLYBOOK_SECONDS", "20"))
HANG_S = 20.0
GROWTH_KB = 600_000
TABLE = pyarrow.table({"id": [str(n) for n in range(50)], "t": ['a,\n"b'] * 50, "n": range(50)})
CSV = "id,t,n\n" + "".join(f'{n:03},"a,\n""b{n}",{n}.5\n' for n in range(50))
ROWS = [{"id": f"{n:03}", "t": "a\n", "n": n / 2, "d": {"k": [None, n]}} for n in range(50)]
SPLICES = [
    b'"',
    b"\n",
    b"\r",
    b",",
    b"\x00",
    b"\xff",
    b"{",
    b"[",
    b"\\",
    b"\t",
    b"]}",
    b"PK\x03\x04",
]


def _made(write: Callable[[BytesIO], object]) -> bytes:
    target = BytesIO()
    write(target)
    return target.getvalue()


def _workbook(target: BytesIO) -> None:
    book = openpyxl.Workbook()
    for row in [["id", "t"], *([str(n), "a"] for n in range(20))]:
        book.active.append(row)
    book.save(target)


def _zip(target: BytesIO) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", CSV)
        archive.writestr("b.csv", CSV)


def _lines(values: list[object]) -> bytes:
    return "".join(json.dumps(value) + "\n" for value in values).encode()


SEEDS = {
    "csv": CSV.encode(),
    "utf16.csv": CSV.encode("utf-16"),
    "tsv": CSV.replace(",", "\t").encode(),
    "ndjson": _lines([*ROWS]),
    "json": json.dumps(ROWS, indent=1).encode(),
    "parquet": _made(lambda target: parquet.write_table(TABLE, target)),
    "orc": _made(lambda target: orc.write_table(TABLE, target)),
    "xlsx": _made(_workbook),
    "csv.gz": gzip.compress(CSV.encode()),
    "csv.zst": bytes(zstd.compress(CSV.encode())),
    "zip": _made(_zip),
    "copy": b"".join(b"%d\ta\\tb\t\\N\n" % n for n in range(50)),
    "sql": b"COPY t (a, b) FROM stdin;\n" + b"1\t2\n" * 30 + b"\\.\n",
    "dynamodb.ndjson": _lines([{"Item": {"id": {"S": "1"}, "n": {"N": "2"}}}] * 30),
    "mongodb.ndjson": _lines([{"_id": {"$oid": "5"}, "d": {"$date": {"$numberLong": "1"}}}] * 30),
    "bulk.ndjson": _lines([{"index": {"_id": "1"}}, {"n": 1}] * 20),
}


def spoiled(data: bytes, dice: random.Random) -> bytes:
    """A few bytes flipped, cut, doubled, moved or spliced in."""
    held = bytearray(data)
    for _ in range(dice.randint(1, 6)):
        at = dice.randrange(len(held) + 1)
        what = dice.randrange(5)
        if what == 0 and held:
            held[at % len(held)] = dice.randrange(256)
        elif what == 1:
            del held[at : at + dice.randint(1, 40)]
        elif what == 2:
            held[at:at] = held[at : at + dice.randint(1, 200)] * dice.randint(1, 3)
        elif what == 3:
            held[at:at] = dice.choice(SPLICES) * dice.randint(1, 4)
        elif dice.random() < 0.2:
            del held[at:]
    return bytes(held)


@pytest.mark.parametrize("name", SEEDS)
def test_a_spoiled_file_ends_as_rows_or_as_one_clear_error(tmp_path: Path, name: str) -> None:
    dice = random.Random(f"{SEED} {name}")  # noqa: S311 - by a seed
    path, tried, read = tmp_path / f"a.{name}", 0, 0
    end = time.monotonic() + SECONDS
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    while time.monotonic() < end:
        path.write_bytes(spoiled(SEEDS[name], dice))
        tried += 1
        began = time.monotonic()
        read += _read(path, tried)
        assert time.monotonic() - began < HANG_S, f"seed {SEED}, file {tried} of {name} hangs"
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < GROWTH_KB, f"{grown:,} KB more after {tried} files of {name}"
    print(f"{name}: {tried} files, {read} of them read")


def _read(path: Path, tried: int) -> bool:
    try:
        with ops.read_export(path) as export:
            ledger = export.ledger
            assert ledger.rows_in == ledger.files["rows_in"].sum(), f"seed {SEED}, file {tried}"
            return True
    except TallybookError as error:
        assert str(error).count("\n") == 0, f"seed {SEED}, file {tried}: {error}"
        return False
