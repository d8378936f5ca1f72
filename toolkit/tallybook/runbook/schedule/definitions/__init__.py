"""The schedule in the words of other systems: systemd, cron, Kubernetes, Airflow, GitHub.

Each definition calls ``tallybook runbook schedule --now ENTRY`` at its times. Parameters, deadline,
thresholds and alerts stay in runbooks.toml; times, zone and deadline are also in the definition.
What a system cannot say is refused; rules of its own for missed times and for changes of the clock
stand in a comment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tallybook.runbook.schedule.definitions import airflow, crontab, github, kubernetes, systemd
from tallybook.runbook.schedule.definitions.written import File, Where
from tallybook.runbook.schedule.plan import Planned

KINDS: dict[str, Callable[[Sequence[Planned], Where], list[File]]] = {
    "systemd": systemd.files,
    "crontab": crontab.files,
    "kubernetes": kubernetes.files,
    "airflow": airflow.files,
    "github": github.files,
}

__all__ = ["KINDS", "File", "Where"]
