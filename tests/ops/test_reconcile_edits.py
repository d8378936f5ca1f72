"""Random tables, random edits, a random dialect on each side: the report equals the edits."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

import polars
from hypothesis import given, settings
from hypothesis import strategies as st

from tallybook.ops.reconciling import reconcile

COLUMNS = ["id", "part", "price", "note"]
Cells = tuple[str | None, ...]
Given = Path | polars.DataFrame

KEYS = st.tuples(st.sampled_from(["1", "01", "a", "\u00e9", "", None]),
                 st.sampled_from(["x", "X", "x ", None]))  # fmt: skip
PRICES = st.sampled_from([None, "1", "1.0", "+1", "1e0", "0.10", ".1", "-0", "0", "7.25",
                          "99999999999999999999.5", "much"])  # fmt: skip
NOTES = st.sampled_from([None, "", "NA", "null", "a,b", "a;b", 'q"q', "l\nl", " s ", "007", "7",
                         "\u65e5\u672c", "=1+1"])  # fmt: skip
ROWS = st.lists(st.tuples(KEYS, PRICES, NOTES).map(lambda row: (*row[0], *row[1:])), max_size=12)
EDITS = st.lists(
    st.tuples(st.sampled_from(["drop", "double", "price", "note", "key"]), st.integers(0, 99),
              PRICES, NOTES, KEYS),
    max_size=8,
)  # fmt: skip


def edited(
    rows: list[Cells], edits: list[tuple[str, int, str | None, str | None, Cells]]
) -> list[Cells]:
    """The rows after each edit, which says what it does and to which row."""
    made = list(rows)
    for what, at, price, note, key in edits:
        if not made:
            break
        one, two, old_price, old_note = made[at % len(made)]
        changed = {"price": (one, two, price, old_note), "note": (one, two, old_price, note),
                   "key": (*key, old_price, old_note)}  # fmt: skip
        if what == "double":
            made.append(made[at % len(made)])
        elif what == "drop":
            del made[at % len(made)]
        else:
            made[at % len(made)] = changed[what]
    return made


def delimited(mark: str, end: str, head: str = "") -> Callable[[list[Cells]], bytes]:
    def cell(value: str | None) -> str:
        return "" if value is None else '"' + value.replace('"', '""') + '"'

    def write(rows: list[Cells]) -> bytes:
        lines = [mark.join(f'"{name}"' for name in COLUMNS)]
        lines += [mark.join(map(cell, row)) for row in rows]
        return (head + end.join([*lines, ""])).encode()

    return write


def ndjson(rows: list[Cells]) -> bytes:
    objects = (dict(zip(COLUMNS, row, strict=True)) for row in rows)
    return "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in objects).encode()


def document(rows: list[Cells]) -> bytes:
    return json.dumps([dict(zip(COLUMNS, row, strict=True)) for row in rows]).encode()


DIALECTS: dict[str, Callable[[list[Cells]], bytes]] = {
    "csv": delimited(",", "\n"),
    "crlf.csv": delimited(",", "\r\n", "\ufeff"),
    "semicolon.csv": delimited(";", "\n"),
    "tsv": delimited("\t", "\n"),
    "wide.csv": lambda rows: delimited(",", "\n")(rows).decode().encode("utf-16"),
    "csv.gz": lambda rows: gzip.compress(delimited(",", "\n")(rows), 1),
    "ndjson": ndjson,
    "json": document,
}
SIDES = st.sampled_from([*DIALECTS, "parquet", "frame"])


def written(folder: Path, side: str, rows: list[Cells], dialect: str) -> Given:
    """The rows as a side; one without rows has no field in JSON, so it is a CSV then."""
    schema = dict.fromkeys(COLUMNS, polars.String)
    frame = polars.DataFrame(rows, schema=schema, orient="row")
    if dialect == "frame":
        return frame
    path = folder / f"{side}.{dialect}"
    if dialect == "parquet":
        frame.write_parquet(path)
    elif not rows:
        path = folder / f"{side}.csv"
        path.write_bytes(DIALECTS["csv"](rows))
    else:
        path.write_bytes(DIALECTS[dialect](rows))
    return path


def value(price: str | None) -> Decimal | str | None:
    return price if price in (None, "much") else Decimal(str(price))


def expected(local: list[Cells], cloud: list[Cells]) -> tuple[Counter[str], Counter[Cells]]:
    """Rows by status, and the changed cells, told row by row from the rules in words."""
    statuses: Counter[str] = Counter()
    changed: Counter[Cells] = Counter()
    sides = {"local": local, "cloud": cloud}
    times = {side: Counter(row[:2] for row in rows) for side, rows in sides.items()}
    of_key = {side: {row[:2]: row for row in rows} for side, rows in sides.items()}
    for side, other in (("local", "cloud"), ("cloud", "local")):
        for row in sides[side]:
            key, partner = row[:2], of_key[other].get(row[:2])
            if None in key:
                statuses[f"null_key_{side}"] += 1
            elif max(times[side][key], times[other][key]) > 1:
                statuses[f"duplicate_{side}"] += 1
            elif "much" in (row[2], partner and partner[2]):
                statuses[f"unreadable_{side}"] += 1
            elif partner is None:
                statuses[f"only_{side}"] += 1
            elif side == "local":
                cells = [(*key, "price", row[2], partner[2])] if value(row[2]) != value(
                    partner[2]) else []  # fmt: skip
                cells += [(*key, "note", row[3], partner[3])] if row[3] != partner[3] else []
                changed.update(cells)
                statuses["differs" if cells else "match"] += 1
    return statuses, changed


@settings(max_examples=15, deadline=None)
@given(rows=ROWS, edits=EDITS, left=SIDES, right=SIDES)
def test_the_report_equals_the_edits(
    rows: list[Cells],
    edits: list[tuple[str, int, str | None, str | None, Cells]],
    left: str,
    right: str,
) -> None:
    cloud = edited(rows, edits)
    with TemporaryDirectory() as folder:
        local = written(Path(folder), "local", rows, left)
        export = written(Path(folder), "cloud", cloud, right)
        with reconcile(local, export, key=["id", "part"], types={"price": "decimal"}) as found:
            statuses, changed = expected(rows, cloud)
            assert {name: n for name, n in found.statuses.items() if n} == dict(statuses)
            assert (found.rows_local, found.rows_cloud) == (len(rows), len(cloud))
            said = Counter((*json.loads(key), *cells) for key, *cells in found.differences.rows())
            assert said == changed
