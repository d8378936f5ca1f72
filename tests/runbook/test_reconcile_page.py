"""The page of a reconciliation in a real Chromium: quick at 100,000 changed cells, with no way out.

What a cell holds is only ever shown, never run.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chromium
import polars
import pytest
from playwright.sync_api import expect

from tallybook.ops.reconciling import reconcile

expect.set_options(timeout=30_000)
CELLS = 100_000
HOSTILE = "</script><script>document.title='taken'</script><img src=http://x.invalid/a>"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with 100,000 changed cells, some of which only look the same."""
    numbers = polars.int_range(CELLS - 2, eager=True)
    keys = numbers.cast(polars.String).str.zfill(6)
    left = polars.DataFrame({"id": [*keys, "a", "z", "only"], "x": [*numbers, -1, -2, -3]}).cast(
        polars.String
    )
    changed = polars.DataFrame({"id": [*keys, "a", "z"], "x": [*(numbers + 1), -1, -2]})
    right = changed.cast(polars.String).with_columns(
        x=polars.when(polars.col("id") == "a").then(polars.lit(HOSTILE))
        .when(polars.col("id") == "z").then(polars.lit("-2 ")).otherwise("x")
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("page")
    with reconcile(left, right, key="id") as found:
        assert found.changed_cells == CELLS
        return found.write(folder)[-1]


@pytest.fixture(scope="module")
def page(report: Path) -> Iterator[Any]:
    def is_file(url: str) -> bool:
        return url.startswith("file:")

    with chromium.opened() as browser, chromium.page(is_file, browser) as (page, refused):
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(report.as_uri())
        yield page
        assert (said, refused) == ([], [])


def test_only_the_rows_in_sight_are_drawn_and_scrolling_draws_others(page: Any) -> None:
    rows = page.locator("#differences .row")
    assert 10 < rows.count() < 100
    first = rows.first
    assert first.inner_text().split() == ["000000", "x", "0", "1"]
    assert first.bounding_box()["height"] == 28
    page.locator("#differences").evaluate("(place) => { place.scrollTop = 28 * 50000; }")
    expect(page.locator("#differences .rows")).to_contain_text("050000")
    assert rows.count() < 100


def test_what_a_cell_holds_is_shown_and_marked_and_never_run(page: Any) -> None:
    page.fill("#find", "</SCRIPT>")
    expect(page.locator("#shown")).to_have_text("1 shown")
    row = page.locator("#differences .row")
    assert row.count() == 1 and HOSTILE in row.inner_text().replace("\u00b7", " ")
    assert "taken" not in page.title()
    page.fill("#find", "z")
    expect(row.first).to_contain_text("z")
    assert row.locator("mark").all_inner_texts() == ["", "\u00b7"], "the blank at the end is seen"
    row.click()
    assert "all changed cells of key z" in page.locator("#whole").inner_text()


def test_rows_are_chosen_by_status_and_counts_stand_above(page: Any) -> None:
    page.select_option("#status", label="only local (1)")
    assert page.locator("#rows .row").inner_text().split() == ["only", "local", "only", "100,001"]
    assert "100,001" in page.locator(".counts").inner_text()


def test_without_a_script_the_first_cells_are_there_all_the_same(report: Path) -> None:
    text = report.read_text("utf-8")
    assert "<td>000000</td><td>x</td><td>0</td><td>1</td>" in text
    assert "<img" not in text and "</script><script>document" not in text
