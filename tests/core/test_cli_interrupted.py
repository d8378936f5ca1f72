"""Ctrl-C before a command has begun and after it has said all: one line, and 130."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tallybook

LINE = "tallybook: interrupted\n"
SCRIPT = [str(Path(sys.executable).with_name("tallybook"))]
MODULE = [sys.executable, "-m", "tallybook"]
HEARS = "import os, signal\ndef hear(): os.kill(os.getpid(), signal.SIGINT)\n"
SWALLOWS = HEARS + "try: hear()\nexcept KeyboardInterrupt: raise SystemExit(7)\n"
AT_EXIT = HEARS + "import atexit\natexit.register(hear)\n"


def run(place: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command whose modules come from ``place`` first."""
    env = {**os.environ, "PYTHONPATH": str(place)}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("command", [SCRIPT, MODULE], ids=["script", "module"])
def test_ctrl_c_while_modules_load_is_130_and_one_line_whatever_they_swallow(
    tmp_path: Path, command: list[str]
) -> None:
    (tmp_path / "argparse.py").write_text(SWALLOWS)
    done = run(tmp_path, *command, "status")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", LINE)


def test_ctrl_c_after_the_last_word_is_130_and_one_line(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(AT_EXIT)
    done = run(tmp_path, *MODULE, "--version")
    assert (done.returncode, done.stderr) == (130, LINE)


def test_a_command_that_was_begun_deaf_to_ctrl_c_stays_so(tmp_path: Path) -> None:
    (tmp_path / "argparse.py").write_text(SWALLOWS + "raise SystemExit(9)\n")
    deaf = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *MODULE, "status"]
    assert run(tmp_path, *deaf).returncode == 9


def test_nothing_is_loaded_before_ctrl_c_is_heard() -> None:
    code = "import os, sys; old = {*sys.modules}; import tallybook.__main__ as loaded"
    toolkit = Path(tallybook.__file__).parents[1]
    done = run(toolkit, sys.executable, "-S", "-c", code + "; print(*{*sys.modules} - old)")
    assert set(done.stdout.split()) == {"tallybook", "tallybook.__main__"}
