"""Many nodes as one warehouse: the answers of one book, each node by itself, no node in the way."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from ops_logs import Log, Simulation, text
from polars.testing import assert_frame_equal
from pyarrow import fs

from tallybook import ops
from tallybook.cli import main
from tallybook.errors import BadInput
from tallybook.ops import imports
from tallybook.ops.fleet import Fleet

NODES = 50
SAMPLES = Path(__file__).parents[1] / "imports" / "samples"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One book with the events of all nodes."""
    root = tmp_path_factory.mktemp("fleet") / "whole"
    Simulation(root, seed=1, jobs=200).run()
    return root


@pytest.fixture(scope="module")
def nodes(whole: Path) -> Path:
    """The same events, those of each job on one of fifty nodes."""
    root = whole.parent / "nodes"
    logs: dict[int, Log] = {}
    lines = [json.loads(line) for path in (whole / "log").iterdir() for line in path.open()]
    for line in lines:
        if job := line.get("job_id"):
            number = int(job[-6:]) % NODES
            if number not in logs:
                writer = f"{number:08x}" + "0" * 24
                logs[number] = Log(root / f"node=n{number:02}", writer)
            log = logs[number]
            log.seq += 1
            log.raw(json.dumps(line | {"seq": log.seq}).encode() + b"\n")
    return root


def fleet(root: Any, **options: Any) -> Fleet:
    found = ops.open(root, **options)
    assert isinstance(found, Fleet)
    return found


def same_answers(one: ops.Warehouse, many: ops.Warehouse) -> None:
    span = ops.Span(since=text(0), until=text(3600), every="1m")
    for question in (ops.throughput, ops.latency, ops.outcomes):
        asked = [
            question(w, span).drop("example_job_id", "example_error", strict=False)
            for w in (one, many)
        ]
        assert_frame_equal(*asked, check_row_order="window_start" in asked[0].columns)
    assert_frame_equal(ops.latency(one, by="topic"), ops.latency(many, by="topic"))
    for detector in (ops.dead, ops.retried, ops.answer_lost, ops.late_settles, ops.stuck_leases):
        ours, theirs = (detector(w).drop("evidence", "command", strict=False) for w in (one, many))
        assert ours.height and set(ours.columns) == set(theirs.columns)
        key = [name for name in ("job_id", "lease_token") if name in ours.columns]
        assert_frame_equal(ours.sort(key), theirs.select(ours.columns).sort(key))
    cached = [ops.cache_as_of(w).select("key", "value").sort("key") for w in (one, many)]
    assert_frame_equal(*cached)


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


def test_what_is_no_fleet_is_refused_and_a_fleet_has_no_past(nodes: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no book at"):
        ops.open(tmp_path)
    with pytest.raises(BadInput, match="no node is named like 'x'"):
        ops.open(nodes, nodes="x")
    with pytest.raises(BadInput, match="two books are named"):
        ops.open([nodes / "node=n01", nodes / "node=n01"])
    with (
        fleet(nodes, nodes="n01") as one,
        pytest.raises(BadInput, match="no one order of its events"),
    ):
        one.as_of(text(5))


# buckets


@pytest.fixture(scope="module")
def storage() -> Iterator[dict[str, Any]]:
    """A server that speaks S3, and how to reach it."""
    server = pytest.importorskip("moto.server")
    threaded = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    threaded.start()
    host, port = threaded.get_host_and_port()
    yield {"endpoint_override": f"{host}:{port}", "scheme": "http", "access_key": "key",
           "secret_key": "secret", "region": "us-east-1"}  # fmt: skip
    threaded.stop()


@pytest.fixture(scope="module")
def bucket(storage: dict[str, Any], nodes: Path) -> str:
    """Six of the nodes and an imported log in a bucket."""
    store = fs.S3FileSystem(**storage, allow_bucket_creation=True)
    store.create_dir("fleet")
    imports.import_jobs([SAMPLES / "slurm.txt"], "slurm", nodes.parent / "more" / "node=cluster")
    for root in [*sorted(nodes.glob("node=n0[0-5]")), nodes.parent / "more" / "node=cluster"]:
        for path in (root / "log").iterdir():
            with store.open_output_stream(f"fleet/2026/{root.name}/log/{path.name}") as out:
                out.write(path.read_bytes())
    return "s3://fleet/2026"


def test_a_bucket_gives_the_answers_of_the_folder(
    bucket: str, storage: dict[str, Any], nodes: Path
) -> None:
    with fleet(bucket, storage=storage, nodes="n*") as far, fleet(nodes, nodes="n0[0-5]") as near:
        assert_frame_equal(ops.latency(far, by="node"), ops.latency(near, by="node"))
        assert_frame_equal(far.nodes(), near.nodes())
        assert far.notes == []


def test_of_a_bucket_only_what_is_asked_for_is_fetched(
    bucket: str, storage: dict[str, Any]
) -> None:
    with (
        fleet(bucket, storage=storage) as all_of_it,
        fleet(bucket, storage=storage, nodes="n01") as one,
    ):
        assert one._bucket.fetched * 3 < all_of_it._bucket.fetched
        assert "1 node of 7" in one.warnings[0]
        query = "select count(*), count(distinct job_id) from events where node_id = 'cluster'"
        assert all_of_it.sql(query).fetchall() == [(11, 5)]
        assert not list(all_of_it._bucket.aside.rglob("*.parquet"))


def test_segments_outside_the_asked_time_stay_in_the_bucket_and_that_is_said(
    storage: dict[str, Any], tmp_path: Path
) -> None:
    log = Log(tmp_path / "node=a", "cc" * 16)
    for hour in range(4):
        if hour:
            log.open_segment(3600.0 * hour)
        log.enqueued(f"job-{hour}", 3600.0 * hour + 60)
    store = fs.S3FileSystem(**storage, allow_bucket_creation=True)
    store.create_dir("hours")
    for path in (tmp_path / "node=a" / "log").iterdir():
        with store.open_output_stream(f"hours/node=a/log/{path.name}") as out:
            out.write(path.read_bytes())
    asked = {"since": text(3700), "until": text(7300), "storage": storage}
    with fleet("s3://hours", **asked) as some:
        assert some.sql("select job_id from jobs order by 1").fetchall() == [("job-1",), ("job-2",)]
        assert some.notes == []
        assert any("events 1 to 2" in one for one in some.warnings)


def test_a_bucket_that_is_not_there_or_may_not_be_read_is_named(storage: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="s3://nowhere/x: there is no such bucket"):
        ops.open("s3://nowhere/x", storage=storage)
    with pytest.raises(BadInput, match="s3://hours-empty"):
        ops.open("s3://hours-empty", storage=storage | {"scheme": "ftp"})


class Denied(BaseHTTPRequestHandler):
    """A store that lets nobody in."""

    def do_GET(self) -> None:
        body = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
        self.send_response(403)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815 - the name that the server calls

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""


def test_a_bucket_without_rights_says_what_right_is_missing(storage: dict[str, Any]) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Denied) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        there = storage | {"endpoint_override": f"127.0.0.1:{server.server_port}"}
        with pytest.raises(BadInput, match="s3://fleet/x: these credentials have no right to it"):
            ops.open("s3://fleet/x", storage=there)
        server.shutdown()
