"""What the README and the pages of commands and handlers show is what happens."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from house_pages import blocks, page

SHOWN = ("README.md", "docs/cli.md", "docs/handlers.md")
DEADLINE_S = 60
_FILE = re.compile(r"# (\w+\.py)\n")
_MASKS = (
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "<id>"),
    (r"\b\d{4}-\d\d-\d\d[T ][\d:]+(\.\d{6})?Z", "<time>"),
    (r"(?<=<time>)  +\d+(?=  )", "  <seq>"),
    (r"(?<=worker=)\S+", "<worker>"),
    (r"tallybook-out/\S+", "<report>"),
    (r"(?<=rebuilt/)\w+", "<when>"),
    (r"\b[0-9a-f]{32,64}\b", "<digest>"),
    (r"(?<=duration_ms=)[\d.]+", "<number>"),
    (r"-{2,}", "--"),
    (r" +", " "),
)


@dataclass
class Example:
    """A block of a page to run, and the output that the page shows; None where it shows none."""

    kind: str
    source: str
    shown: str | None = None


def examples(text: str) -> list[Example]:
    """The blocks ``sh`` and ``python`` in order; a ``text`` block right after one is its output."""
    found: list[Example] = []
    before = ""
    for kind, body in blocks(text):
        if kind in ("sh", "python"):
            found.append(Example(kind, body))
        elif kind == "text" and before in ("sh", "python") and not is_file(found[-1]):
            found[-1].shown = body
        before = kind
    return found


def is_file(example: Example) -> bool:
    """Whether an example is a file to save, named in its first line."""
    return example.kind == "python" and bool(_FILE.match(example.source))


def run(example: Example, folder: Path) -> str:
    """What the example prints on standard output; it must succeed and warn of nothing."""
    environment = {n: v for n, v in os.environ.items() if not n.startswith("TALLYBOOK_")}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    command = ["bash", "-euo", "pipefail", "-c"] if example.kind == "sh" else ["python", "-c"]
    done = subprocess.run(
        [*command, example.source],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert (done.returncode, done.stderr) == (0, ""), f"{example.source}\n{done.stderr}"
    return done.stdout


def masked(text: str) -> str:
    """Output without what differs from run to run: ids, times, digests, widths of columns."""
    for pattern, mask in _MASKS:
        text = re.sub(pattern, mask, text)
    return "\n".join(line.rstrip() for line in text.splitlines())


@pytest.mark.parametrize("name", SHOWN)
def test_every_example_of_a_page_runs_and_prints_what_the_page_shows(
    name: str, tmp_path: Path
) -> None:
    for example in examples(page(name)):
        if is_file(example):
            file, source = _FILE.match(example.source), example.source
            assert file
            (tmp_path / file[1]).write_text(source, "utf-8")
            continue
        printed = run(example, tmp_path)
        if example.shown is not None:
            assert masked(printed) == masked(example.shown), example.source


def test_the_readme_shows_a_job_of_ones_own_from_enqueue_to_rebuild() -> None:
    shown = "\n".join(example.source for example in examples(page("README.md")))
    for command in ("enqueue", "worker", "status", "trace", "log verify", "rebuild", "runbook run"):
        assert f"tallybook {command}" in shown
    assert "$ make demo" in page("README.md")


def test_the_readme_carries_no_example_that_is_not_marked() -> None:
    kinds = {kind for kind, _ in blocks(page("README.md"))}
    assert kinds <= {"sh", "python", "text", "console"}
