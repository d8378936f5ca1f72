"""What a person sees: reports in a real Chromium, with no way out.

Looked at are drawn marks, with their size and paint, and not the absence of errors.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import chromium
import pytest

from tallybook import runbook

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


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The reports of two runbooks on the sample book."""
    chromium.executable()
    out = tmp_path_factory.mktemp("out")
    names = ("throughput_latency", "reconcile")
    paths = {name: ROOT / "runbooks" / f"{name}.ipynb" for name in names}
    runs = {name: runbook.run(path, book=SAMPLE, out=out) for name, path in paths.items()}
    assert {run.status for run in runs.values()} == {"findings"}, runs
    return {name: run.report.resolve() for name, run in runs.items()}


@pytest.mark.parametrize(
    ("name", "scheme", "width"),
    [("throughput_latency", "light", 1280), ("reconcile", "dark", 480)],
)
def test_a_report_shows_its_charts_and_findings_with_no_network(
    reports: dict[str, Path], name: str, scheme: str, width: int
) -> None:
    view: dict[str, Any] = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
    with chromium.page(lambda url: url.startswith("file:"), offline=True, **view) as made:
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


def test_what_a_report_must_not_do_its_policy_stops(
    reports: dict[str, Path], tmp_path: Path
) -> None:
    """The policy is a second wall: here somebody got a script past the first."""
    text = reports["reconcile"].read_text("utf-8")
    planted = '<script>document.title = "ran"</script><img src="http://127.0.0.1:9/x">'
    broken = tmp_path / "broken.html"
    broken.write_text(text.replace("</body>", planted + "</body>"), "utf-8")
    with chromium.page(lambda url: url.startswith("file:")) as (page, refused):
        page.goto(broken.as_uri())
        assert page.title() != "ran"
        assert refused == []
