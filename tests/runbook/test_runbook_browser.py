"""What a person sees: reports in a real Chromium, with no way out.

Looked at are drawn marks, with their size and paint, and not the absence of errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chromium
import pytest

from tallybook import runbook
from tallybook.runbook.kernels import Warm

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "data-samples" / "book"


def test_without_chromium_a_test_is_skipped_and_in_ci_it_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no Chromium here"):
        chromium.executable()
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="CI must have Chromium"):
        chromium.executable()


def is_file(url: str) -> bool:
    return url.startswith("file:")


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory, warm: Warm) -> dict[str, Path]:
    """The reports of two runbooks on the sample book, and the index of both runs."""
    chromium.executable()
    out = tmp_path_factory.mktemp("out")
    names = ("throughput_latency", "reconcile")
    paths = {name: ROOT / "runbooks" / f"{name}.ipynb" for name in names}
    runs = {name: runbook.run(one, book=SAMPLE, out=out, warm=warm) for name, one in paths.items()}
    assert {run.status for run in runs.values()} == {"findings"}, runs
    return {name: run.report.resolve() for name, run in runs.items()} | {"": out / "index.html"}


@pytest.fixture(scope="module")
def browser(reports: dict[str, Path]) -> Iterator[Any]:
    """One browser for all tests, started after the runs."""
    assert reports
    with chromium.opened() as one:
        yield one


@pytest.mark.parametrize(
    ("name", "scheme", "width"),
    [("throughput_latency", "light", 1280), ("reconcile", "dark", 480)],
)
def test_a_report_shows_its_charts_and_findings_with_no_network(
    reports: dict[str, Path], browser: Any, name: str, scheme: str, width: int
) -> None:
    view: dict[str, Any] = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
    with chromium.page(is_file, browser, offline=True, **view) as made:
        page, refused = made
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(reports[name].as_uri())
        charts = page.locator(".chart svg").all()
        assert len(charts) >= 2
        assert all(chromium.drawn(chart) >= 2 for chart in charts)
        assert page.locator(".finding").first.bounding_box()["y"] < 900
        for chart in page.locator(".chart").all():
            assert chart.evaluate("card => card.scrollWidth <= card.clientWidth")
        assert page.locator("details[open]").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert (refused, complaints) == ([], [])


def test_without_scripts_a_report_shows_the_same_charts_and_tables(
    reports: dict[str, Path],
    browser: Any,
) -> None:
    view = {"java_script_enabled": False, "offline": True}
    with chromium.page(is_file, browser, **view) as (page, refused):
        page.goto(reports["throughput_latency"].as_uri())
        charts = page.locator(".chart svg").all()
        assert len(charts) >= 4 and all(chart.is_visible() for chart in charts)
        assert page.locator(".tools, .sort").count() == 0
        assert page.locator("table").count() >= 4 and refused == []


READ = ".reading .readout"


def test_charts_are_read_zoomed_and_thinned_out_by_keyboard_alone(
    reports: dict[str, Path], browser: Any
) -> None:
    view: dict[str, Any] = {"color_scheme": "dark", "viewport": {"width": 1280, "height": 900}}
    with chromium.page(is_file, browser, offline=True, **view) as made:
        page, refused = made
        page.goto(reports["throughput_latency"].as_uri())
        chart = page.locator(".chart svg").first
        _tab_to(page, ".chart svg")
        for key in ("ArrowRight", "ArrowRight", "End"):
            page.keyboard.press(key)
        last = page.locator(READ).inner_text()
        assert re.search(
            r"time in UTC: \d\d:\d\d:\d\d\.\d+; jobs per second: [\d,.]+; what: ", last
        )
        whole = chart.get_attribute("viewBox")
        page.keyboard.press("+")
        assert chart.get_attribute("viewBox") != whole
        page.keyboard.press("Shift+ArrowRight")
        page.keyboard.press("0")
        assert chart.get_attribute("viewBox") == whole
        assert page.locator(READ).count() == 0

        drawn = chart.locator(".role-mark > path:not(.dim)").count()
        _tab_to(page, ".role-legend-label text")
        page.keyboard.press("Enter")
        assert chart.locator(".role-mark > path:not(.dim)").count() == drawn - 1
        page.keyboard.press(" ")
        assert chart.locator(".dim").count() == 0 and refused == []


def test_tables_sort_by_keyboard_and_charts_follow_the_scheme_but_on_paper(
    reports: dict[str, Path], browser: Any
) -> None:
    with chromium.page(is_file, browser, offline=True, color_scheme="dark") as (page, refused):
        page.goto(reports["throughput_latency"].as_uri())
        head = page.locator("th", has_text="error_type").first
        head.locator("button").focus()
        names = page.locator("table", has=head).locator("tbody tr td:first-child")
        orders = []
        for _ in range(2):
            page.keyboard.press("Enter")
            orders.append((head.get_attribute("aria-sort"), names.all_inner_texts()))
        assert orders[0] == ("ascending", sorted(orders[0][1]))
        assert orders[1] == ("descending", orders[0][1][::-1])

        title = page.locator(".chart .role-title-text text").first
        assert title.evaluate("one => getComputedStyle(one).fill") == "rgb(227, 231, 238)"
        page.emulate_media(media="print", color_scheme="dark")
        assert title.evaluate("one => getComputedStyle(one).fill") == "rgb(0, 0, 0)"
        assert not page.locator(".tools").first.is_visible()
        assert refused == []


def _tab_to(page: Any, selector: str) -> None:
    """Press Tab until what is focused is ``selector``."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("sought => document.activeElement.matches(sought)", selector):
            return
    raise AssertionError(f"no Tab leads to {selector}")


def test_a_pointer_reads_the_mark_that_it_is_on(reports: dict[str, Path], browser: Any) -> None:
    with chromium.page(is_file, browser, offline=True) as (page, _):
        page.goto(reports["reconcile"].as_uri())
        bar = page.locator(".chart .role-mark > path").first
        bar.scroll_into_view_if_needed()
        box = bar.bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        assert page.locator(READ).inner_text() == bar.get_attribute("aria-label")


def test_the_index_leads_to_every_report(reports: dict[str, Path], browser: Any) -> None:
    with chromium.page(is_file, browser, offline=True) as (
        page,
        refused,
    ):
        page.goto(reports[""].as_uri())
        assert page.locator("h2").all_inner_texts() == ["reconcile", "throughput_latency"]
        page.locator("a").last.click()
        page.locator("h1", has_text="Throughput and latency").wait_for()
        assert page.url == reports["throughput_latency"].as_uri() and refused == []


def test_what_a_report_must_not_do_its_policy_stops(
    reports: dict[str, Path], browser: Any, tmp_path: Path
) -> None:
    """The policy is a second wall: here somebody got a script past the first."""
    text = reports["reconcile"].read_text("utf-8")
    planted = '<script>document.title = "ran"</script><img src="http://127.0.0.1:9/x">'
    broken = tmp_path / "broken.html"
    broken.write_text(text.replace("</body>", planted + "</body>"), "utf-8")
    with chromium.page(is_file, browser) as (page, refused):
        page.goto(broken.as_uri())
        assert page.title() != "ran"
        assert refused == []
