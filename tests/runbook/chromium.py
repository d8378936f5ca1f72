"""A real Chromium with no way out: every request but those allowed is refused and remembered."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

FLAGS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]

MARKS = """
(root) => [...root.querySelectorAll('path, rect, circle')].filter((mark) => {
  const box = mark.getBoundingClientRect(), whole = root.getBoundingClientRect();
  const look = getComputedStyle(mark);
  const paints = [[look.fill, look.fillOpacity], [look.stroke, look.strokeOpacity]];
  const pale = ['none', 'rgb(255, 255, 255)', 'rgba(0, 0, 0, 0)', 'rgb(221, 221, 221)'];
  const painted = paints.some(([paint, opacity]) => !pale.includes(paint) && opacity > 0);
  const inside = box.right > whole.left && box.left < whole.right
    && box.bottom > whole.top && box.top < whole.bottom;
  const framed = mark.closest('.role-axis, .role-legend, .role-title, defs');
  const size = box.width * box.height > 2 || Math.max(box.width, box.height) > 8;
  return painted && inside && size && !framed && look.visibility === 'visible' && look.opacity > 0;
}).length
"""


def drawn(svg: Any) -> int:
    """How many marks of a chart can be seen: with size and paint, no axis, legend or title."""
    return int(svg.evaluate(MARKS))


@contextmanager
def opened() -> Iterator[Any]:
    """A browser; no kernel may be started meanwhile, both want the one event loop."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable(), args=FLAGS, chromium_sandbox=os.geteuid() != 0
        )
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def page(
    allowed: Callable[[str], bool], browser: Any, **context: Any
) -> Iterator[tuple[Any, list[str]]]:
    """A page of ``browser`` that reaches only what ``allowed`` says, and what was refused."""
    refused: list[str] = []

    def judge(route: Any) -> None:
        if allowed(route.request.url):
            route.continue_()
        else:
            refused.append(route.request.url)
            route.abort()

    made = browser.new_context(**context)
    made.route("**/*", judge)
    try:
        yield made.new_page(), refused
    finally:
        made.close()


def executable() -> str:
    """Chromium's path; without one the test is skipped, in CI it fails."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if found:
        return found
    if os.environ.get("CI"):
        pytest.fail("CI must have Chromium: apt-get install chromium")
    pytest.skip("no Chromium here: apt-get install chromium")
