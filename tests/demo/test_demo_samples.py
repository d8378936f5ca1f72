"""The sample book: recorded by a real run, and of no machine in particular."""

from __future__ import annotations

import getpass
import json
import re
import socket
from hashlib import blake2b
from pathlib import Path

import pytest

from tallybook import ops
from tallybook.demo import record
from tallybook.demo.exports import CSV_NAME, NDJSON_NAME
from tallybook.demo.tally import KINDS, tally
from tallybook.layout import Layout, carried
from tallybook.ops import findings

SAMPLES = carried("data-samples")
BOOK = Layout(SAMPLES / "book")
PLACES = rb"(?<![\w.:-])/(home|root|tmp|usr|opt|var|etc|srv|mnt|work|Users|private|Library)/"


def contents() -> dict[str, bytes]:
    files = sorted(path for path in SAMPLES.rglob("*") if path.is_file())
    return {str(path.relative_to(SAMPLES)): path.read_bytes() for path in files}


def test_the_sample_names_no_place_of_the_machine_that_recorded_it():
    for name, content in contents().items():
        assert not re.search(PLACES, content), name


def test_the_sample_names_no_host_and_no_user():
    for name, content in contents().items():
        for word in {socket.gethostname(), socket.gethostname().split(".")[0], getpass.getuser()}:
            assert not re.search(rb"\b" + re.escape(word.encode()) + rb"\b", content), (name, word)


def test_every_host_node_and_worker_of_the_sample_has_its_fixed_name():
    events = [json.loads(line) for path in BOOK.segments() for line in path.open(encoding="utf-8")]
    assert {event["host"] for event in events if "host" in event} == {record.NODE}
    assert {event["node_id"] for event in events if "node_id" in event} == {record.NODE}
    workers = {event["worker"] for event in events if "worker" in event}
    assert workers == {"worker-1", "worker-2", "replacement", "killed", "stopped"}
    assert not json.loads(BOOK.writer.read_text())["machine"]


def test_what_was_planted_is_what_is_found_in_the_sample_by_either_export():
    before = {name: blake2b(content).digest() for name, content in contents().items()}
    planted = json.loads((SAMPLES / "planted.json").read_text("utf-8"))
    for export in (CSV_NAME, NDJSON_NAME):
        with ops.open(BOOK.root) as warehouse:
            compared = ops.reconcile(warehouse, SAMPLES / "exports" / export, key="icao")
            found = [
                *findings.throughput_latency(warehouse),
                *findings.stuck_leases(warehouse),
                *findings.cache_rebuild(warehouse),
                *findings.reconcile(compared),
            ]
        rows = tally(planted, [(finding.kind, finding.ids) for finding in found])
        assert [row.difference() for row in rows if not row.holds] == []
    assert {name: blake2b(content).digest() for name, content in contents().items()} == before


def test_the_readme_of_the_sample_says_how_many_of_each_kind():
    planted = json.loads((SAMPLES / "planted.json").read_text("utf-8"))
    readme = (SAMPLES / "README.md").read_text("utf-8")
    assert all(f"| {kind} | {len(planted[kind]):,} |" in readme for kind in KINDS)


def test_the_sample_is_a_few_megabytes():
    assert sum(map(len, contents().values())) < 6_000_000


def test_recording_keeps_what_it_did_not_make(tmp_path, monkeypatch):
    from tallybook.demo.run import Outcome, Settings

    def run(settings: Settings, _progress: object) -> Outcome:
        record.Folder(settings.folder).exports.mkdir(parents=True)
        (settings.folder / "book" / "log").mkdir(parents=True)
        line = '{"occurred_at":"2026-11-29T22:48:20.123456Z"}\n'
        Layout(settings.folder / "book").segment("ab" * 16, 1).write_text(line)
        Layout(settings.folder / "book").writer.write_text('{"machine": "m", "writer": "w"}')
        (settings.folder / "planted.json").write_text("{}")
        return Outcome((), settings.folder / "report.html")

    monkeypatch.setattr(record.demo, "run", run)
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "old").touch()
    record.record(tmp_path)
    made = sorted(path.name for path in tmp_path.iterdir())
    assert made == ["README.md", "book", "exports", "mine.txt", "planted.json"]
    assert not (tmp_path / "book" / "old").exists()
    assert json.loads(Layout(tmp_path / "book").writer.read_text())["machine"] == ""


def test_nothing_is_recorded_when_the_columns_differ(tmp_path, monkeypatch):
    from tallybook.demo.run import Outcome
    from tallybook.errors import TallybookError

    differs = Outcome(tally({}, []), Path("report.html"))
    monkeypatch.setattr(record.demo, "run", lambda *_: differs)
    with pytest.raises(TallybookError, match="nothing was recorded"):
        record.record(tmp_path / "samples")
    assert not (tmp_path / "samples").exists()
