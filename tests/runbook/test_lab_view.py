"""The view of an incident without a browser: what is selected is state that every part follows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tallybook import lab, ops
from tallybook.errors import BadInput
from tallybook.lab import offline
from tallybook.lab.view import View
from tallybook.runbook.folder import private_folder

OPENED = {
    "writer": "0190aaaa" + "0" * 24, "node_id": "node-7", "host": "host-1", "pid": 7,
    "boot_id": "boot-1", "versions": {"tallybook": "0.1.0"}, "previous_hash": "00" * 32,
}  # fmt: skip


class Growing:
    """A book of jobs that each take half a second, one a second; it can go on."""

    def __init__(self, root: Path) -> None:
        self.root, self.seq, self.jobs = root, 0, 0
        (root / "log").mkdir(parents=True)
        self.path = root / "log" / "0190aaaa-000000000001.ndjson"
        self.event("log.opened", 0, **OPENED)

    def event(self, name: str, at: float, **fields: Any) -> None:
        self.seq += 1
        minute, second = divmod(at, 60)
        moment = f"2026-11-29T10:{int(minute):02d}:{second:09.6f}Z"
        line = {"v": 1, "seq": self.seq, "event": name, "occurred_at": moment, "boot_us": self.seq}
        with self.path.open("a") as file:
            file.write(json.dumps(line | fields) + "\n")

    def work(self, jobs: int, topic: str = "orders") -> None:
        """More jobs, one a second."""
        for at in range(self.jobs, self.jobs + jobs):
            named = {"job_id": f"j{at}", "topic": topic}
            key = f"<b>{at}</b>" if at == 3 else f"k{at}"
            self.event("job.enqueued", at, **named, payload={"n": at}, payload_digest="d",
                       priority=0, idempotency_key=key, max_attempts=10)  # fmt: skip
            held = named | {"worker": "w1", "lease_token": 1}
            self.event("job.leased", at, **held, lease_ms=60_000, attempt_count=0, rescue_count=0,
                       locked_until="2026-11-29T11:00:00.000000Z")  # fmt: skip
            ended = {"duration_ms": 500.0, "attempt_count": 1, "http_status": 200}
            self.event("job.done", at + 0.5, **held, **ended, endpoint="POST /orders")
        self.jobs += jobs


def opened(growing: Growing, out: Path) -> View:
    """A view, with scripts that need not be put together; its findings go under ``out``."""
    scripts = offline.scripts(out)
    private_folder(scripts.parent)
    scripts.write_text("export default { render() {} }", "utf-8")
    return lab.open_incident(growing.root, ops.Span(), name="late-orders", out=out)


@pytest.fixture(scope="module", autouse=True)
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The first view of this process takes the scripts that are there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(offline.OUT, str(tmp_path_factory.getbasetemp() / "out"))
        yield


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[View]:
    """A view of sixty jobs that no test changes but by selecting."""
    growing = Growing(tmp_path_factory.mktemp("shown") / "book")
    growing.work(60)
    made = opened(growing, tmp_path_factory.getbasetemp() / "out")
    yield made
    made.close()


@pytest.fixture
def growing(tmp_path: Path) -> Growing:
    made = Growing(tmp_path / "book")
    made.work(60)
    return made


@pytest.fixture
def view(growing: Growing, tmp_path: Path) -> Iterator[View]:
    made = opened(growing, tmp_path / "out")
    yield made
    made.close()


def brush(view: View, since: str, until: str) -> None:
    """What a browser tells of a drag: the milliseconds where it began and ended."""
    ends = [ops.Span(moment).start_at for moment in (since, until)]
    value = {"since": [end.timestamp() * 1000 for end in ends if end]}
    overview = view.linked.children[1]
    overview._vl_selections = {"brush": {"value": value, "store": [{"fields": [], "values": []}]}}


def html(part: Any) -> str:
    """All the words of a widget and those in it."""
    inner = "".join(html(child) for child in getattr(part, "children", ()))
    return inner + str(getattr(part, "value", ""))


def test_a_brush_is_the_selection_and_every_part_follows(shown: View) -> None:
    shown.select()
    before = shown.linked.children[3].spec
    assert shown.selection == shown.incident.whole
    brush(shown, "2026-11-29T10:00:10", "2026-11-29T10:00:20")
    assert str(shown.selection.span.start_at) == "2026-11-29 10:00:10+00:00"
    assert sorted(shown.leases["job_id"]) == [f"j{n}" for n in range(10, 20)]
    assert "10:00:10.000 to 10:00:20.000" in html(shown.linked) and "10 leases" in html(
        shown.linked
    )
    assert shown.linked.children[3].spec != before
    overview = shown.linked.children[1]
    overview._vl_selections = {"brush": {"value": {}, "store": []}}
    assert shown.selection == shown.incident.whole


def test_a_cell_can_brush_and_the_chart_shows_it(shown: View) -> None:
    part = shown.select("2026-11-29T10:00:10", "2026-11-29T10:00:20")
    assert part == shown.selection
    (param,) = shown.linked.children[1].spec["params"]
    assert [end / 1000 for end in param["value"]["x"]] == [
        part.since.timestamp(), part.until.timestamp()
    ]  # fmt: skip
    brush(shown, "2026-11-29T10:00:30", "2026-11-29T10:00:40")
    assert shown.leases.height == 10


def test_the_slider_shows_the_queue_of_then(shown: View) -> None:
    shown.as_of("2026-11-29T10:00:30.250")
    with shown.warehouse.as_of("2026-11-29T10:00:30.299999") as past:
        (queue,) = past.sql("select pending, leased, done from topics").fetchall()
    assert queue == (0, 1, 30)
    cells = re.findall(r'<td class="n" title="(\d+)">', html(shown.slider))
    assert cells[:3] == ["0", "1", "30"]


def test_what_came_out_of_a_log_is_text_in_a_table(shown: View) -> None:
    shown.select()
    assert "&lt;b&gt;3&lt;/b&gt;" in html(shown.linked)
    assert "<b>3</b>" not in html(shown.linked)


def test_a_trace_follows_a_job_and_an_id_of_nothing_is_said(shown: View) -> None:
    assert shown.follow("k7")["event"].to_list() == ["job.enqueued", "job.leased", "job.done"]
    assert "POST /orders" in html(shown.trace)
    assert shown.follow("nobody").is_empty()
    assert "nothing in the log has this id" in html(shown.trace)


# a log that grows while one looks


def test_a_log_that_grows_is_said_and_shown_only_when_it_is_read_again(
    view: View, growing: Growing
) -> None:
    assert not view.has_grown
    brush(view, "2026-11-29T10:00:10", "2026-11-29T10:00:20")
    growing.work(60, "returns")
    before = view.incident.summary(view.incident.whole)["n"][0]
    assert view.has_grown and before == 60
    brush(view, "2026-11-29T10:00:10", "2026-11-29T10:00:30")
    assert "has grown" in html(view.linked)
    view.refresh()
    assert view.incident.summary(view.incident.whole)["n"][0] == 120
    assert not view.has_grown and "has grown" not in html(view.linked)
    assert view.leases.height == 20, "the brush stays where it was"
    assert "returns" in html(view.slider)


def test_a_log_with_a_torn_end_is_read_up_to_there(view: View, growing: Growing) -> None:
    with growing.path.open("a") as file:
        file.write('{"v":1,"seq":')
    view.refresh()
    assert view.leases.height == 50 and view.incident.summary(view.selection)["n"][0] == 60


def test_a_log_that_cannot_be_read_again_leaves_the_view_as_it_was(
    view: View, growing: Growing
) -> None:
    growing.path.rename(growing.root / "away")
    growing.path.parent.rmdir()
    with pytest.raises(BadInput, match="no book at"):
        view.refresh()
    assert view.select("2026-11-29T10:00:10", "2026-11-29T10:00:20") and view.leases.height == 10
    view.linked.children[0].children[0].click()
    assert "no book at" in html(view.linked)


# findings


def test_a_finding_is_on_disk_at_once_and_the_next_view_goes_on_with_it(
    view: View, growing: Growing, tmp_path: Path
) -> None:
    view.select("2026-11-29T10:00:10", "2026-11-29T10:00:20")
    view.write_down("Orders are late\nsince ten past", "problem")
    kept = tmp_path / "out" / "incidents" / "late-orders" / "notes.ndjson"
    (line,) = kept.read_text("utf-8").splitlines()
    note = json.loads(line)
    assert (note["severity"], note["since"]) == ("problem", "2026-11-29T10:00:10+00:00")
    assert kept.stat().st_mode & 0o777 == 0o600
    again = opened(growing, tmp_path / "out")
    again.write_down("It is over", "info")
    assert len(kept.read_text("utf-8").splitlines()) == 2
    page = again.report().read_text("utf-8")
    again.close()
    assert page.index("Orders are late") < page.index("It is over")
    assert "10 leases ended, 0 of them failed" in page
    assert page.count("<svg") == 4 and "src=" not in page.replace("src='data:", "")


def test_the_buttons_say_what_is_wrong_and_lose_nothing(view: View) -> None:
    text, buttons = view.notes.children[0], view.notes.children[1].children
    buttons[2].click()
    assert "no finding is written down yet" in html(view.notes)
    buttons[1].click()
    assert "write what you found" in html(view.notes)
    text.value = "A <script>alert(1)</script> came"
    buttons[1].click()
    assert text.value == "" and "<script>" not in html(view.notes)
    buttons[2].click()
    assert "report.html" in html(view.notes)


@pytest.mark.parametrize("name", ["", "../up", "a/b", "."])
def test_a_name_that_leads_elsewhere_is_bad_input(name: str) -> None:
    with pytest.raises(BadInput, match="no name of an incident"):
        lab.open_incident(name=name)


def test_a_line_that_is_no_finding_is_named(view: View, growing: Growing, tmp_path: Path) -> None:
    view.write_down("one")
    kept = tmp_path / "out" / "incidents" / "late-orders" / "notes.ndjson"
    with kept.open("a") as file:
        file.write("{}\n")
    with pytest.raises(BadInput, match=r"notes\.ndjson line 2 is no note"):
        opened(growing, tmp_path / "out")
