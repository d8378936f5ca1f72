"""The cloud of the demo, spoken to over real HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tallybook.delivery import post
from tallybook.demo import faults
from tallybook.demo.airports import airports
from tallybook.demo.cloud import Cloud
from tallybook.demo.faults import Plan, plan
from tallybook.errors import Permanent, Retry
from tallybook.job import Job

AIRPORTS = {airport.icao: airport for airport in airports(100, 3)}
PLAN = plan(3, AIRPORTS, 0.4)
TOKEN = "t" * 8


def of_kind(kind: str, made: Plan = PLAN) -> str:
    return next(record for record, fault in sorted(made.first.items()) if fault.kind == kind)


def job(record: str, attempt: int = 1) -> Job:
    airport = AIRPORTS[record]
    return Job("j", "airports.sync", json.dumps(airport.row), "", airport.idempotency_key,
               attempt_count=attempt - 1, lease_token=1)  # fmt: skip


class Client:
    def __init__(self, cloud: Cloud) -> None:
        self.root = f"http://127.0.0.1:{cloud.server_address[1]}"

    def deliver(self, job: Job):
        return post(f"{self.root}/airports", job, timeout_s=PLAN.timeout_s)

    def admin(self, path: str, order: object = None, token: str = TOKEN):
        request = Request(f"{self.root}/admin/{path}", json.dumps(order or {}).encode())  # noqa: S310
        request.add_header("Authorization", f"Bearer {token}")
        with urlopen(request, timeout=10) as answer:  # noqa: S310
            return json.load(answer)


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Client]:
    with Cloud(tmp_path, PLAN, TOKEN) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield Client(server)
        server.shutdown()
        server.store.close()


def test_a_second_request_with_a_key_gets_the_stored_answer(cloud):
    first, second = cloud.deliver(job(PLAN.victims[0])), cloud.deliver(job(PLAN.victims[0]))
    assert (first.replayed, second.replayed) == (False, True)
    assert first.body == second.body
    assert cloud.admin("ledgers")["delivered_twice"] == [PLAN.victims[0]]


def test_a_key_with_another_body_is_refused(cloud):
    record, other = PLAN.victims
    cloud.deliver(job(record))
    with pytest.raises(Permanent) as caught:
        cloud.deliver(job(record)._replace(payload_json=json.dumps(AIRPORTS[other].row)))
    assert caught.value.http_status == 422


def test_a_lost_answer_was_committed_and_is_replayed_later(cloud):
    record = of_kind(faults.ANSWER_LOST)
    with pytest.raises(Retry) as caught:
        cloud.deliver(job(record))
    assert caught.value.error_type == "AnswerLost"
    assert cloud.admin("ledgers")["answer_lost"] == [record]
    assert cloud.deliver(job(record, 4)).replayed


@pytest.mark.parametrize(
    ("kind", "error_type", "after_s"),
    [(faults.UNAVAILABLE, "HTTP 503", None), (faults.TOO_MANY, "HTTP 429", 1.0)],
)
def test_a_request_turned_away_at_the_door_leaves_no_key(cloud, kind, error_type, after_s):
    record = of_kind(kind)
    with pytest.raises(Retry) as caught:
        cloud.deliver(job(record))
    assert (caught.value.error_type, caught.value.after_s) == (error_type, after_s)
    assert not cloud.deliver(job(record, 4)).replayed
    assert cloud.admin("ledgers")["retried"] == [record]


def test_a_retry_waits_for_the_slow_first_request_and_is_answered_by_it(cloud):
    record = of_kind(faults.TOO_SLOW)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(cloud.deliver, job(record))
        with pytest.raises(Retry) as caught:
            first.result()
        assert caught.value.error_type == "TimedOut"
        assert cloud.deliver(job(record, 2)).replayed
    assert cloud.admin("ledgers")["rebuilt"] == [record]


def test_a_refused_record_is_refused_each_time_and_has_no_row(cloud, tmp_path):
    record = of_kind(faults.REFUSED)
    for attempt in (1, 2):
        with pytest.raises(Permanent) as caught:
            cloud.deliver(job(record, attempt))
        assert (caught.value.http_status, caught.value.replayed) == (422, attempt == 2)
    assert cloud.admin("ledgers")["dead"] == [record]
    cloud.admin("export")
    assert (tmp_path / "exports" / "airports.ndjson").read_text() == ""


def test_many_requests_at_once_with_one_key_take_effect_once(cloud):
    record = PLAN.victims[1]
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(cloud.deliver, [job(record)] * 32))
    assert sorted(answer.replayed for answer in answers) == [False] + [True] * 31


def test_tampering_is_exported_and_kept_in_the_ledger(cloud, tmp_path):
    gone, changed = PLAN.victims
    for record in PLAN.victims:
        cloud.deliver(job(record))
    cloud.admin(
        "tamper",
        {
            "change": [{"icao": changed, "city": None, "name": 'The "Old", one\n'}],
            "delete": [gone],
            "add": [AIRPORTS[gone].row | {"icao": "X-1", "iata": ""}],
        },
    )
    cloud.admin("export")
    lines = (tmp_path / "exports" / "airports.ndjson").read_text("utf-8").splitlines()
    rows = {row["icao"]: row for row in map(json.loads, lines)}
    assert set(rows) == {changed, "X-1"}
    assert rows[changed]["city"] is None
    assert f'"{changed}",' in (tmp_path / "exports" / "airports.csv").read_text("utf-8")
    assert '"The ""Old"", one\n",,' in (tmp_path / "exports" / "airports.csv").read_text("utf-8")
    ledgers = cloud.admin("ledgers")
    assert (ledgers["changed"], ledgers["missing"], ledgers["extra"]) == (
        [changed],
        [gone],
        ["X-1"],
    )


@pytest.mark.parametrize("path", ["tamper", "export", "ledgers", "no-such"])
def test_an_admin_path_wants_the_token(cloud, path):
    with pytest.raises(HTTPError) as caught:
        cloud.admin(path, token="wrong")  # noqa: S106
    assert caught.value.code == 401


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"icao": "KJFK"}'])
def test_a_body_that_is_no_airport_is_refused(cloud, body):
    with pytest.raises(Permanent) as caught:
        post(f"{cloud.root}/airports", job(PLAN.victims[0]), body=body)
    assert caught.value.http_status == 400
