"""Many nodes as one warehouse: the answers of one book, each node by itself, no node in the way."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from ops_fleets import NODES, fleet, nodes, same_answers, whole
from ops_logs import Log, text
from test_compact import worked

from tallybook import ops
from tallybook.cli import main
from tallybook.errors import BadInput
from tallybook.ops import imports
from tallybook.ops.compacting import compact

__all__ = ["nodes", "whole"]
SAMPLES = Path(__file__).parents[1] / "imports" / "samples"


def test_fifty_books_give_the_answers_of_one_with_the_same_events(whole: Path, nodes: Path) -> None:
    with ops.open(whole) as one, fleet(nodes) as many:
        same_answers(one, many)
        assert many.notes == [] and many.nodes()["status"].unique().to_list() == ["whole"]


def test_each_node_can_be_asked_by_itself_and_in_one_table(nodes: Path) -> None:
    with fleet(nodes) as many, ops.open(nodes / "node=n07") as one:
        (together,) = many.sql("select count(*) from jobs where node_id = 'n07'").fetchall()
        assert together == one.sql("select count(*) from jobs").fetchall()[0]
        by_node = ops.latency(many, by="node")
        assert by_node.height == NODES and by_node["n"].sum() == ops.latency(many)["n"].item()
    with fleet(nodes, nodes="n0[0-2]") as some:
        assert some.nodes()["node_id"].to_list() == ["n00", "n01", "n02"]
    with fleet([nodes / "node=n01", nodes / "node=n02"]) as two:
        assert two.nodes()["node_id"].to_list() == ["n01", "n02"]


def test_a_node_that_is_torn_empty_newer_copied_or_no_book_takes_no_other_with_it(
    nodes: Path, tmp_path: Path
) -> None:
    root = tmp_path / "fleet"
    shutil.copytree(nodes / "node=n01", root / "node=whole")
    shutil.copytree(nodes / "node=n02", root / "node=torn")
    shutil.copytree(nodes / "node=n03", root / "node=spoiled")
    shutil.copytree(nodes / "node=n04", root / "node=holed")
    shutil.copytree(nodes / "node=n01", root / "node=xcopy")
    for name in ("node=empty/log", "node=other"):
        (root / name).mkdir(parents=True)
    paths = {name: next((root / f"node={name}/log").iterdir())
             for name in ("torn", "spoiled", "holed")}  # fmt: skip
    with paths["torn"].open("ab") as file:
        file.write(b'{"v":1,"se')
    lines = paths["spoiled"].read_bytes().splitlines(keepends=True)
    paths["spoiled"].write_bytes(b"".join([*lines[:2], b"gibberish\n", *lines[2:]]))
    lines = paths["holed"].read_bytes().splitlines(keepends=True)
    paths["holed"].write_bytes(b"".join([*lines[:2], *lines[3:]]))
    newer = Log(root / "node=newer", "ee" * 16)
    newer.raw(b'{"v":2,"seq":2,"event":"job.enqueued","occurred_at":"2026-11-29T10:00:00Z"}\n')
    with fleet(root) as many:
        found = dict(many.nodes().select("node_id", "status").iter_rows())
        notes = " | ".join(many.notes)
        warnings = " | ".join(many.warnings)
        assert many.sql("select count(*) from jobs where node_id = 'whole'").fetchall()[0][0] > 0
    assert found == {
        "empty": "empty", "holed": "incomplete", "newer": "incomplete",
        "other": "no book", "spoiled": "incomplete", "torn": "whole", "whole": "whole",
        "xcopy": "copy",
    }  # fmt: skip
    assert "node spoiled:" in notes and "node newer:" in notes and "node other: no book" in notes
    assert "has no events 3 to 3" in notes
    assert (
        "of node whole too: it is read once" in warnings
        and "1 node without an event: empty" in warnings
    )
    assert "ends in a torn line" in warnings


def test_an_imported_log_is_a_node_like_any_other(nodes: Path, tmp_path: Path) -> None:
    shutil.copytree(nodes / "node=n01", tmp_path / "node=queue")
    for name in ("a", "b"):
        imports.import_jobs([SAMPLES / "slurm.txt"], "slurm", tmp_path / f"node={name}")
    with fleet(tmp_path) as many:
        found = many.sql("select node_id, count(*) from jobs group by 1 order by 1").fetchall()
        assert found[:2] == [("a", 5), ("b", 5)] and found[2][0] == "queue"
        one = many.sql("select job_id from jobs where node_id = 'b' order by 1 limit 1").fetchall()
        assert one == [("b/101",)]


def test_clocks_that_differ_are_seen_where_a_correlation_id_crosses_nodes(tmp_path: Path) -> None:
    caller, called = Log(tmp_path / "node=a", "aa" * 16), Log(tmp_path / "node=b", "bb" * 16)
    for number in range(5):
        at, shift = 100.0 * number, -30.0
        caller.enqueued(f"a{number}", at, correlation_id=f"c{number}")
        caller.leased(f"a{number}", at + 1, correlation_id=f"c{number}")
        caller.ended("job.done", f"a{number}", at + 1, at + 3, correlation_id=f"c{number}")
        called.enqueued(f"b{number}", at + 2 + shift, correlation_id=f"c{number}")
        called.leased(f"b{number}", at + 4 + shift, correlation_id=f"c{number}")
        called.ended("job.done", f"b{number}", at + 4 + shift, at + 9 + shift,
                     correlation_id=f"c{number}")  # fmt: skip
    with fleet(tmp_path) as many:
        found = many.clock_skew().row(0, named=True)
    assert (found["node_id"], found["other_id"], found["shared"]) == ("b", "a", 5) or (
        found["node_id"], found["other_id"], found["shared"]) == ("a", "b", 5)  # fmt: skip
    assert 20 < abs(found["skew_s"]) <= 30


def test_commands_take_a_fleet_and_say_what_only_a_node_can_tell(
    nodes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("node=n06", "node=n07"):
        shutil.copytree(nodes / name, tmp_path / name)
    asked = ["analyze", "latency", "--by", "node", "--json", "--book", str(tmp_path)]
    assert main.main(asked) == 0
    groups = json.loads(capsys.readouterr().out)["groups"]
    assert [group["node"] for group in groups] == ["n06", "n07"]
    assert main.main(["trace", "0193-000007", "--book", str(tmp_path)]) == 0
    assert "job.enqueued" in capsys.readouterr().out
    assert main.main(["analyze", "settings", "--book", str(tmp_path)]) == 0
    assert "a fleet has no settings" in capsys.readouterr().out
    with fleet(tmp_path) as many:
        (found,) = ops.findings.cache_rebuild(many)
        assert found.title == "A fleet has no state.db: compare the cache of one node"


def test_what_is_no_fleet_is_refused(nodes: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no book at"):
        ops.open(tmp_path)
    with pytest.raises(BadInput, match="no node is named like 'x'"):
        ops.open(nodes, nodes="x")
    with pytest.raises(BadInput, match="two books are named"):
        ops.open([nodes / "node=n01", nodes / "node=n01"])


def test_a_fleet_as_of_a_time_is_each_node_up_to_then_by_its_own_clock(
    whole: Path, nodes: Path, tmp_path: Path
) -> None:
    moment = text(5)
    query = "select job_id, status, attempt_count from jobs order by job_id"
    with ops.open(whole, as_of=moment) as one, fleet(nodes, as_of=moment) as past:
        then = one.sql(query).fetchall()
        assert then == past.sql(query).fetchall() and 20 < len(then) < 180
    with pytest.raises(BadInput, match="a place in the log of one node"):
        fleet(nodes, nodes="n01", as_of="00000001:3")
    late = Log(tmp_path / "node=late", "aa" * 16)
    late.enqueued("a", 100)
    late.event("topic.paused", 50, topic="t")
    Log(tmp_path / "node=early", "bb" * 16).enqueued("b", 10)
    with fleet(tmp_path, as_of=text(60)) as past:
        assert past.sql("select node_id, seq from events order by 1, 2").fetchall() == [
            ("early", 1), ("early", 2), ("late", 1)]  # fmt: skip
        assert past.sql("select job_id from jobs").fetchall() == [("b",)]


def test_the_archive_of_a_node_lies_beside_its_log_and_is_read_in_its_place(tmp_path: Path) -> None:
    node = worked(tmp_path / "node=a")
    Log(tmp_path / "node=c", "cc" * 16).enqueued("c", 5)
    query = "select * from events where node_id <> 'c' order by seq"
    with fleet(tmp_path) as raw:
        told = raw.sql(query).fetchall()
    compact(node.root, node.root)
    segments = node.segments()
    segments[1].write_bytes(b"not looked at any more")
    with fleet(tmp_path) as many:
        assert len(many._archive_files) == len(segments) - 1
        assert many.sql(query).fetchall() == told
        assert many.notes == [] and many.nodes()["status"].to_list() == ["whole", "whole"]


def test_an_older_node_a_torn_and_an_empty_one_are_read_as_far_as_they_go(tmp_path: Path) -> None:
    older = Log(tmp_path / "node=older", "aa" * 16)
    for name, fields in (
        ("job.enqueued", {"topic": "t", "payload": {}}),
        ("job.leased", {"worker": "w", "lease_token": 1, "locked_until": text(70)}),
        ("job.done", {"worker": "w", "lease_token": 1}),
    ):
        older.event(name, 10, job_id="a", **fields)
    first = older.path.read_bytes().replace(b',"versions":{"tallybook":"0.1.0"}', b"")
    older.path.write_bytes(first)
    torn = Log(tmp_path / "node=torn", "bb" * 16)
    torn.enqueued("b", 10)
    torn.raw(b'{"v":1,"seq":3,"ev')
    (tmp_path / "node=empty" / "log").mkdir(parents=True)
    (tmp_path / "node=empty" / "log" / "cccccccc-000000000001.ndjson").touch()
    with fleet(tmp_path) as many:
        assert many.sql("select job_id, status from jobs order by 1").fetchall() == [
            ("a", "done"), ("b", "pending")]  # fmt: skip
        found = dict(many.nodes().select("node_id", "status").iter_rows())
        assert found == {"empty": "empty", "older": "whole", "torn": "whole"}
        assert many.notes == [] and "ends in a torn line" in " | ".join(many.warnings)
        assert ops.latency(many, by="node")["n"].to_list() == [1, 0]
