"""One recorded run of the whole demo for each seed, made once in a test session."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tallybook.demo.folder import Folder


@dataclass(frozen=True)
class Recorded:
    """A demo that was run from the command line: its folder, exit code and answer."""

    place: Folder
    code: int
    answer: dict[str, Any]
    complaints: str


JOBS = dict.fromkeys((1, 2, 3), 500)
"""How many jobs the demo of a seed has."""
AT_ONCE = 2


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[int], Recorded]]:
    """The demo of a seed. All begin at the first question, two at a time: a busy machine."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        made = {
            seed: pool.submit(_record, seed, tmp_path_factory.mktemp("demo") / "work")
            for seed in JOBS
        }
        yield lambda seed: made[seed].result()


def _record(seed: int, root: Path) -> Recorded:
    options = ["--jobs", str(JOBS[seed]), "--seed", str(seed), "--dir", str(root), "--json"]
    run = subprocess.run(
        [sys.executable, "-m", "tallybook", "demo", *options],
        cwd=root.parent,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    answer = json.loads(run.stdout) if run.stdout else {}
    return Recorded(Folder(root), run.returncode, answer, run.stderr)
