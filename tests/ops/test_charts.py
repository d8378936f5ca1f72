"""Charts: drawn with no network, from few marks, and honest about nothing to draw."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import polars
import pytest
from ops_logs import START, Log, Simulation, text

from tallybook import ops
from tallybook.ops.charts import drawing

OF_A_BOOK = ("throughput", "depth", "latency_bands", "latency_heatmap", "outcomes", "lease_lanes",
             "retries_by_reason", "cache_history", "cache_compared", "before_after", "dead_letters",
             "settings", "by_day", "growth")  # fmt: skip
TIMED = ("throughput", "depth", "latency_bands", "latency_heatmap", "lease_lanes",
         "retries_by_reason", "cache_history", "growth")  # fmt: skip
MOST_MARKS = 5000


@pytest.fixture(scope="module", params=[12, 1500])
def book(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("book")
    Simulation(path, jobs=request.param).run()
    return path


@pytest.fixture(scope="module")
def warehouse(book: Path) -> Iterator[ops.Warehouse]:
    with ops.open(book) as opened:
        yield opened


def marks(svg: str) -> int:
    """How many lines, bars and points with a size an SVG shows beside its axes."""
    root = ElementTree.fromstring(svg)  # noqa: S314 - our own drawing
    drawn = 0
    for group in root.iter("{http://www.w3.org/2000/svg}g"):
        kind = group.get("class", "")
        if re.search(r"mark-(rect|line|symbol|rule)\b", kind) and "role-mark" in kind:
            drawn += sum(1 for path in group if len(path.get("d", "")) > 10)
    return drawn


def rows_of(spec: dict[str, Any]) -> int:
    """How many rows the data of a chart has in all."""
    return sum(len(rows) for rows in spec.get("datasets", {}).values()) + sum(
        len(part.get("data", {}).get("values", [])) for part in parts(spec)
    )


def parts(spec: dict[str, Any]) -> list[dict[str, Any]]:
    inner = [part for key in ("layer", "vconcat", "hconcat") for part in spec.get(key, [])]
    inner += [spec["spec"]] if "spec" in spec else []
    return [spec, *(deeper for part in inner for deeper in parts(part))]


@pytest.mark.parametrize("name", OF_A_BOOK)
def test_a_chart_of_a_book_draws_marks_at_ten_jobs_and_at_many(
    warehouse: ops.Warehouse, name: str
) -> None:
    chart = getattr(ops.charts, name)(warehouse)
    spec = chart.to_dict()
    assert rows_of(spec) <= MOST_MARKS
    drawing = ops.charts.show(chart)
    assert marks(drawing.svg) >= 1 or re.search(">no (attempt failed|job in the)", drawing.svg)
    assert spec["title"]["text"] in drawing.words


@pytest.mark.parametrize("name", TIMED)
def test_a_time_axis_names_its_zone_and_shows_its_clock(
    warehouse: ops.Warehouse, name: str
) -> None:
    svg = ops.charts.show(getattr(ops.charts, name)(warehouse, ops.Span(zone="Asia/Tokyo"))).svg
    assert "time in Asia/Tokyo" in svg or "no attempt failed" in svg
    assert ">19:0" in svg or "no attempt failed" in svg, "10:00 UTC is 19:00 in Tokyo"


@pytest.mark.parametrize("name", TIMED)
def test_the_marks_of_a_chart_say_their_time_and_no_name_of_a_column(
    warehouse: ops.Warehouse, name: str
) -> None:
    svg = ops.charts.show(getattr(ops.charts, name)(warehouse)).svg
    said = re.findall(r'aria-roledescription="(?:bar|rect.*?|point)"[^>]*aria-label="([^"]*)"', svg)
    said += re.findall(r'aria-label="([^"]*)"[^>]*aria-roledescription="(?:bar|rect|point)', svg)
    assert not re.search(r"window_|_at:|[a-z]_s:|Nov 29, 2026", " ".join(said))
    if name in ("lease_lanes", "latency_heatmap", "cache_history", "growth"):
        whole = r"2026-11-29 10:\S+ to 2026-11-29 1[01]:\S+ UTC; .+: .+"
        assert said and any(re.fullmatch(whole, one) for one in said), said[:3]


@pytest.mark.parametrize(
    ("took", "shown"),
    [
        (540, ["10:00:00.400", "10:00:00.500", "10:00:00.900"]),
        (3, ["10:00:00.361", "10:00:00.363"]),
        (4200, ["10:00:01.000", "10:00:04.000"]),
    ],
)
def test_a_time_axis_has_ticks_within_a_second(took: int, shown: list[str]) -> None:
    first = START + timedelta(milliseconds=360)
    last = first + timedelta(milliseconds=took)
    frame = polars.DataFrame({"at": [first, last], "jobs": [1, 2]})
    line = drawing.altair_module().Chart(drawing.rows(frame)).mark_line()
    x = drawing.time_axis(frame, "at", "UTC")
    svg = ops.charts.show(drawing.dressed(line.encode(x=x, y="jobs:Q"), "jobs")).svg
    ticks = re.findall(r">(\d\d:\d\d:\d\d\.\d{3})<", svg)
    assert set(shown) <= set(ticks) and 4 <= len(ticks) <= 9, ticks


def test_a_time_axis_drops_no_label_between_two_others() -> None:
    days = polars.datetime_range(START.replace(hour=0), interval="1d", end=START + timedelta(7))
    frame = polars.select(at=days)
    line = drawing.altair_module().Chart(drawing.rows(frame)).mark_line()
    x = drawing.time_axis(frame, "at", "UTC")
    svg = ops.charts.show(drawing.dressed(line.encode(x=x).properties(width=720), "jobs")).svg
    shown = re.findall(r'opacity="1">(\d\d-\d\d) 00:00<', svg)
    assert shown == [f"{day:%m-%d}" for day in frame["at"]]


@pytest.mark.parametrize("name", sorted({*OF_A_BOOK} - {"growth"}))
def test_a_chart_of_nothing_says_why(tmp_path: Path, name: str) -> None:
    Log(tmp_path)
    with ops.open(tmp_path) as warehouse:
        drawing = ops.charts.show(getattr(ops.charts, name)(warehouse))
    assert re.search(r">(no |the log has|neither)", drawing.svg), drawing.svg


def test_the_log_over_time_has_each_event_once_and_without_any_says_so(
    warehouse: ops.Warehouse,
) -> None:
    rows = ops.growth(warehouse, ops.Span(every="1h"))
    assert rows["events"].sum() == ops.overview(warehouse)["events"].item()
    assert set(rows["part"].drop_nulls()) <= {"jobs", "cache", "log", "workers and topics"}
    before = ops.Span(until=START - timedelta(hours=1))
    assert "the log has no event" in ops.charts.show(ops.charts.growth(warehouse, before)).svg


@pytest.mark.parametrize("name", TIMED)
def test_a_chart_of_very_many_windows_is_drawn_in_fewer(
    warehouse: ops.Warehouse, name: str
) -> None:
    span = ops.Span(START, START + timedelta(hours=2), "1s")
    chart = getattr(ops.charts, name)(warehouse, span)
    assert rows_of(chart.to_dict()) <= MOST_MARKS


def test_before_and_after_are_two_periods_of_ones_own_with_their_jobs(
    warehouse: ops.Warehouse,
) -> None:
    first, last = ops.halves(warehouse, moment=text(1))
    svg = ops.charts.show(ops.charts.before_after(warehouse, first, last)).svg
    jobs = ops.latency(warehouse, first)["n"].item()
    assert f"before: {jobs:,} job" in svg and "2026-11-29 10:00:00" in svg and "(UTC)" in svg


def test_charts_of_a_reconciliation_show_each_status_and_column(tmp_path: Path) -> None:
    left, right = tmp_path / "a.csv", tmp_path / "b.csv"
    left.write_text("id,price,city\n1,1,x\n2,2,y\n3,3,z\n")
    right.write_text("id,price,city\n1,9,x\n2,8,q\n4,4,w\n")
    found = ops.reconcile(left, right, key="id")
    status = ops.charts.show(ops.charts.reconcile_status(found)).svg
    assert all(f">{word}<" in status for word in ("differs", "only local", "only cloud"))
    columns = ops.charts.show(ops.charts.reconcile_columns(found)).svg
    assert ">price<" in columns and ">city<" in columns
    same = ops.reconcile(left, left, key="id")
    assert "no cell differs" in ops.charts.show(ops.charts.reconcile_columns(same)).svg


def test_a_drawing_carries_svg_and_words_and_asks_no_network(warehouse: ops.Warehouse) -> None:
    bundle = ops.charts.show(ops.charts.throughput(warehouse))._repr_mimebundle_()
    assert set(bundle) == {"image/svg+xml", "text/plain"}
    assert bundle["text/plain"] == "[chart] Throughput"
    addresses = set(re.findall(r"https?://[^\"' )<]+", bundle["image/svg+xml"]))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert "<script" not in bundle["image/svg+xml"]


def test_a_name_in_the_log_cannot_become_markup(tmp_path: Path) -> None:
    log = Log(tmp_path)
    evil = "<script>alert(1)</script>"
    log.enqueued("j", 1)
    log.leased("j", 1, worker=evil)
    log.ended("job.dead", "j", 1, 2, worker=evil, error_type=evil)
    draw: list[Callable[..., Any]] = [ops.charts.lease_lanes, ops.charts.outcomes]
    with ops.open(tmp_path) as warehouse:
        for chart in draw:
            svg = ops.charts.show(chart(warehouse)).svg
            assert "&lt;script" in svg and "<script" not in svg


@pytest.mark.parametrize("name", ["ops", "ops as o; o.findings"])
def test_importing_ops_loads_nothing_heavy_until_it_is_asked(name: str) -> None:
    code = "from tallybook import ops; import sys; print([m for m in {!r} if m in sys.modules])"
    heavy = ("duckdb", "polars", "altair", "pyarrow", "vl_convert")
    told = subprocess.run(
        [sys.executable, "-c", code.format(heavy)], capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "[]" and name


def test_questions_and_findings_do_not_load_altair(tmp_path: Path) -> None:
    Log(tmp_path).enqueued("j", 1)
    code = ("import sys; from tallybook import ops; w = ops.open(sys.argv[1]); ops.latency(w); "
            "ops.findings.throughput_latency(w); print('altair' in sys.modules)")  # fmt: skip
    told = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "False"
