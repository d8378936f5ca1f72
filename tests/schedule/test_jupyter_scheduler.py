"""JupyterLab's own scheduler runs a runbook as it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tallybook.layout import carried
from tallybook.runbook.answers import carried_by
from tallybook.runbook.catalogue import tags_of

ROOT = Path(__file__).parents[2]


@pytest.fixture
def scheduler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """JupyterLab's scheduler with a database of its own, over the runbooks that we carry."""
    from jupyter_scheduler.environments import CondaEnvironmentManager
    from jupyter_scheduler.orm import create_tables
    from jupyter_scheduler.scheduler import Scheduler

    monkeypatch.setenv("TALLYBOOK_BOOK", str(ROOT / "data-samples" / "book"))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.chdir(tmp_path)
    database = f"sqlite:///{tmp_path}/scheduler.sqlite"
    create_tables(database)
    return Scheduler(
        root_dir=str(carried("runbooks")),
        environments_manager=CondaEnvironmentManager(),
        db_url=database,
    )


def test_the_scheduler_of_jupyterlab_runs_a_runbook_as_it_is(scheduler: Any) -> None:
    from jupyter_scheduler.executors import DefaultExecutionManager
    from jupyter_scheduler.models import CreateJob, DescribeJob
    from jupyter_scheduler.orm import Job

    assert DefaultExecutionManager.validate(
        DefaultExecutionManager, str(carried("runbooks") / "stuck_leases.ipynb")
    )
    asked = CreateJob(
        input_uri="stuck_leases.ipynb",
        input_filename="stuck_leases.ipynb",
        name="night",
        runtime_environment_name="here",
        runtime_environment_parameters={},
        output_formats=["ipynb"],
        parameters={"at": '""'},
    )
    with scheduler.db_session() as session:
        job = Job(**asked.dict(exclude_none=True, exclude={"input_uri"}))
        session.add(job)
        session.commit()
        paths = scheduler.get_staging_paths(DescribeJob.from_orm(job))
        job_id = job.job_id
    scheduler.copy_input_file("stuck_leases.ipynb", paths["input"])
    DefaultExecutionManager(job_id, scheduler.root_dir, scheduler.db_url, paths).process()
    described = scheduler.get_job(job_id)
    assert (described.status, described.status_message) == ("COMPLETED", None)
    cells = json.loads(Path(paths["ipynb"]).read_text("utf-8"))["cells"]
    answered = carried_by(output for cell in cells for output in cell.get("outputs", ()))
    assert answered is not None and answered.status == "findings"
    assert any("injected-parameters" in tags_of(cell) for cell in cells)
