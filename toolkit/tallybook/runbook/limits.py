"""How long a run may take and how many are kept: ``[runs]`` of runbooks.toml, or the options.

[runs]
deadline_s = 3600      # seconds of a run; 0: none
cell_deadline_s = 0    # seconds of one cell; 0: those of the run
keep = 0               # so many runs of a runbook are kept; 0: all
keep_days = 0          # runs older than that are removed; 0: none
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from tallybook.errors import BadInput

_MOST = 10**9


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds, runs and days; 0 stands for no limit."""

    deadline_s: float = 3600.0
    cell_deadline_s: float = 0.0
    keep: int = 0
    keep_days: float = 0.0

    def __post_init__(self) -> None:
        for item in fields(self):
            _require(item.name, getattr(self, item.name), whole=item.name == "keep")

    def asked(self, **given: float | None) -> Limits:
        """These, with what was given in place of what the file says."""
        told: dict[str, Any] = {name: one for name, one in given.items() if one is not None}
        return replace(self, **told)


def _require(name: str, value: Any, *, whole: bool) -> None:
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        raise BadInput(f"{name}: write a {'whole ' * whole}number, not {value!r}")
    if not 0 <= value <= _MOST:
        raise BadInput(f"{name}: {value} is not 0 to {_MOST}")
