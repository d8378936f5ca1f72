"""Altair's widget with its scripts from this machine: Vega and its kin come with vl-convert.

Putting them together takes two seconds of a core, so ``tallybook lab`` has a process of its own do
it while JupyterLab starts, and kernels read the file. Without one a kernel does it itself, in a
thread, while the log is read.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tallybook import whole
from tallybook.imports import late_grammar

OUT, FOLDER = "TALLYBOOK_LAB_OUT", "lab-settings"
_SHOWN = {"renderer": "svg", "actions": False}
_QUIET_MS = 150
_begun: list[Future[Any]] = []


def begin() -> None:
    """Start to load the widget; once in a process."""
    if not _begun:
        pool = ThreadPoolExecutor(1, thread_name_prefix="tallybook-scripts")
        _begun.append(pool.submit(_loaded))
        pool.shutdown(wait=False)


def widget(chart: Any) -> Any:
    """An ``altair.JupyterChart`` that needs no network; a drag is told when it rests."""
    begin()
    return _begun[0].result()(
        chart, debounce_wait=_QUIET_MS, max_wait=False, embed_options=dict(_SHOWN)
    )


def scripts(out: Path) -> Path:
    """The file of the scripts in the folder ``out``, of the versions that are installed."""
    versions = (version("altair"), version("vl-convert-python"))
    return out / FOLDER / "charts-{}-{}.js".format(*versions)


def write(path: Path) -> None:
    """Put the scripts together and leave them in ``path``."""
    made = _altair().JupyterChart
    made.enable_offline(True)
    whole.put(path, made._esm.encode())


def _altair() -> Any:
    with late_grammar():
        import altair

    return altair


def _loaded() -> Any:
    made = _altair().JupyterChart
    kept = scripts(Path(os.environ[OUT])) if OUT in os.environ else None
    if kept and kept.is_file():
        made._esm, made._is_offline = kept.read_text("utf-8"), True  # as enable_offline leaves it
    made.enable_offline(True)
    return made


if __name__ == "__main__":
    write(Path(sys.argv[1]))
