"""Kubernetes: a CronJob an entry."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from tallybook.runbook.schedule.definitions.written import (
    CLEAN_OR_FINDINGS,
    File,
    Where,
    label,
    plain_cron,
    require_apart,
    yaml,
)
from tallybook.runbook.schedule.plan import Planned

_HEAD = """\
# kubectl apply -f FILE
# Set: the image (Python with tallybook[ops,alerts]); the volume claims tallybook-book and
# tallybook-out; the config map tallybook-runbooks (runbooks.toml and your notebooks); the secret
# tallybook-schedule (variables of env:NAME).
# Missed times and changes of the clock: Kubernetes has its own rules.
"""
_LATE_S = {"skip": 60, "once": 86_400, "all": 86_400}


def files(plan: Sequence[Planned], _where: Where) -> list[File]:
    """One file an entry."""
    require_apart(plan)
    return [File(f"{label(one)}.yaml", _HEAD + yaml(_cron_job(one))) for one in plan]


def _cron_job(one: Planned) -> dict[str, Any]:
    entry = one.entry
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": label(one)},
        "spec": {
            "schedule": plain_cron(one, "Kubernetes"),
            "timeZone": entry.zone,
            "concurrencyPolicy": "Forbid",
            "startingDeadlineSeconds": _LATE_S[entry.missed],
            "jobTemplate": {
                "spec": {
                    "backoffLimit": 0,
                    "activeDeadlineSeconds": round(entry.deadline_s) + 60,
                    "template": {"spec": _pod(one)},
                }
            },
        },
    }


def _pod(one: Planned) -> dict[str, Any]:
    run = ["tallybook", "runbook", "schedule", "--now", one.entry.name]
    command = shlex.join([*run, "--book", "/book", "--out", "/out"])
    places = {"book": "/book", "out": "/out", "runbooks": "/schedule/runbooks"}
    container = {
        "name": "tallybook",
        "image": "tallybook:latest",
        "workingDir": "/schedule",
        "command": ["sh", "-c", f"{command} {CLEAN_OR_FINDINGS}"],
        "envFrom": [{"secretRef": {"name": "tallybook-schedule", "optional": True}}],
        "volumeMounts": [
            {"name": name, "mountPath": path, "readOnly": name == "runbooks"}
            for name, path in places.items()
        ],
    }
    claims = [
        {"name": name, "persistentVolumeClaim": {"claimName": f"tallybook-{name}"}}
        for name in ("book", "out")
    ]
    config = {"name": "runbooks", "configMap": {"name": "tallybook-runbooks"}}
    return {"restartPolicy": "Never", "containers": [container], "volumes": [*claims, config]}
