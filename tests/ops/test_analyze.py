"""``tallybook analyze``: each question as JSON and as tables, with the exit code that it means."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ops_logs import Log, text

from tallybook.cli.main import main

Ask = Callable[..., tuple[int, str]]
ACTIONS = ("throughput", "latency", "leases", "backlog", "double-runs", "settings")


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """Three jobs of two topics that were done in time."""
    log = Log(tmp_path / "book")
    topics = dict(enumerate("aab"))
    for second in range(6):
        for number, topic in topics.items():
            name = f"j{number}"
            if second == number:
                log.enqueued(name, second, topic)
            elif second == number + 1:
                log.leased(name, second, topic=topic)
            elif second == number + 3:
                log.ended("job.done", name, number + 1, second, topic=topic)
    return tmp_path / "book"


@pytest.fixture
def ask(book: Path, capsys: pytest.CaptureFixture[str]) -> Ask:
    def asked(*words: str) -> tuple[int, str]:
        code = main(["analyze", *words, "--book", str(book)])
        told = capsys.readouterr()
        return code, told.out or told.err

    return asked


def answered(ask: Ask, *words: str) -> tuple[int, dict[str, Any]]:
    code, told = ask(*words, "--json")
    return code, json.loads(told)


def trouble(book: Path) -> None:
    """A job whose lease ran out, and whose two runs overlapped."""
    log = Log(book, "0191bbbb" + "0" * 24, 10)
    log.enqueued("k", 10)
    log.leased("k", 10)
    log.expired("k", 70)
    log.leased("k", 71, "w2", 2)
    log.refused("k", 11, 75)
    log.ended("job.done", "k", 72, 80, "w2", 2)


def test_latency_has_the_shape_that_scripts_rely_on(ask: Ask) -> None:
    code, told = answered(ask, "latency", "--by", "topic")
    assert code == 0 and told["complete"] is True
    first, second = told["groups"]
    assert (first["topic"], first["n"], first["open"]) == ("a", 2, 0)
    assert first["run_s"] == {
        "mean": 2, "p50": 2, "p90": 2, "p95": 2, "p99": 2, "max": 2, "negative": 0,
    }  # fmt: skip
    assert second["wait_s"]["p50"] == 1 and second["total_s"]["max"] == 3
    assert "window_start" not in first


def test_throughput_has_a_group_a_window_with_its_zone(ask: Ask) -> None:
    code, told = answered(ask, "throughput", "--every", "2s", "--zone", "Asia/Tokyo")
    assert code == 0 and [group["arrivals"] for group in told["groups"]] == [2, 1, 0]
    assert told["groups"][0]["window_start"] == "2026-11-29T19:00:00+09:00"
    assert [group["n"] for group in told["groups"]] == [0, 1, 2]


def test_a_span_bounds_what_is_answered(ask: Ask) -> None:
    _, told = answered(ask, "throughput", "--since", text(1), "--until", text(2), "--every", "1m")
    assert [group["arrivals"] for group in told["groups"]] == [1]


def test_a_clean_book_exits_with_0_and_says_so(ask: Ask) -> None:
    for action in ACTIONS:
        assert ask(action)[0] == 0, action
    assert ask("leases")[1] == "no lease is open, and each ended as it should\n"
    assert ask("double-runs")[1] == "no two runs of a job overlapped\n"
    assert ask("backlog")[1].endswith("nothing is pending\n")


def test_leases_double_runs_and_settings_that_are_wrong_exit_with_1(book: Path, ask: Ask) -> None:
    trouble(book)
    code, told = answered(ask, "leases")
    assert code == 1 and {row["status"] for row in told["leases"]} == {"hung", "double run"}
    assert told["groups"] == [
        {"status": "double run", "leases": 1},
        {"status": "hung", "leases": 1},
    ]
    code, told = answered(ask, "double-runs")
    assert code == 1 and told["groups"][0]["overlap_s"] == 3
    code, told = answered(ask, "settings")
    assert code == 1 and "unsafe" in {row["verdict"] for row in told["groups"]}
    assert ask("latency")[0] == ask("throughput")[0] == ask("backlog")[0] == 0
    code, table = ask("leases")
    assert code == 1 and "tallybook trace k --book" in table


def test_a_lease_that_is_held_is_no_finding(book: Path, ask: Ask) -> None:
    log = Log(book, "0191bbbb" + "0" * 24, 10)
    log.enqueued("k", 10)
    log.leased("k", 10)
    code, told = answered(ask, "leases", "--by", "worker")
    assert code == 0 and [row["status"] for row in told["leases"]] == ["held"]
    assert told["groups"] == [{"worker": "w1", "leases": 1}]


def test_an_incomplete_log_exits_with_4_and_answers_what_is_there(book: Path, ask: Ask) -> None:
    trouble(book)
    (segment,) = (book / "log").glob("0190aaaa*")
    segment.write_bytes(segment.read_bytes() + b"{torn\n" + segment.read_bytes()[-200:])
    for action in ACTIONS:
        code, told = answered(ask, action)
        assert code == 4 and told["complete"] is False and "cannot be read" in told["warnings"][0]
    assert "note: " in ask("leases")[1]


def test_a_backlog_tells_its_depth_over_time_and_advice_with_numbers(book: Path, ask: Ask) -> None:
    Log(book, "0191bbbb" + "0" * 24, 10).enqueued("k", 10, "b")
    code, told = answered(ask, "backlog", "--every", "5s")
    assert code == 0 and [row["pending"] for row in told["depth"]] == [0, 0, 1]
    assert [row["topic"] for row in told["groups"]] == [None, "a", "b"]
    (advice,) = told["advice"]
    assert advice["kind"] == "drains" and advice["numbers"]["pending"] == 1
    assert ask("backlog")[1].endswith(
        "drains, all topics: 1 job pending, gone in 10.0 s (1.3 s to never)\n"
    )


def test_two_periods_are_compared_by_group(ask: Ask) -> None:
    period = f"{text(0)}/{text(2)}"
    code, told = answered(ask, "latency", "--against", period, "--since", text(2), "--by", "topic")
    rates = {g["topic"]: g for g in told["groups"] if g["measure"] == "jobs_per_s"}
    assert code == 0 and (rates["a"]["before"], rates["a"]["after"]) == (1, 0)
    assert rates["b"]["n_after"] == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--zone", "Europe/Berln"), "did you mean Europe/Berlin?"),
        (("--since", "2026-11-30", "--until", "2026-11-29"), "is not before until"),
        (("--every", "0"), "no window of '0'"),
        (("--every", "1ms", "--since", "2020-01-01"), "more than 10,000 windows"),
        (("--since", "yesterday"), "no time 'yesterday'"),
        (("--as-of", "yesterday"), "no time 'yesterday'"),
        (("--against", "2026-11-28"), "write two times"),
        (("--by", "host"), "invalid choice: 'host'"),
    ],
)
def test_an_option_that_cannot_be_is_refused_in_one_line(
    ask: Ask, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    try:
        code, told = ask("latency", *words)
    except SystemExit as stopped:
        code, told = int(stopped.code or 0), capsys.readouterr().err
    assert code == 2 and said in told and told.count("\n") == 1


def test_an_answer_as_of_an_instant_knows_nothing_after_it(book: Path, ask: Ask) -> None:
    trouble(book)
    code, told = answered(ask, "latency", "--as-of", text(2.5))
    assert (code, told["groups"][0]["n"], told["groups"][0]["open"]) == (0, 0, 3)
    code, told = answered(ask, "leases", "--as-of", text(60))
    assert code == 0 and [row["status"] for row in told["leases"]] == ["held"]
    code, told = answered(ask, "latency", "--as-of", "2026-11-29T10:00")
    assert code == 0 and told["groups"][0]["n"] == 0
    code, told = answered(ask, "leases", "--as-of", "0191bbbb:3")
    assert code == 0 and [row["status"] for row in told["leases"]] == ["held"]


def test_as_of_now_a_lease_of_a_silent_log_is_over(book: Path, ask: Ask) -> None:
    log = Log(book, "0191bbbb" + "0" * 24, -(10**8))
    log.enqueued("k", -(10**8))
    log.leased("k", -(10**8))
    code, told = answered(ask, "leases", "--as-of", "now", "--since", "2000-01-01")
    assert code == 1 and told["leases"][0]["how"] == "overdue"
