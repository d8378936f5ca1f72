"""What all definitions are made of: the command, names, the fields of cron, YAML."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tallybook.errors import BadInput
from tallybook.runbook.schedule.plan import Planned

CLEAN_OR_FINDINGS = "|| [ $? -eq 1 ]"
"""After a command in a shell: exit code 1, findings, is no failure of the timer."""

_ONLY_OURS = re.compile(r"[LW#]", re.I)
_NAMES = re.compile(r"[A-Za-z]{3}")


@dataclass(frozen=True, slots=True)
class File:
    """One file of a definition."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Where:
    """Where it runs: ``folder`` has the runbooks; ``book`` and ``out`` as they are passed on."""

    folder: Path
    book: Path
    out: Path

    def command(self, one: Planned) -> list[str]:
        """What the timer of another system calls on this machine."""
        run = [sys.executable, "-m", "tallybook", "runbook", "schedule"]
        return [*run, "--now", one.entry.name, "--book", str(self.book), "--out", str(self.out)]

    def shell(self, one: Planned) -> str:
        """The command with its folder, for a shell."""
        return f"cd {shlex.quote(str(self.folder))} || exit 2; {shlex.join(self.command(one))}"


def label(one: Planned, most: int = 52) -> str:
    """The name of an entry as systems take it: small letters, digits and ``-``."""
    text = re.sub(r"[^a-z0-9]+", "-", one.entry.name.lower()).strip("-") or "entry"
    return f"tallybook-{text}"[:most].rstrip("-")


def require_apart(plan: Sequence[Planned]) -> None:
    """Raise BadInput where two entries would get one name."""
    seen: dict[str, str] = {}
    for one in plan:
        name = label(one)
        if name in seen:
            raise BadInput(
                f"the entries {seen[name]} and {one.entry.name} would both be {name}: rename one"
            )
        seen[name] = one.entry.name


def plain_cron(one: Planned, system: str) -> str:
    """The expression where every cron can read it; raises BadInput for what is ours alone."""
    fields = one.entry.cron.split()
    if any(_ONLY_OURS.search(_NAMES.sub("", fields[place])) for place in (2, 4)):
        raise BadInput(
            f"entry {one.entry.name}: cron {one.entry.cron!r}: {system} knows no L, W and #; "
            "write days as numbers or names"
        )
    return " ".join(fields)


def references(one: Planned) -> list[str]:
    """The names of the variables that its alerts and parameters refer to as ``env:NAME``."""
    told = [target for alerts in one.alerts.values() for target in alerts.targets]
    told += one.entry.parameters.values()
    return sorted({text.removeprefix("env:") for text in told if text.startswith("env:")})


def yaml(value: Any, indent: int = 0) -> str:
    """``value``, JSON-like, as YAML in blocks; every text is quoted as in JSON, which is YAML."""
    pad = " " * indent
    if isinstance(value, Mapping) and value:
        return "".join(f"{pad}{_key(name)}:{_inside(one, indent)}" for name, one in value.items())
    if isinstance(value, list) and value:
        return "".join(f"{pad}- {yaml(one, indent + 2)[indent + 2 :]}" for one in value)
    return f"{pad}{json.dumps(value)}\n"


def _inside(value: Any, indent: int) -> str:
    if isinstance(value, Mapping | list) and value:
        return "\n" + yaml(value, indent + 2)
    return f" {json.dumps(value)}\n"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z][\w-]*", name) and name != "on" else json.dumps(name)
