"""The command line: what a person types, and what a mistake gets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from core_steps import segments

from tallybook import Book, settings
from tallybook.cli.main import main
from tallybook.errors import BadInput


def run(cwd: Path, *words: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run ``tallybook`` in a folder."""
    env = {name: value for name, value in os.environ.items() if name != "TALLYBOOK_BOOK"}
    command = [sys.executable, "-m", "tallybook", *words]
    return subprocess.run(
        command, cwd=cwd, env=env, input=stdin, capture_output=True, text=True, timeout=60
    )


def answer(done: subprocess.CompletedProcess[str]) -> dict[str, object]:
    """The one JSON object of an answer."""
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def test_one_job_is_enqueued_shown_and_traced(tmp_path: Path) -> None:
    made = answer(run(tmp_path, "enqueue", "a", '{"id": "007"}', "--key", "k", "--json"))
    again = answer(run(tmp_path, "enqueue", "a", '{"id": "007"}', "--key", "k", "--json"))
    assert (made["enqueued"], again["enqueued"], again["deduplicated"]) == (1, 0, 1)
    assert made["job_ids"] == again["job_ids"]
    (job_id,) = made["job_ids"]  # type: ignore[misc] # a list in the JSON
    shown = answer(run(tmp_path, "jobs", "show", job_id, "--json"))
    assert (shown["payload"], shown["status"]) == ({"id": "007"}, "pending")
    traced = answer(run(tmp_path, "trace", "k", "--json"))["events"]
    assert isinstance(traced, list)
    assert [event["event"] for event in traced] == ["job.enqueued", "job.deduplicated"]


def test_a_new_book_at_a_place_that_was_named_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TALLYBOOK_BOOK", str(tmp_path / "bok"))
    told = f"tallybook: made a new book at {tmp_path / 'bok'}\n"
    assert main(["enqueue", "a", "1"]) == 0
    assert capsys.readouterr().err == told
    assert main(["enqueue", "a", "1"]) == 0
    assert capsys.readouterr().err == ""


def test_many_jobs_come_as_lines_on_standard_input(tmp_path: Path) -> None:
    lines = "".join(
        json.dumps({"topic": "a", "payload": n, "idempotency_key": f"k{n}", "priority": n}) + "\n"
        for n in range(20)
    )
    made = answer(run(tmp_path, "enqueue", "-", "--json", stdin=lines))
    assert made["enqueued"] == 20
    status = answer(run(tmp_path, "status", "--json"))
    assert status["jobs"] == {"a": {"pending": 20}}


def test_a_bad_line_is_named_and_nothing_of_its_thousand_is_taken(tmp_path: Path) -> None:
    lines = '{"topic":"a","payload":1}\n{"topic":"a","payload":2\n{"topic":"a","payload":3}\n'
    done = run(tmp_path, "enqueue", "-", stdin=lines)
    assert done.returncode == 2
    assert "standard input line 2: the line is not JSON" in done.stderr
    assert "0 jobs of the lines before are on disk" in done.stderr
    assert answer(run(tmp_path, "status", "--json"))["jobs"] == {}


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["nonsense"], 2, "invalid choice"),
        (["status", "--nope"], 2, "see 'tallybook status --help'"),
        (["status", "--book", "nowhere"], 2, "no book at nowhere: there is nothing"),
        (["status", "--book", "empty"], 2, "that folder has no log/"),
        (["log", "verify", "--book", "file"], 2, "that path is a file"),
        (["rebuild", "--book", "nowhere"], 2, "no book at nowhere"),
        (["enqueue", "a"], 2, "give the payload"),
        (["enqueue", "a", "{"], 2, "PAYLOAD is not JSON"),
        (["enqueue", "a b", "1"], 2, "topic 'a b'"),
        (["enqueue", "a", "1", "--key", "k" * 10_000], 2, "idempotency key: 10000 bytes"),
        (["enqueue", "a", "1", "--delay", "-1"], 2, "delay -1 s"),
        (["enqueue", "a", "9007199254740993"], 2, "over 2^53"),
        (["enqueue", "a", "NaN"], 2, "no JSON number"),
        (["worker", "no_such_module"], 2, "no module 'no_such_module'"),
        (["worker", "json"], 2, "registers no handler"),
        (["jobs", "show", "nobody", "--book", "good"], 2, "no job nobody"),
        (["jobs", "list", "--limit", "0", "--book", "good"], 2, "--limit 0"),
        (["trace", "nobody", "--book", "good"], 2, "no event"),
    ],
)
def test_a_mistake_gets_one_clear_line_and_no_traceback(
    tmp_path: Path, words: list[str], code: int, told: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    with Book.open(tmp_path / "good") as book:
        book.enqueue("a", 1)
    done = run(tmp_path, *words)
    assert done.returncode == code
    assert told in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_a_wrong_setting_is_named_with_the_nearest_right_one(tmp_path: Path) -> None:
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "book.toml").write_text("[log]\nlock_wait = 3\n")
    done = run(tmp_path, "enqueue", "a", "1")
    assert done.returncode == 2
    assert "[log] lock_wait: no such setting; did you mean lock_wait_s?" in done.stderr


def test_a_topic_with_dots_that_is_not_quoted_is_told_to_be(tmp_path: Path) -> None:
    path = tmp_path / "book.toml"
    path.write_text("[topics.orders.sync]\nmax_pending = 3\n")
    with pytest.raises(BadInput, match=r'as in \[topics\."orders\.sync"\]'):
        settings.load(path)


def test_a_torn_tail_costs_one_warning_and_nothing_else(tmp_path: Path) -> None:
    run(tmp_path, "enqueue", "a", "1")
    (segment,) = segments(tmp_path / "book")
    with segment.open("ab") as file:
        file.write(b'{"v":1,"se')
    assert answer(run(tmp_path, "log", "verify", "--json"))["complete"] is True
    done = run(tmp_path, "enqueue", "a", "2")
    assert done.returncode == 0
    assert done.stderr.count("\n") == 1
    assert "cut a torn tail of 10 bytes" in done.stderr


def test_a_torn_line_in_the_middle_is_exit_4_wherever_it_matters(tmp_path: Path) -> None:
    for number in range(4):
        run(tmp_path, "enqueue", "a", str(number))
    (segment,) = segments(tmp_path / "book")
    lines = segment.read_bytes().splitlines(keepends=True)
    segment.write_bytes(b"".join([lines[0], lines[1], lines[2][:50], *lines[3:]]))
    for command in (["log", "verify"], ["trace", "x"], ["rebuild"]):
        done = run(tmp_path, *command)
        assert done.returncode == 4, command
        assert "Traceback" not in done.stderr
    assert run(tmp_path, "enqueue", "a", "9").returncode == 0


def test_status_check_is_1_where_there_is_an_alert(tmp_path: Path) -> None:
    run(tmp_path, "enqueue", "a", "1")
    assert run(tmp_path, "status", "--check").returncode == 0
    with Book.open(tmp_path / "book") as book:
        job = book.claim("w", lease_s=0.001)
        assert job is not None
    done = run(tmp_path, "status", "--check")
    assert done.returncode == 1
    assert "1 lease ran out" in done.stdout
    assert run(tmp_path, "status").returncode == 0


def test_rebuild_gives_the_shape_that_scripts_rely_on(tmp_path: Path) -> None:
    run(tmp_path, "enqueue", "a", "1")
    (tmp_path / "book" / "state.db").unlink()
    rebuilt = answer(run(tmp_path, "rebuild", "--json"))
    counts = {name: rebuilt[name] for name in ("keys", "jobs", "gaps", "quarantined")}
    assert counts == {"keys": 0, "jobs": 1, "gaps": 0, "quarantined": 0}
    assert {"events_read", "unknown_keys", "parity"} <= set(rebuilt)


def test_control_characters_of_a_payload_cannot_steer_a_terminal(tmp_path: Path) -> None:
    run(tmp_path, "enqueue", "a", '{"x": "\\u001b[2J"}')
    (job,) = answer(run(tmp_path, "jobs", "list", "--json"))["jobs"]  # type: ignore[misc] # a list
    assert "\x1b" not in run(tmp_path, "jobs", "show", job["job_id"]).stdout
