"""JupyterLab as a person sees it, in a real Chromium with no way out: one server, one kernel.

Looked at are drawn marks and the rows of tables, beside what the models say of the same log.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import chromium
import pytest

from tallybook import ops
from tallybook.ops import Warehouse

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "data-samples" / "book"
SERVE = """
import sys
from pathlib import Path
from tallybook.lab import server
place = server.prepare(Path("out"), None)
server.serve(place, Path(sys.argv[1]), browser=False, ready=lambda url: print(url, flush=True))
"""
CURRENT = ".jp-NotebookPanel:not(.lm-mod-hidden)"
ERRORS = f"{CURRENT} .jp-OutputArea .jp-RenderedText[data-mime-type*=error]"
COLOURED = """
(image) => {
  const canvas = document.createElement('canvas');
  canvas.width = image.naturalWidth; canvas.height = image.naturalHeight;
  const brush = canvas.getContext('2d');
  brush.drawImage(image, 0, 0);
  const pixels = brush.getImageData(0, 0, canvas.width, canvas.height).data;
  let coloured = 0;
  for (let i = 0; i < pixels.length; i += 4) {
    const [red, green, blue] = pixels.slice(i, i + 3);
    coloured += Math.max(red, green, blue) - Math.min(red, green, blue) > 40;
  }
  return coloured;
}
"""
WRAPPED = """
(panel) => [...panel.querySelectorAll('.tallybook-table td:not(.long), .tallybook-answer .id')]
  .filter((cell) => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return new Set([...range.getClientRects()].map((line) => line.top)).size > 1;
  }).map((cell) => cell.innerText)
"""
CHARTS = {"capacity": 3, "cache_history": 2, "reconcile_explore": 2, "sql": 0}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a JupyterLab on a copy of the notebooks, laid out as nobody left it."""
    chromium.executable()
    folder = tmp_path_factory.mktemp("lab")
    shutil.copytree(ROOT / "notebooks", folder / "notebooks")
    server = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(SAMPLE)],
        cwd=folder,
        env={**os.environ, "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces")},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert server.stdout
        yield server.stdout.readline().strip()
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(60)


@pytest.fixture(scope="module")
def lab(address: str) -> Iterator[tuple[Any, list[str]]]:
    """JupyterLab with the incident notebook run, and what it asked of the network."""
    own = address.partition("/lab")[0]
    allowed = (own, "data:", "blob:")
    with (
        chromium.opened() as browser,
        chromium.page(lambda url: url.startswith(allowed), browser) as (page, refused),
    ):
        page.set_default_timeout(90_000)
        page.set_viewport_size({"width": 1400, "height": 5000})
        page.goto(address.replace("/lab?", "/lab/tree/notebooks/incident.ipynb?"))
        page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
        run_all(page)
        yield page, refused


@pytest.fixture(scope="module")
def warehouse() -> Iterator[Warehouse]:
    with ops.open(SAMPLE) as opened:
        yield opened


def run_all(page: Any) -> None:
    """Run the notebook in front, and wait for its answer."""
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    ended = page.locator(f"{CURRENT} .jp-OutputArea p strong, {ERRORS}")
    ended.first.wait_for()
    assert not page.locator(ERRORS).count(), page.locator(ERRORS).first.inner_text()


def cells(table: Any) -> list[list[str]]:
    """The text of each row of a table."""
    found: list[list[str]] = table.evaluate(
        "table => [...table.tBodies[0].rows].map(row => [...row.cells].map(cell => cell.title))"
    )
    return found


def test_the_linked_charts_are_drawn_with_no_network(lab: tuple[Any, list[str]]) -> None:
    page, refused = lab
    drawings = page.locator(".tallybook-incident svg.marks, .tallybook-moment svg.marks,"
                            ".tallybook-trace svg.marks")  # fmt: skip
    drawings.nth(3).wait_for()
    counts = [chromium.drawn(drawing) for drawing in drawings.all()]
    assert len(counts) == 4 and min(counts) >= 3, counts
    assert not page.locator(ERRORS).count()
    assert refused == []


def test_a_brush_changes_the_table_to_the_leases_that_ended_in_it(
    lab: tuple[Any, list[str]], warehouse: Warehouse
) -> None:
    page, _ = lab
    first, last = warehouse.sql("select min(occurred_at), max(occurred_at) from events").fetchall()[
        0
    ]
    frame = page.locator(".tallybook-incident svg.marks").first.locator("path.background").first
    line = page.locator(".tallybook-incident p", has_text="leases ended")
    box = frame.bounding_box()
    ends = [box["x"] + box["width"] * share for share in (0.43, 0.53)]
    page.mouse.move(ends[0], box["y"] + 60)
    page.mouse.down()
    page.mouse.move(ends[1], box["y"] + 70, steps=6)
    page.mouse.up()
    wanted = [first + (last - first) * share for share in (0.43, 0.53)]
    wait_for(page, lambda: near(told(line.inner_text()), wanted))
    since, until = told(line.inner_text())
    asked = "select job_id from leases where ended_at >= ? and ended_at < ?"
    right = warehouse.sql(asked, [since, until]).fetchall()
    assert 5 < len(right) <= 50
    table = page.locator(".tallybook-incident table.tb").last
    page.wait_for_function(
        "n => [...document.querySelectorAll('.tallybook-incident table.tb')].at(-1)"
        ".tBodies[0].rows.length === n",
        arg=len(right),
    )
    assert sorted(row[-1] for row in cells(table)) == sorted(job for (job,) in right)
    panels = page.locator(".tallybook-incident svg.marks").nth(1)
    wait_for(page, lambda: chromium.drawn(panels) > 3)


def told(line: str) -> tuple[datetime, datetime]:
    """From when to when the line says that the selection reaches."""
    found = re.match(r"(\S+) (\S+) to (?:(\S+) )?(\S+) UTC", line)
    assert found, line
    ends = f"{found[1]}T{found[2]}Z", f"{found[3] or found[1]}T{found[4]}Z"
    return datetime.fromisoformat(ends[0]), datetime.fromisoformat(ends[1])


def near(ends: Sequence[datetime], wanted: Sequence[datetime]) -> bool:
    """Whether a selection reaches to where the mouse went; a pixel is some milliseconds."""
    return all(
        abs(one - other) < timedelta(milliseconds=60)
        for one, other in zip(ends, wanted, strict=True)
    )


def wait_for(page: Any, condition: Callable[[], bool]) -> None:
    """Let the page go on until the condition holds."""
    deadline = time.monotonic() + 90
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        page.wait_for_timeout(20)


def test_the_slider_shows_the_queue_that_as_of_says(
    lab: tuple[Any, list[str]], warehouse: Warehouse
) -> None:
    page, _ = lab
    line = page.locator(".tallybook-moment p", has_text="as of")
    before = line.inner_text()
    page.locator(".tallybook-moment .noUi-target").click(position={"x": 150, "y": 2})
    page.wait_for_function(
        "text => document.querySelector('.tallybook-moment p').innerText !== text", arg=before
    )
    moment = datetime.fromisoformat("T".join(line.inner_text().split()[2:4]) + "Z")
    with warehouse.as_of(moment - timedelta(microseconds=1)) as past:
        asked = "select topic, pending, leased, done, dead, cancelled from topics order by topic"
        right = [[topic, *(f"{n:,}" for n in counts)]
                 for topic, *counts in past.sql(asked).fetchall()]  # fmt: skip
    page.wait_for_function(
        "title => [...document.querySelectorAll('.tallybook-moment td')]"
        ".some(cell => cell.title === title)",
        arg=right[0][1],
    )
    shown = cells(page.locator(".tallybook-moment table.tb").first)
    assert shown == right
    assert right[0][1] not in ("0", "1,500")


@pytest.mark.parametrize("name", CHARTS)
def test_each_notebook_opens_runs_and_draws_with_no_network(
    lab: tuple[Any, list[str]], address: str, name: str
) -> None:
    page, refused = lab
    share_kernel(address, f"notebooks/{name}.ipynb")
    page.get_by_text(f"{name}.ipynb", exact=True).first.dblclick()
    page.locator(f"{CURRENT} .jp-Notebook", has_text=name.split("_")[0]).wait_for()
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
    run_all(page)
    images = page.locator(f"{CURRENT} .jp-RenderedSVG img").all()
    assert len(images) == CHARTS[name]
    assert all(image.evaluate(COLOURED) > 200 for image in images)
    assert page.locator(f"{CURRENT} .tallybook-table table").count() >= 2
    assert page.locator(CURRENT).evaluate(WRAPPED) == []
    assert not page.locator(ERRORS).count()
    assert refused == []


def test_no_notebook_is_left_out() -> None:
    stored = {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert stored == {"incident", *CHARTS}


def share_kernel(address: str, path: str) -> None:
    """Open the notebook on the kernel that runs already: a new one takes seconds."""
    own, token = address.split("/lab?token=")
    headers = {"Authorization": f"token {token}", "Content-Type": "application/json"}

    def asked(where: str, body: dict[str, Any] | None = None) -> Any:
        sent = json.dumps(body).encode() if body else None
        request = urllib.request.Request(f"{own}/api/{where}", sent, headers)  # noqa: S310 - ours
        with urllib.request.urlopen(request) as answer:  # noqa: S310 - ours
            return json.load(answer)

    kernel = {"id": asked("kernels")[0]["id"]}
    asked("sessions", {"path": path, "name": path, "type": "notebook", "kernel": kernel})
