"""Airflow 3: a DAG an entry."""

from __future__ import annotations

from collections.abc import Sequence

from tallybook.runbook.schedule.definitions.written import (
    CLEAN_OR_FINDINGS,
    File,
    Where,
    label,
    plain_cron,
    require_apart,
)
from tallybook.runbook.schedule.plan import Planned

_DAG = '''\
"""{name}: a DAG for the folder of DAGs; it needs apache-airflow-providers-standard."""

from datetime import timedelta

import pendulum
from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG, CronTriggerTimetable

with DAG(
    dag_id={label!r},
    schedule=CronTriggerTimetable({cron!r}, timezone={zone!r}),
    start_date=pendulum.datetime(2026, 1, 1, tz={zone!r}),
    # Missed times ({missed}); changes of the clock go by Airflow's own rules.
    catchup={catchup},
    max_active_runs=1,
):
    BashOperator(
        task_id="run",
        bash_command={command!r},
        execution_timeout=timedelta(seconds={timeout:.0f}),
        retries=0,
    )
'''


def files(plan: Sequence[Planned], where: Where) -> list[File]:
    """One file an entry."""
    require_apart(plan)
    return [_file(one, where) for one in plan]


def _file(one: Planned, where: Where) -> File:
    name = label(one)
    text = _DAG.format(
        name=name,
        label=name,
        cron=plain_cron(one, "Airflow"),
        zone=one.entry.zone,
        missed=one.entry.missed,
        catchup=one.entry.missed == "all",
        command=_untouched(f"{where.shell(one)} {CLEAN_OR_FINDINGS}"),
        timeout=one.entry.deadline_s + 60,
    )
    return File(f"{name.replace('-', '_')}.py", text)


def _untouched(command: str) -> str:
    """``command`` as Jinja leaves it; it ends in no ``.sh``, which Airflow would read as a file."""
    braced = any(mark in command for mark in ("{{", "{%", "{#"))
    return f"{{% raw %}}{command}{{% endraw %}} " if braced else f"{command} "
