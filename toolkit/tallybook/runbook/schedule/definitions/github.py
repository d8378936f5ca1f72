"""GitHub Actions: a workflow an entry."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tallybook.errors import BadInput
from tallybook.runbook.schedule.definitions.written import (
    CLEAN_OR_FINDINGS,
    File,
    Where,
    label,
    plain_cron,
    references,
    require_apart,
    yaml,
)
from tallybook.runbook.schedule.plan import Planned

_HEAD = """\
# .github/workflows/{label}.yaml
# Times are in UTC and can be some minutes late; what was missed is not run.
# The repository has the runbooks and, in book/, a copy of the book; what alerts were told is kept
# from run to run in the cache.
"""
_UTC = ("UTC", "Etc/UTC", "Etc/GMT", "GMT", "Etc/Zulu", "Zulu")


def files(plan: Sequence[Planned], _where: Where) -> list[File]:
    """One file an entry."""
    require_apart(plan)
    return [
        File(f"{label(one)}.yaml", _HEAD.format(label=label(one)) + yaml(_workflow(one)))
        for one in plan
    ]


def _workflow(one: Planned) -> dict[str, Any]:
    entry = one.entry
    if entry.zone not in _UTC:
        raise BadInput(
            f"entry {entry.name}: GitHub's schedule knows UTC alone, and the zone is {entry.zone}; "
            'write the times in UTC and zone = "UTC"'
        )
    return {
        "name": label(one),
        "on": {"schedule": [{"cron": plain_cron(one, "GitHub")}], "workflow_dispatch": {}},
        "permissions": {"contents": "read"},
        "concurrency": {"group": label(one), "cancel-in-progress": False},
        "jobs": {
            "run": {
                "runs-on": "ubuntu-latest",
                "timeout-minutes": max(1, round(entry.deadline_s / 60) + 5),
                "steps": _steps(one),
            }
        },
    }


def _steps(one: Planned) -> list[dict[str, Any]]:
    run = ["tallybook", "runbook", "schedule", "--now", one.entry.name]
    command = shlex.join([*run, "--book", "book", "--out", "out"])
    told = "out/alerts"
    key = f"{label(one)}-${{{{ github.run_id }}}}"
    call: dict[str, Any] = {"name": "Run", "run": f"{command} {CLEAN_OR_FINDINGS}"}
    secrets = {name: f"${{{{ secrets.{name} }}}}" for name in references(one)}
    restored = {"path": told, "key": key, "restore-keys": f"{label(one)}-"}
    return [
        {"uses": "actions/checkout@v4"},
        {"uses": "actions/setup-python@v5", "with": {"python-version": "3.12"}},
        {"run": "pip install 'tallybook[ops,alerts]'"},
        {"uses": "actions/cache@v4", "with": restored},
        {**call, "env": secrets} if secrets else call,
        {
            "if": "always()",
            "uses": "actions/upload-artifact@v4",
            "with": {"name": label(one), "path": str(Path("out") / "reports")},
        },
    ]
