"""Execution by papermill, with what papermill leaves open closed.

- The kernel runs the Python of this process, whatever kernels the user has installed,
  and no start-up files of the user's IPython. What is said to it is encrypted.
- What kernel and Jupyter print goes to a file, not to the terminal.
- A kernel that dies is an error of the cell that ran, and later cells are not marked completed.
- No kernel outlives the run: also Ctrl-C in the middle shuts it down.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from tallybook.errors import BadInput
from tallybook.imports import late_grammar

ENGINE = "tallybook"
TABLES = {"POLARS_FMT_STR_LEN": "120", "POLARS_FMT_MAX_ROWS": "60", "POLARS_FMT_MAX_COLS": "40"}
_QUIET = {"PYDEVD_DISABLE_FILE_VALIDATION": "1"}
_KERNEL = "python3"
_INJECTED = "injected-parameters"
_STILLBORN = "Kernel died before replying to kernel_info"
_BIRTHS = 3


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a notebook did not reach its end: the cell (``""`` where none ran) and the error."""

    cell: str
    error: str
    message: str


@dataclass(frozen=True, slots=True)
class Job:
    """One execution to make. ``folder`` takes the notebook and the kernel's own output."""

    source: Path
    folder: Path
    parameters: Mapping[str, Any]
    environment: Mapping[str, str]
    progress: Callable[[int, int], None] | None = None

    @property
    def notebook(self) -> Path:
        """Where the executed notebook is written, cell by cell."""
        return self.folder / "notebook.ipynb"

    @property
    def noise(self) -> Path:
        """What the kernel printed past its cells."""
        return self.folder / "kernel.log"


@dataclass(slots=True)
class _Watch:
    """How far the run is, for the progress line and for naming the cell of an error."""

    job: Job
    noise: IO[bytes]
    cell: str = ""


def require(package: str) -> None:
    """Raise BadInput that names the extra where ``package`` is not installed."""
    if find_spec(package) is None:
        raise BadInput(f"runbooks need {package}; run: pip install 'tallybook[ops]'")


def execute(job: Job) -> Failure | None:
    """Run the notebook in a new kernel; None where every cell ended well."""
    with warnings.catch_warnings(), late_grammar():
        warnings.simplefilter("ignore")
        import papermill
    logging.getLogger("papermill").setLevel(logging.ERROR)  # its doubts of parameters: ours decide
    with job.noise.open("wb") as noise, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        failure = _papermill(papermill, _Watch(job, noise))
        births = 1
        while _is_stillborn(failure) and births < _BIRTHS:
            failure, births = _papermill(papermill, _Watch(job, noise)), births + 1
    if job.noise.stat().st_size == 0 or failure is None:
        job.noise.unlink()
    return failure


def _is_stillborn(failure: Failure | None) -> bool:
    """Whether the kernel died before any cell ran: kernels that start at one time may be given one
    port, and nothing of the notebook has happened yet."""
    return failure is not None and not failure.cell and failure.message == _STILLBORN


def _papermill(papermill: Any, watch: _Watch) -> Failure | None:
    job = watch.job
    papermill.engines.papermill_engines.register(ENGINE, _engine(papermill))
    try:
        papermill.execute_notebook(
            _braced(job.source),
            _braced(job.notebook),
            dict(job.parameters),
            engine_name=ENGINE,
            kernel_name=_KERNEL,
            language="python",
            progress_bar=False,
            autosave_cell_every=0,
            watch=watch,
        )
    except papermill.PapermillExecutionError as error:
        return Failure(watch.cell, error.ename, error.evalue)
    except Exception as error:  # noqa: BLE001 - whatever ended the run is its honest result
        return Failure(watch.cell, type(error).__name__, _said(error))
    return None


def _said(error: Exception) -> str:
    if type(error).__name__ == "DeadKernelError":
        return "its kernel died; killed, or out of memory?"
    return str(error) or "no message"


def _braced(path: Path) -> str:
    """papermill formats paths with the parameters; a brace in a folder's name is only a brace."""
    return str(path).replace("{", "{{").replace("}", "}}")


def _engine(papermill: Any) -> Any:
    """papermill's nbclient engine with our kernel and our eyes on its cells."""

    class Engine(papermill.engines.NBClientEngine):  # type: ignore[misc] # papermill is untyped
        @classmethod
        def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, **options: Any) -> Any:
            watch: _Watch = options["watch"]
            _follow(nb_man, watch)
            client = papermill.engines.PapermillNotebookClient(
                nb_man,
                kernel_name=kernel_name,
                kernel_manager_class=_kernel(),
                startup_timeout=options.get("start_timeout", 60),
                shutdown_kernel="immediate",
                log=_silent(),
            )
            environment = {**os.environ, **_QUIET, **TABLES, **watch.job.environment}
            environment["IPYTHONDIR"] = str(watch.job.folder / ".ipython")
            return client.execute(stdout=watch.noise, stderr=watch.noise, env=environment)

    return Engine


def _silent() -> logging.Logger:
    """nbclient says in its log what it also raises; the result of the run tells it once."""
    logger = logging.getLogger(__name__)
    logger.setLevel(logging.CRITICAL + 1)
    return logger


def _kernel() -> Any:
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


def _follow(nb_man: Any, watch: _Watch) -> None:
    """Have papermill's record of the cells tell ``watch``, and mark as failed what failed."""
    start, complete = nb_man.cell_start, nb_man.cell_complete
    total = len(nb_man.nb.cells)

    def cell_start(cell: Any, cell_index: int | None = None, **rest: Any) -> None:
        watch.cell = _named(nb_man.nb.cells, cell_index or 0)
        if watch.job.progress:
            watch.job.progress((cell_index or 0) + 1, total)
        start(cell, cell_index, **rest)

    def cell_complete(cell: Any, cell_index: int | None = None, **rest: Any) -> None:
        if sys.exc_info()[0] is not None:
            cell.metadata.papermill["status"] = nb_man.FAILED
        complete(cell, cell_index, **rest)

    nb_man.cell_start, nb_man.cell_complete = cell_start, cell_complete


def _named(cells: Sequence[Any], index: int) -> str:
    """The cell by its number in the stored notebook, where papermill's own cell is not."""
    added = sum(_INJECTED in cell.metadata.get("tags", ()) for cell in cells[:index])
    name = cells[index].get("id") or ""
    return f"cell {index + 1 - added}" + (f" ({name})" if name else "")


def loaded(path: Path) -> dict[str, Any] | None:
    """The executed notebook, or None where the run ended before one was written."""
    try:
        notebook = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return notebook if isinstance(notebook, dict) else None
