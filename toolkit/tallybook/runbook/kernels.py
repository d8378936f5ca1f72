"""The kernel that runs the cells, and what stands between it and the notebook.

- It runs the Python of this process, whatever kernels the user has installed, and no start-up
  files of the user's IPython. What is said to it is encrypted.
- What it prints past its cells goes to a file, not to the terminal.
- A cell that prints without end is cut, with a sentence that says so.
- A cell that runs past a deadline is interrupted, so that the report shows where it was.
"""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

TABLES = {"POLARS_FMT_STR_LEN": "120", "POLARS_FMT_MAX_ROWS": "60", "POLARS_FMT_MAX_COLS": "40"}
MOST_PRINTED = 1_000_000
MOST_SHOWN = 20_000_000
_QUIET = {"PYDEVD_DISABLE_FILE_VALIDATION": "1"}
_MOST_NOISE = 1_000_000
_LAST_WORDS_S = 3.0
_IOPUB_S = 60
_FRESH = """
def _fresh(shell, cwd, gone, environment):
    import os
    os.chdir(cwd)
    [os.environ.pop(name, None) for name in gone]
    os.environ.update(environment)
    shell.user_ns["_oh"].clear()
    names = [name for name in shell.user_ns if name not in shell.user_ns_hidden]
    [shell.user_ns.pop(name) for name in names]

_fresh(get_ipython(), {cwd!r}, {gone!r}, {environment!r})
"""
_OURS = ("TALLYBOOK_BOOK", "TALLYBOOK_RUNBOOK")


class Noise:
    """What a kernel prints past its cells; of a run that failed the last of it is kept."""

    def __init__(self) -> None:
        self.file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the kernel
        self._begin = 0

    def begin(self) -> None:
        """What was printed before is not of this run."""
        self._begin = self.file.seek(0, os.SEEK_END)

    def keep(self, path: Path) -> None:
        """Write what was printed since, at most its last million bytes; no file of nothing."""
        end = self.file.seek(0, os.SEEK_END)
        self.file.seek(max(self._begin, end - _MOST_NOISE))
        said = self.file.read()
        self.file.seek(0, os.SEEK_END)
        if said:
            path.write_bytes(said)


@dataclass(slots=True)
class Warm:
    """A kernel that several runs share, one after the other, each with an empty namespace.

    What one of them imported stays imported, which is why the next is quick. A kernel that died,
    or was ended by a deadline, is followed by a new one.
    """

    noise: Noise = field(default_factory=Noise)
    manager: Any = None
    client: Any = None
    _home: Any = None

    def home(self) -> str:
        """A folder for the kernel's own files, gone with it."""
        if self._home is None:
            self._home = tempfile.TemporaryDirectory(prefix="tallybook-kernel-")
        return str(self._home.name)

    def close(self) -> None:
        """End the kernel and drop its files."""
        if self.manager is not None:
            ended(self.manager, self.client)
        self.manager = self.client = None
        if self._home is not None:
            self._home.cleanup()
            self._home = None


@dataclass(slots=True)
class Deadline:
    """When a run must have ended, by the monotonic clock, and how long a cell may take."""

    run_s: float
    cell_s: float
    until: float

    @classmethod
    def of(cls, run_s: float, cell_s: float) -> Deadline:
        """From now on; 0 stands for none."""
        return cls(run_s, cell_s, time.monotonic() + run_s if run_s else float("inf"))

    def left(self) -> float | None:
        """Seconds that a cell that begins now may take; None where it may take all time."""
        left = min(self.until - time.monotonic(), self.cell_s or float("inf"))
        return None if left == float("inf") else max(left, 0.001)

    @property
    def said(self) -> str:
        """What was over, after a cell was ended for it."""
        if time.monotonic() >= self.until:
            return f"the run took longer than {self.run_s:g} s; see --deadline"
        return f"it took longer than {self.cell_s:g} s; see --cell-deadline"


def environment(given: Mapping[str, str], home: str) -> dict[str, str]:
    """The environment of a new kernel."""
    return {**os.environ, **_QUIET, **TABLES, **given, "IPYTHONDIR": home}


def fresh(client: Any, given: Mapping[str, str]) -> None:
    """Empty the namespace of a kernel that ran before, and give it the place of the next run."""
    gone = [name for name in _OURS if name not in given]
    source = _FRESH.format(cwd=str(Path.cwd()), gone=gone, environment=dict(given))
    client.wait_for_reply(client.kc.execute(source, silent=True, store_history=False))


def ended(manager: Any, client: Any) -> None:
    """End a kernel at once, and the channels to it."""
    from jupyter_core.utils import run_sync

    async def end() -> None:
        if client is not None:
            client.stop_channels()
        if await manager.is_alive():
            await manager.shutdown_kernel(now=True)
        await manager.cleanup_resources()

    run_sync(end)()


def manager_class() -> Any:
    """A kernel manager that knows one kernel: ipykernel in this Python."""
    import zmq
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager

    class Kernel(AsyncKernelManager):
        def _kernel_spec_manager_default(self) -> Any:
            return KernelSpecManager(parent=self, kernel_dirs=[])

        def _transport_encryption_default(self) -> str:
            return "auto" if zmq.has("curve") else "disabled"

    return Kernel


def client_class(papermill: Any) -> Any:
    """papermill's client with our bounds on time and on what a cell may print."""
    from nbclient.exceptions import CellTimeoutError

    class Client(papermill.engines.PapermillNotebookClient):  # type: ignore[misc] # untyped
        allowance: Allowance

        def output(self, outs: Any, msg: Any, *rest: Any) -> Any:
            if not self.allowance.takes(msg):
                return None
            return super().output(outs, msg, *rest)

        async def _async_handle_timeout(self, timeout: Any, cell: Any = None) -> None:
            """Interrupt the cell and wait a little for its traceback, then give the run up."""
            await self.km.interrupt_kernel()
            until = time.monotonic() + _LAST_WORDS_S
            while time.monotonic() < until and not _has_error(cell):
                await asyncio.sleep(0.05)
            raise CellTimeoutError(str(timeout))

    return Client


def options(left: Callable[[], float | None]) -> dict[str, Any]:
    """What every client of ours is made with; ``left`` says how long the next cell may take."""
    return {
        "kernel_manager_class": manager_class(),
        "shutdown_kernel": "immediate",
        "timeout_func": lambda _cell: left(),
        "iopub_timeout": _IOPUB_S,
        "raise_on_iopub_timeout": False,
        "log": _silent(),
    }


@dataclass(slots=True)
class Allowance:
    """How much of what the cells print and show is kept; the rest is counted."""

    printed: int = 0
    shown: int = 0
    dropped: int = 0

    def takes(self, message: Any) -> bool:
        """Whether the output of ``message`` is kept; printed text is cut where it must be."""
        content = message["content"]
        if message["msg_type"] == "stream":
            text = content["text"]
            content["text"] = text[: max(0, MOST_PRINTED - self.printed)]
            self.printed += len(text)
            return bool(content["text"])
        size = sum(len(part) for part in content.get("data", {}).values() if isinstance(part, str))
        if self.shown + size > MOST_SHOWN:
            self.dropped += size
            return False
        self.shown += size
        return True

    def end(self, cell: Any) -> None:
        """After a cell: say in it what was not kept, and begin anew."""
        said = []
        if self.printed > MOST_PRINTED:
            said.append(f"printed {self.printed:,} characters; the first {MOST_PRINTED:,} are kept")
        if self.dropped:
            said.append(f"showed {self.shown + self.dropped:,} characters; {self.shown:,} are kept")
        for one in said:
            text = f"\n[cut: this cell {one}]\n"
            cell["outputs"].append(_stream(text))
        self.printed = self.shown = self.dropped = 0


def _stream(text: str) -> Any:
    from nbformat import v4

    return v4.new_output("stream", name="stdout", text=text)  # type: ignore[no-untyped-call] # of nbformat


def _has_error(cell: Any) -> bool:
    return any(output["output_type"] == "error" for output in cell["outputs"])


def _silent() -> logging.Logger:
    """nbclient says in its log what it also raises; the result of the run tells it once."""
    logger = logging.getLogger(__name__)
    logger.setLevel(logging.CRITICAL + 1)
    return logger
