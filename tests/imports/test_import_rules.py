"""What becomes of rows that are odd: counted and told, never guessed."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from import_steps import CSV, EVENT_HEAD, EVENTS, HEAD, at, imported, jobs, waits

from tallybook import ops
from tallybook.errors import BadInput
from tallybook.ops import imports

DAY = "2024-05-01T"


def row(id: str, submit: str, start: str, end: str, state: str) -> str:
    times = [f"{DAY}{one}" if one else "" for one in (submit, start, end)]
    return ",".join([id, "q", *times, state]) + "\n"


def test_a_job_without_start_was_never_started_and_one_without_end_is_open(tmp_path: Path) -> None:
    text = (
        HEAD
        + row("a", "08:00:00", "", "", "queued")
        + row("b", "08:00:01", "08:00:02", "", "running")
    )
    found = imported(tmp_path, text, CSV)
    assert (found.counts.never_started, found.counts.open) == (1, 2)
    assert [one[1] for one in jobs(tmp_path / "book").values()] == ["pending", "leased"]


def test_a_start_before_its_submit_is_a_negative_wait_and_is_counted(tmp_path: Path) -> None:
    found = imported(tmp_path, HEAD + row("a", "08:00:10", "08:00:00", "08:00:05", "ok"), CSV)
    assert found.counts.negative_waits == 1
    assert waits(tmp_path / "book") == {"a": (-10.0, 5.0)}
    with ops.open(tmp_path / "book") as warehouse:
        assert ops.latency(warehouse)["wait_negative"].to_list() == [1]


def test_an_end_before_its_start_is_a_negative_run_and_is_counted(tmp_path: Path) -> None:
    found = imported(tmp_path, HEAD + row("a", "08:00:00", "08:00:09", "08:00:05", "ok"), CSV)
    assert found.counts.negative_runs == 1 and waits(tmp_path / "book") == {"a": (9.0, -4.0)}


def test_an_end_without_start_is_counted_and_its_run_is_unknown(tmp_path: Path) -> None:
    found = imported(tmp_path, HEAD + row("a", "08:00:00", "", "08:00:05", "ok"), CSV)
    assert (found.counts.ends_without_start, found.counts.never_started) == (1, 1)
    assert waits(tmp_path / "book") == {"a": (None, None)}


def test_a_word_that_the_profile_does_not_know_is_told_and_its_rows_set_apart(
    tmp_path: Path,
) -> None:
    text = (
        HEAD
        + row("a", "08:00:00", "08:00:01", "08:00:05", "odd")
        + row("b", "08:00:00", "08:00:01", "08:00:05", "bad luck")
    )
    found = imported(tmp_path, text, CSV)
    assert found.unknown_words == {"odd": 1}
    assert [(one.line, one.reason, one.text) for one in found.unreadable] == [
        (2, "status: unknown word odd", "")
    ]
    assert list(jobs(tmp_path / "book")) == ["b"]


def test_a_word_that_ends_a_job_without_a_time_leaves_it_open(tmp_path: Path) -> None:
    found = imported(tmp_path, HEAD + row("a", "08:00:00", "08:00:01", "", "ok"), CSV)
    assert (found.counts.no_end_time, found.counts.open) == (1, 1)


def test_a_time_that_the_word_contradicts_is_left_out_and_counted(tmp_path: Path) -> None:
    found = imported(tmp_path, HEAD + row("a", "08:00:00", "08:00:01", "", "queued"), CSV)
    assert found.counts.contradicted == 1
    assert jobs(tmp_path / "book")["a"][3] is None


def test_of_a_repeated_id_the_first_row_counts_and_the_others_are_told(tmp_path: Path) -> None:
    text = (
        HEAD
        + row("a", "08:00:00", "", "", "queued")
        + row("b", "08:00:00", "", "", "queued")
        + row("a", "09:00:00", "", "", "queued")
    )
    found = imported(tmp_path, text, CSV)
    assert [(one.line, one.reason, one.text) for one in found.unreadable] == [
        (4, "id: repeated", "a")
    ]
    assert jobs(tmp_path / "book")["a"][2] == at("08:00:00")


def test_of_states_the_furthest_counts_in_whatever_order_they_come(tmp_path: Path) -> None:
    text = (
        HEAD
        + row("a", "08:00:00", "08:00:01", "08:00:05", "ok")
        + row("a", "08:00:00", "", "", "queued")
        + row("a", "08:00:00", "08:00:01", "", "running")
    )
    found = imported(tmp_path, text, '[read]\nrows = "states"\n' + CSV)
    assert (found.counts.jobs, found.counts.superseded, found.complete) == (1, 2, True)
    assert jobs(tmp_path / "book")["a"][1] == "done"


def test_rows_add_up_whatever_is_odd(tmp_path: Path) -> None:
    text = (
        HEAD + row("a", "08:00:00", "", "", "queued") + row("a", "08:00:00", "", "", "queued")
        + "c,q,yesterday,,,queued\nd,q\n" + row("e", "08:00:00", "", "", "odd")
        + row("f", "07:00:00", "", "", "queued") + ",q,,,,queued\n"
        + row("g", "08:00:00", "", "", "queued").replace(",q,", ",other,")
    )  # fmt: skip
    found = imported(tmp_path, text, CSV + '[filter]\nqueue = ["!other"]\n')
    counts = found.counts
    assert counts.rows == 8
    assert counts.rows == counts.jobs + counts.superseded + counts.left_out + counts.unreadable
    assert (counts.jobs, counts.left_out, counts.unreadable, counts.out_of_order) == (2, 1, 5, 1)
    assert [one.line for one in found.unreadable] == [3, 4, 5, 6, 8]


_NESTED = """
[read]
format = "%s"
[columns]
id = "id"
submit = "at.submit"
status = "state"
[status]
pending = "queued"
done = "ok"
"""


@pytest.mark.parametrize("format", ["ndjson", "json"])
def test_an_object_that_has_one_name_twice_is_no_job(tmp_path: Path, format: str) -> None:
    time = "2024-05-01T08:00:00Z"
    rows = [
        f'{{"id": "a", "at": {{"submit": "{time}"}}, "state": "queued"}}',
        f'{{"id": "b", "at": {{"submit": "{time}"}}, "state": "queued", "state": "ok"}}',
        f'{{"id": "c", "at": {{"submit": "{time}", "submit": ""}}, "state": "ok"}}',
        f'{{"state": "ok", "id": "d", "at": {{"submit": "{time}"}}, "more": 1}}',
    ]
    text = "\n".join(rows) if format == "ndjson" else f"[{', '.join(rows)}]"
    found = imported(tmp_path, text, _NESTED % format)
    lines = [2, 3] if format == "ndjson" else [None, None]
    assert [(one.line, one.reason) for one in found.unreadable] == [
        (line, f"a name stands twice: {name!r}")
        for line, name in zip(lines, ["state", "submit"], strict=True)
    ]
    assert (found.counts.rows, sorted(jobs(tmp_path / "book"))) == (4, ["a", "d"])


def test_a_document_that_has_its_list_of_rows_twice_is_refused(tmp_path: Path) -> None:
    row = '{"id": "a", "at": {"submit": "2024-05-01T08:00:00Z"}, "state": "ok"}'
    text = f'{{"of": {{"all": [{row}], "all": [{row}]}}}}'
    profile = (_NESTED % "json").replace("[columns]", 'each = "of.all"\n[columns]')
    with pytest.raises(BadInput, match=r"log\.csv: 'all' stands twice in it"):
        imported(tmp_path, text, profile)


def test_a_cell_that_is_no_time_is_told_with_its_line_and_text(tmp_path: Path) -> None:
    text = (
        HEAD
        + row("a", "08:00:00", "", "", "queued")
        + '"b\nb",q,2024-05-01T25:00:00,,,queued\n'
        + "c,q,2024-05-01,soon,,queued\n"
    )
    found = imported(tmp_path, text, CSV)
    told = [(one.file, one.line, one.reason, one.text) for one in found.unreadable]
    assert told == [("log.csv", 3, "submit: no time", "2024-05-01T25:00:00"),
                    ("log.csv", 5, "start: no time", "soon")]  # fmt: skip
    kept = [json.loads(line) for line in (tmp_path / "book/unreadable.ndjson").open()]
    assert [one["line"] for one in kept] == [3, 5]


def test_events_are_read_by_their_times_and_ties_keep_the_order_of_the_file(tmp_path: Path) -> None:
    text = EVENT_HEAD + (
        "a,end,2024-05-01T08:00:05Z\na,start,2024-05-01T08:00:01Z\n"
        "a,submit,2024-05-01T08:00:00Z\nb,submit,2024-05-01T08:00:00Z\nb,start,2024-05-01T08:00:00Z\n"
    )
    found = imported(tmp_path, text, EVENTS)
    assert found.counts.out_of_order == 2
    assert waits(tmp_path / "book") == {"a": (1.0, 4.0), "b": (0.0, None)}


def test_what_an_event_list_tells_twice_is_counted_and_the_first_one_kept(tmp_path: Path) -> None:
    text = EVENT_HEAD + "".join(
        f"a,{what},2024-05-01T08:00:0{second}Z\n"
        for second, what in enumerate(["submit", "submit", "start", "end", "end", "fail", "note"])
    )
    found = imported(tmp_path, text, EVENTS)
    counts = found.counts
    assert (counts.repeated_submits, counts.repeated_ends, counts.ignored) == (1, 2, 1)
    assert counts.rows == counts.used + counts.ignored + counts.left_out + counts.unreadable
    assert jobs(tmp_path / "book")["a"][1] == "done"
    assert waits(tmp_path / "book") == {"a": (2.0, 1.0)}


def test_an_end_without_start_in_an_event_list_is_counted(tmp_path: Path) -> None:
    text = EVENT_HEAD + "a,submit,2024-05-01T08:00:00Z\na,end,2024-05-01T08:00:09Z\n"
    found = imported(tmp_path, text, EVENTS)
    assert (found.counts.ends_without_start, found.counts.never_started) == (1, 1)
    assert waits(tmp_path / "book") == {"a": (None, None)}


def test_a_log_without_submits_has_no_waits_and_says_so(tmp_path: Path) -> None:
    text = EVENT_HEAD + "a,start,2024-05-01T08:00:00Z\na,end,2024-05-01T08:00:09Z\n"
    found = imported(tmp_path, text, EVENTS)
    assert found.counts.no_submit == 1 and waits(tmp_path / "book") == {"a": (None, 9.0)}
    assert "any job was submitted" in found.silent["submits"]


def test_a_failed_attempt_that_is_tried_again_is_a_retry_of_the_job(tmp_path: Path) -> None:
    steps = ["submit", "start", "retry", "start", "end"]
    text = EVENT_HEAD + "".join(
        f"a,{what},2024-05-01T08:00:0{n}Z\n" for n, what in enumerate(steps)
    )
    imported(tmp_path, text, EVENTS)
    with ops.open(tmp_path / "book") as warehouse:
        found = warehouse.sql("select status, retries, attempt_count, run_s from jobs").fetchall()
    assert found == [("done", 1, 2, 1.0)]


@pytest.mark.parametrize(
    ("times", "cell"),
    [
        ('format = "s"', "1714550400"),
        ('format = "s"', "1714550400.000"),
        ('format = "ms"', "1714550400000"),
        ('format = "us"', "1714550400000000"),
        ('format = "ns"', "1714550400000000000"),
        ('format = "iso"', "2024-05-01T08:00:00Z"),
        ('format = "iso"', "2024-05-01 08:00:00.0000000"),
        ('format = "iso"', "2024-05-01T13:30:00+05:30"),
        ('format = "iso"\nzone = "Europe/Berlin"', "2024-05-01T10:00:00"),
        ('format = "%d/%m/%Y %H:%M:%S"\nzone = "America/New_York"', "01/05/2024 04:00:00"),
        ('format = "%d/%b/%Y:%H:%M:%S %z"', "01/May/2024:10:00:00 +0200"),
        ('format = "%m/%d %H:%M:%S"\nyear = 2024', "05/01 08:00:00"),
    ],
)
def test_one_instant_in_any_format_is_that_instant(tmp_path: Path, times: str, cell: str) -> None:
    profile = f'[columns]\nid = "id"\nsubmit = "at"\n[time]\n{times}\n'
    imported(tmp_path, f"id,at\na,{cell}\n", profile)
    assert jobs(tmp_path / "book")["a"][2] == at("08:00:00")


def test_a_fraction_of_a_second_is_kept_to_the_microsecond(tmp_path: Path) -> None:
    profile = '[columns]\nid = "id"\nsubmit = "at"\n[time]\nformat = "s"\n'
    imported(tmp_path, "id,at\na,1714550400.123456\n", profile)
    assert jobs(tmp_path / "book")["a"][2] == at("08:00:00.123456")


def test_several_files_are_one_log_also_compressed_and_each_row_knows_its_line(
    tmp_path: Path,
) -> None:
    first, second = tmp_path / "1.csv.gz", tmp_path / "2.csv"
    first.write_bytes(gzip.compress((HEAD + row("a", "08:00:00", "", "", "queued")).encode()))
    second.write_text(HEAD + "x\r\n" + row("b", "08:00:01", "", "", "odd"), "utf-8", newline="")
    (tmp_path / "p.toml").write_text(CSV)
    found = imports.import_jobs([first, second], str(tmp_path / "p.toml"), tmp_path / "book")
    assert list(jobs(tmp_path / "book")) == ["a"]
    assert [(one.file, one.line) for one in found.unreadable] == [("2.csv", 2), ("2.csv", 3)]


def test_ids_keep_their_zeros_and_their_digits(tmp_path: Path) -> None:
    ids = ["007", "1.50", "12345678901234567890123", "NA", "1e5"]
    text = HEAD + "".join(row(one, "08:00:00", "", "", "queued") for one in ids)
    imported(tmp_path, text, CSV)
    assert list(jobs(tmp_path / "book")) == ids


def test_questions_by_window_know_the_same_waits_as_the_models(tmp_path: Path) -> None:
    text = EVENT_HEAD + (
        "a,submit,2024-05-01T08:00:00Z\na,start,2024-05-01T08:00:02Z\n"
        "b,start,2024-05-01T08:00:00Z\nb,end,2024-05-01T08:00:09Z\n"
    )
    imported(tmp_path, text, EVENTS)
    with ops.open(tmp_path / "book") as warehouse:
        found = ops.latency(warehouse).row(0, named=True)
    assert (found["n"], found["open"], found["wait_mean_s"], found["wait_max_s"]) == (
        1,
        1,
        2.0,
        2.0,
    )
    assert (found["run_mean_s"], found["total_mean_s"]) == (9.0, None)
    assert waits(tmp_path / "book") == {"a": (2.0, None), "b": (None, 9.0)}


def test_an_imported_log_can_be_asked_as_of_an_instant(tmp_path: Path) -> None:
    text = HEAD + row("a", "08:00:00", "08:00:05", "08:00:09", "ok")
    text += row("b", "08:00:07", "08:00:20", "08:00:30", "bad")
    imported(tmp_path, text, CSV)
    with ops.open(tmp_path / "book") as warehouse, warehouse.as_of(f"{DAY}08:00:08Z") as past:
        found = past.sql("select job_id, status from jobs order by 1").fetchall()
    assert found == [("a", "leased"), ("b", "pending")]
