"""Spoiled logs, by a seed: each spoiled line is set apart with its place, all around it load."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from ops_logs import Log, text
from test_load import BAD_LINES, GOOD
from test_load_packed import pack

from tallybook import ops
from tallybook.errors import BadInput
from tallybook.ops import judge as judging

SPOILED = BAD_LINES | {
    "an empty list": b"[]",
    "a list of events": b"[" + GOOD % 3 + b"}]",
    "true": b"true",
    "an empty object": b"{}",
    "fused with a torn one": (GOOD % 3)[:40] + GOOD % 4 + b"}",
    "fused by CR": GOOD % 3 + b"}\r" + GOOD % 4 + b"}",
    "a byte order mark": b"\xef\xbb\xbf" + GOOD % 3 + b"}",
    "a comma at the end": GOOD % 3 + b"},",
    "a field cut off": GOOD % 3 + b',"topic":"abc',
    "seq with an exponent": GOOD.replace(b"%d", b"3e0") + b"}",
    "seq beyond 64 bits": GOOD.replace(b"%d", b"99999999999999999999") + b"}",
    "a time with an offset": GOOD % 3 + b',"locked_until":"2026-11-29T10:00:00+02:00"}',
    "a second time": GOOD % 3 + b',"topic":"a","topic":"b"}',
    "a number beyond a double": GOOD % 3 + b',"delay_ms":1e999}',
}
EMPTY = [b"", b"   ", b"\t", b"\r"]
PLACES = ("first", "middle", "last")


def spoil(log: Log, dice: random.Random, place: str) -> tuple[int, list[tuple[int, int]], int]:
    """Put spoiled and blank lines into the last segment; how many lines were good, (number,
    offset) of each spoiled one, and how many are blank."""
    good = log.path.read_bytes().splitlines()
    lines = [(line, True) for line in good]
    for _ in range(dice.randrange(2, 6)):
        where = {"first": 0, "last": len(lines)}.get(place, dice.randrange(1, len(lines)))
        spoiled = dice.choice([*SPOILED.values(), *EMPTY])
        lines.insert(where, (spoiled, False))
    offset, bad, blank = 0, [], 0
    for number, (line, is_good) in enumerate(lines, start=1):
        if not is_good and line.strip():
            bad.append((number, offset))
        blank += not line.strip()
        offset += len(line) + 1
    log.path.write_bytes(b"".join(line + b"\n" for line, _ in lines))
    return len(good), bad, blank


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("seed", range(2))
def test_each_spoiled_line_is_named_by_its_place_and_every_other_line_loads(
    tmp_path: Path, seed: int, place: str, packed: bool
) -> None:
    dice = random.Random(f"{seed} {place} {packed}")  # noqa: S311 - a spoiler, by a seed
    log = Log(tmp_path)
    for number in range(dice.randrange(3, 30)):
        log.put(f"key-{number}", {"n": number, "text": 'a}\n{"v":1,"seq":'}, number)
    good, bad, blank = spoil(log, dice, place)
    if packed:
        pack(log.path)
    with ops.open(tmp_path) as warehouse:
        seqs = warehouse.sql("select seq from events order by position").fetchall()
        found = warehouse.quarantine.select("line", "byte_offset").rows()
        ledger = warehouse.ledger
        assert warehouse.gaps.is_empty()
    assert [seq for (seq,) in seqs] == list(range(1, good + 1))
    assert found == bad
    assert (ledger.rows, ledger.quarantined, ledger.blank) == (good, len(bad), blank)
    assert ledger.lines == good + len(bad) + blank


def test_lines_have_the_same_fate_whether_duckdb_or_python_finds_them(tmp_path: Path) -> None:
    """What lets a piece pass unparsed must not let pass what a look at the line would not."""
    log = Log(tmp_path)
    log.raw(b"\n".join(SPOILED.values()) + b"\n")
    verdict = judging.judge(log.path, every_line=True)
    with ops.open(tmp_path) as warehouse:
        found = warehouse.quarantine["reason"].to_list()
        notes = warehouse.notes
    assert found == [line.reason for line in verdict.bad] and len(found) == len(SPOILED)
    assert f"{log.path.name}: {len(SPOILED) - 20} more lines cannot be read" in notes


def test_a_line_of_50_megabytes_is_set_apart_and_the_lines_around_it_load(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.put("before", 1, 1)
    offset = log.path.stat().st_size
    log.raw(GOOD % 3 + b',"payload":"' + b"x" * (50 << 20) + b'"}\n')
    log.seq += 1
    log.put("after", 2, 2)
    with ops.open(tmp_path) as warehouse:
        (bad,) = warehouse.quarantine.to_dicts()
        assert warehouse.ledger.rows == 3
    assert (bad["line"], bad["byte_offset"]) == (3, offset)
    assert bad["reason"].endswith("bytes; no event is so long") and len(bad["text"]) == 200


def test_a_log_whose_lines_end_in_cr_alone_is_set_apart_and_no_torn_tail(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.put("a", 1, 1)
    log.raw(GOOD % 3 + b"}\r" + GOOD % 4 + b"}\r")
    with ops.open(tmp_path) as warehouse:
        assert warehouse.quarantine["reason"].to_list() == [
            "its lines end in CR alone, not in LF",
        ]
        assert warehouse.notes and warehouse.ledger.rows == 2


def test_lines_that_end_in_crlf_are_read_as_they_are(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.put("a", "b", 1)
    log.path.write_bytes(log.path.read_bytes().replace(b"\n", b"\r\n"))
    with ops.open(tmp_path) as warehouse:
        assert warehouse.ledger.rows == 2 and not warehouse.notes


def test_names_that_stand_twice_inside_a_value_are_the_business_of_the_value(
    tmp_path: Path,
) -> None:
    log = Log(tmp_path)
    log.raw(GOOD % 2 + b',"payload":{"a":1,"a":2},"unknown":1,"unknown":2}\n')
    assert judging.judge(log.path, every_line=True).is_clean
    with ops.open(tmp_path) as warehouse:
        assert warehouse.sql("select payload from events where seq = 2").fetchall() == [
            ('{"a":1,"a":2}',)
        ]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (b"Nov 29 10:00:00 host program: started\n" * 3, "the log of another program"),
        (b'{"ts":1,"level":"info","msg":"x"}\n', "the log of another program"),
        (b"GET /index.html 200\r" * 3, "the log of another program"),
        (GOOD.replace(b'"v":1', b'"v":2') % 1 + b"}\n", "of a newer version; update tallybook"),
    ],
)
def test_a_log_without_one_event_of_ours_is_bad_input_with_its_first_line(
    tmp_path: Path, lines: bytes, said: str
) -> None:
    path = tmp_path / "log" / "app-000000000001.ndjson"
    path.parent.mkdir()
    path.write_bytes(lines)
    with pytest.raises(BadInput, match=said) as told:
        ops.open(tmp_path)
    assert f"{path} line 1: " in str(told.value) and "\n" not in str(told.value)


def test_a_segment_of_another_program_beside_ours_is_set_apart(tmp_path: Path) -> None:
    Log(tmp_path).put("a", 1, 1)
    (tmp_path / "log" / "app.ndjson").write_bytes(b'{"at":"%s"}\n' % text(1).encode())
    with ops.open(tmp_path) as warehouse:
        assert warehouse.quarantine["file"].to_list() == ["app.ndjson"]
        assert warehouse.ledger.rows == 2
