"""Dialects: any table, written in any dialect that we claim to read, comes back cell for cell."""

from __future__ import annotations

import gzip
import zipfile
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from backports import zstd
from export_steps import Cell, cells, unreadable, warnings, write
from hypothesis import assume, given, settings
from hypothesis import strategies as st

TEXT = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8
) | st.sampled_from(['"', '""', ",", ";", "\t", "\n", "\r\n", "\r", " a", '" ', "NA", "007", "\\N"])
CELL = st.none() | TEXT
TABLE = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(CELL, min_size=width, max_size=width), max_size=6)
)


@st.composite
def written(draw: st.DrawFn) -> tuple[list[list[Cell]], bytes, dict[str, Any], str]:
    """A table, its bytes in some dialect, what a profile says of it and the ending of its file."""
    rows = draw(TABLE)
    width = len(rows[0]) if rows else 2
    delimiter = draw(st.sampled_from([",", ";", "\t", "|", "\x01", "\u00a7", "::"]))
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    encoding = draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32"]))
    header = draw(st.booleans())
    names = [f"c{at}" for at in range(width)]
    above = [names] if header else []
    always = draw(st.booleans())

    def cell(value: Cell) -> str:
        if value is None:
            return ""
        plain = value and not any(mark in value for mark in ('"', delimiter, "\n", "\r"))
        if plain and not always and value[0] not in " \t" and value[-1] not in " \t":
            return value
        return '"' + value.replace('"', '""') + '"'

    assume(header or any(cell is not None for row in rows for cell in row))
    lines = [delimiter.join(map(cell, row)) for row in [*above, *rows]]
    data = (end.join(lines) + (end if lines else "")).encode(encoding)
    read = {"delimiter": delimiter, "encoding": encoding, "header": int(header), "columns": names}
    packing = draw(st.sampled_from(["", ".gz", ".zst", ".zip"]))
    return rows, _packed(data, packing), read, packing


def _packed(data: bytes, packing: str) -> bytes:
    if packing == ".gz":
        half = len(data) // 2
        return gzip.compress(data[:half]) + gzip.compress(data[half:])
    if packing == ".zst":
        return bytes(zstd.compress(data))
    if packing == ".zip":
        target = BytesIO()
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("table.csv", data)
        return target.getvalue()
    return data


@settings(max_examples=25, deadline=None)
@given(table=written())
def test_any_table_in_any_dialect_comes_back_cell_for_cell(
    table: tuple[list[list[Cell]], bytes, dict[str, Any], str],
) -> None:
    rows, data, read, packing = table
    with TemporaryDirectory() as folder:
        path = write(Path(folder) / f"table.csv{packing}", data)
        columns, found = cells(path, layout="csv", read=read)
    assert columns == read["columns"]
    assert found == rows


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("id,x\r\n1,a\n2,b\r\n", [["1", "a"], ["2", "b"]]),
        ("id,x\r1,a\r2,b\r", [["1", "a"], ["2", "b"]]),
        ("id,x\r\r\n1,a\r\r\n2,b\r\r\n", [["1", "a"], ["2", "b"]]),
        ("id,x\n\n1,a\n\n\n2,b\n\n", [["1", "a"], ["2", "b"]]),
        ('id, x\n1, "a"\n2," b"\n', [["1", ' "a"'], ["2", " b"]]),
        ("id,x\n1,a\nid,x\n2,b\n", [["1", "a"], ["2", "b"]]),
        ("id|x\n1|a\n2|b\n", [["1", "a"], ["2", "b"]]),
        ("id;x\n1;1,5\n2;2,5\n", [["1", "1,5"], ["2", "2,5"]]),
        ("id,x\n1,a", [["1", "a"]]),
        ('id,x\n1,"a""b"\n2,c"d\n', [["1", 'a"b'], ["2", 'c"d']]),
        ('id,x\n1,\n2,""\n', [["1", None], ["2", ""]]),
        ("id\n1\n\n3\n", [["1"], [None], ["3"]]),
        ('"id", "x"\n"1", "a"\n"2", "b, c"\n', [["1", "a"], ["2", "b, c"]]),
        ("Orders of 2024\n\nid,x,y\n1,a,b\n2,c,d\n", [["1", "a", "b"], ["2", "c", "d"]]),
    ],
)
def test_a_file_is_read_as_it_is_written(tmp_path: Path, text: str, rows: list[list[Cell]]) -> None:
    assert cells(write(tmp_path / "a.csv", text))[1] == rows


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "cp1252", "latin-1"])
def test_an_encoding_without_a_mark_is_found_and_said(tmp_path: Path, encoding: str) -> None:
    text = "id,name\n1,Zo\u00eb\n2,caf\u00e9\u0081\n".replace(
        "\u0081", "\u0081" if encoding != "cp1252" else ""
    )
    path = write(tmp_path / "a.csv", text.encode(encoding))
    assert cells(path)[1][0] == ["1", "Zo\u00eb"]
    assert f"read as {encoding}" in warnings(path)


def test_a_byte_that_is_no_utf8_makes_its_row_alone_unreadable(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "id,x\n1,\u00e9\n".encode() + b"2,\xff\n3,c\n")
    ((line, _, reason, text),) = unreadable(path)
    assert (line, text) == (3, "2,\ufffd") and "UTF-8" in reason


@pytest.mark.parametrize(
    ("text", "bad"),
    [
        ('id,x\n1,"a"b\n2,c\n', [(2, "text behind a closing quote", '1,"a"b')]),
        ('id,x\n1,"a\n2,c\n3,d\n', [(2, "a quote that is opened here never closes", '1,"a')]),
        ("id,x\n1\n2,c\n3,d,e\n", [(2, "1 cells where the header has 2", "1"),
                                   (4, "3 cells where the header has 2", "3,d,e")]),
    ],
)  # fmt: skip
def test_a_spoiled_row_is_told_and_takes_nothing_with_it(
    tmp_path: Path, text: str, bad: list[tuple[int, str, str]]
) -> None:
    found = unreadable(write(tmp_path / "a.csv", text))
    assert [(line, reason, words) for line, _, reason, words in found] == bad


def test_a_header_that_stands_again_and_blank_lines_are_counted_as_no_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "id,x\n1,a\n\nid,x\n2,b\n")
    assert "header again 1 times" in warnings(path)


def test_backslashes_escape_quotes_where_the_profile_says_so(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 'id,x\n1,"a\\"b\\\\"\n2,"c\nd"\n')
    assert cells(path, read={"escape": "\\"})[1] == [["1", 'a"b\\'], ["2", "c\nd"]]


def test_rows_across_many_buffers_are_placed_at_their_lines(tmp_path: Path) -> None:
    rows = [f'{n},"{"x" * 200}\n",{n}' for n in range(30_000)]
    rows[29_000] = "29000,short"
    rows[29_500] = '29500,"y",oops'
    path = write(tmp_path / "a.csv", "id,t,n\n" + "\n".join(rows) + "\n")
    found = unreadable(path, columns={"n": {"type": "integer"}})
    assert [(line, text) for line, _, _, text in found] == [
        (2 + 2 * 29_000, "29000,short"),
        (2 + 2 * 29_500 - 1, "oops"),
    ]
