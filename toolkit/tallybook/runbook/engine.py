"""Execution by papermill, with what papermill leaves open closed.

- A kernel that dies is an error of the cell that ran, and later cells are not marked completed.
- A run and each of its cells end at their deadline.
- No kernel outlives the run: also Ctrl-C in the middle shuts it down. A warm one outlives it
  until its owner closes it.
"""

from __future__ import annotations

import json
import logging
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson

from tallybook.errors import BadInput, NoRoom, is_no_room
from tallybook.imports import late_grammar
from tallybook.runbook import kernels
from tallybook.runbook.kernels import Allowance, Deadline, Noise, Warm

ENGINE = "tallybook"
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
    """One execution to make. ``folder`` takes the notebook and, of a run that fails, what the
    kernel printed past its cells, unless ``quiet``. Seconds are 0 where there is no deadline."""

    source: Path
    folder: Path
    parameters: Mapping[str, Any]
    environment: Mapping[str, str]
    progress: Callable[[int, int], None] | None = None
    deadline_s: float = 0.0
    cell_deadline_s: float = 0.0
    quiet: bool = False

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
    noise: Noise
    deadline: Deadline
    warm: Warm | None = None
    cell: str = ""
    allowance: Allowance = field(default_factory=Allowance)


def require(package: str) -> None:
    """Raise BadInput that names the extra where ``package`` is not installed."""
    if find_spec(package) is None:
        raise BadInput(f"runbooks need {package}; run: pip install 'tallybook[ops]'")


def execute(job: Job, warm: Warm | None = None) -> Failure | None:
    """Run the notebook, in a new kernel or in the ``warm`` one; None where every cell ended well.

    Raises NoRoom where the disk does not take the notebook.
    """
    with warnings.catch_warnings(), late_grammar():
        warnings.simplefilter("ignore")
        import papermill
    logging.getLogger("papermill").setLevel(logging.ERROR)  # its doubts of parameters: ours decide
    noise = warm.noise if warm else Noise()
    noise.begin()
    deadline = Deadline.of(job.deadline_s, job.cell_deadline_s)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        failure = _papermill(papermill, _Watch(job, noise, deadline, warm))
        births = 1
        while _is_stillborn(failure) and births < _BIRTHS:
            watch = _Watch(job, noise, deadline, warm)
            failure, births = _papermill(papermill, watch), births + 1
    if failure and not job.quiet:
        noise.keep(job.noise)
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
    except Exception as error:  # whatever ended the run is its honest result
        if isinstance(error, OSError) and is_no_room(error):
            raise NoRoom(f"{job.notebook}: {error.strerror}") from error
        return _ended(watch, error)
    return None


def _ended(watch: _Watch, error: Exception) -> Failure:
    """The failure that an error of the engine is; a warm kernel is not used again after it."""
    if watch.warm:
        watch.warm.close()
    name = type(error).__name__
    if name == "CellTimeoutError":
        return Failure(watch.cell, "deadline", watch.deadline.said)
    if name == "DeadKernelError":
        return Failure(watch.cell, name, "its kernel died; killed, or out of memory?")
    return Failure(watch.cell, name, str(error) or "no message")


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
            made = kernels.options(watch.deadline.left)
            start = options.get("start_timeout", 60)
            client = kernels.client_class(papermill)(
                nb_man, kernel_name=kernel_name, startup_timeout=start, **made
            )
            client.allowance = watch.allowance
            return _warmly(client, watch) if watch.warm else _coldly(client, watch)

    return Engine


def _coldly(client: Any, watch: _Watch) -> Any:
    """Execute in a kernel of its own, which ends with the run."""
    job, noise = watch.job, watch.noise.file
    environment = kernels.environment(job.environment, str(job.folder / ".ipython"))
    return client.execute(stdout=noise, stderr=noise, env=environment)


def _warmly(client: Any, watch: _Watch) -> Any:
    """Execute in the kernel that is already there; the first run starts it."""
    warm, noise = watch.warm or Warm(), watch.noise.file
    client.owns_km = False
    client.km, client.kc = warm.manager or client.create_kernel_manager(), warm.client
    if warm.client:
        kernels.fresh(client, watch.job.environment)
    warm.manager = client.km
    environment = kernels.environment(watch.job.environment, warm.home())
    try:
        return client.execute(stdout=noise, stderr=noise, env=environment)
    finally:
        warm.client = client.kc


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
        watch.allowance.end(cell)
        complete(cell, cell_index, **rest)

    def save(**_: Any) -> None:
        _save(nb_man.nb, watch.job.notebook)

    nb_man.cell_start, nb_man.cell_complete, nb_man.save = cell_start, cell_complete, save


def _save(notebook: Any, path: Path) -> None:
    """Put the notebook as it is in place of the one before, whole: who is killed here leaves one
    that can be read. papermill's own way takes half of the time of a short run."""
    aside = path.with_suffix(".new")
    try:
        text = orjson.dumps(notebook)
    except TypeError:  # a lone surrogate in what a cell printed
        text = json.dumps(notebook).encode()
    aside.write_bytes(text)
    aside.replace(path)


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
