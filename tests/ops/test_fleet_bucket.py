"""A fleet in a bucket: the answers of the folder, and no more fetched than a question needs."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from ops_fleets import NODES, fleet, nodes, same_answers, whole
from ops_logs import Log, text
from test_compact import worked

from tallybook import ops
from tallybook.errors import BadInput
from tallybook.ops import imports
from tallybook.ops.compacting import compact

__all__ = ["nodes", "whole"]
SAMPLES = Path(__file__).parents[1] / "imports" / "samples"


def laid(name: str, root: Path) -> str:
    """The bucket ``name`` with the logs and archives below ``root``, put there past the network."""
    from moto.core import DEFAULT_ACCOUNT_ID
    from moto.s3.models import s3_backends

    backend = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
    backend.create_bucket(name, "us-east-1")
    for path in root.glob("node=*/*/*"):
        if path.parent.name in ("log", "archive"):
            backend.put_object(name, f"2026/{path.relative_to(root)}", path.read_bytes())
    return f"s3://{name}/2026"


@pytest.fixture(scope="module")
def bucket(storage: dict[str, Any], nodes: Path) -> Iterator[str]:
    """All fifty nodes and an imported log in a bucket."""
    imports.import_jobs([SAMPLES / "slurm.txt"], "slurm", nodes / "node=cluster")
    yield laid("fleet", nodes)


def test_fifty_books_in_a_bucket_give_the_answers_of_one_with_the_same_events(
    bucket: str, storage: dict[str, Any], whole: Path
) -> None:
    with ops.open(whole) as one, fleet(bucket, storage=storage, nodes="n*") as many:
        same_answers(one, many)
        assert many.notes == [] and many.nodes()["status"].to_list() == ["whole"] * NODES


def test_of_a_bucket_only_what_is_asked_for_is_fetched(
    bucket: str, storage: dict[str, Any]
) -> None:
    with (
        fleet(bucket, storage=storage, nodes="c*") as imported,
        fleet(bucket, storage=storage, nodes="n0[0-5]") as some,
        fleet(bucket, storage=storage, nodes="n01") as one,
    ):
        assert one._bucket.fetched * 3 < some._bucket.fetched
        assert "1 node of 51" in one.warnings[0]
        query = "select count(*), count(distinct job_id) from events where node_id = 'cluster'"
        assert imported.sql(query).fetchall() == [(11, 5)]
        assert not list(imported._bucket.aside.rglob("*.parquet"))
        told = ops.findings.throughput_latency(one)
        assert all("--book s3://fleet/2026" in found.action for found in told if found.action)


def test_the_archive_of_a_node_in_a_bucket_is_read_by_ranges_and_its_segments_stay(
    storage: dict[str, Any], tmp_path: Path
) -> None:
    node = worked(tmp_path / "node=a")
    query = "select * exclude (position) from events order by seq"
    with fleet(tmp_path) as near:
        told = near.sql(query).fetchall()
    compact(node.root, node.root)
    with fleet(laid("archived", tmp_path), storage=storage) as far:
        assert far.sql(query).fetchall() == told and far.notes == []
        there = {path.name for path in far._bucket.aside.glob("node=a/log/*.ndjson*")}
        assert there == {path.name for path in node.segments() if path.suffix != ".zst"}
        with far.as_of(told[9][3]) as past:
            assert past.sql("select max(seq) from events").fetchall()[0][0] >= 10


def test_of_a_long_segment_only_the_lines_of_the_asked_time_are_fetched(
    storage: dict[str, Any], tmp_path: Path
) -> None:
    log = Log(tmp_path / "node=a", "dd" * 16)
    for second in range(6000):
        log.enqueued(f"job-{second}", float(second))
    asked = {"since": text(3000), "until": text(3060), "storage": storage}
    with fleet(laid("long", tmp_path), **asked) as some:
        found = [int(job[4:]) for (job,) in some.sql("select job_id from jobs").fetchall()]
        assert set(range(3000, 3060)) <= set(found) and len(found) < 1500
        assert some.notes == [] and some._bucket.fetched < log.path.stat().st_size * 0.7
        assert any(f"events 1 to {min(found) + 1} " in one for one in some.warnings)


def test_segments_outside_the_asked_time_stay_in_the_bucket_and_that_is_said(
    storage: dict[str, Any], tmp_path: Path
) -> None:
    log = Log(tmp_path / "node=a", "cc" * 16)
    for hour in range(4):
        if hour:
            log.open_segment(3600.0 * hour)
        log.enqueued(f"job-{hour}", 3600.0 * hour + 60)
    there = laid("hours", tmp_path)
    asked = {"since": text(3700), "until": text(7300), "storage": storage}
    with fleet(there, **asked) as some:
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
