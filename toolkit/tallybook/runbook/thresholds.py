"""What counts as a finding: the figures of ``[thresholds]`` in runbooks.toml, with defaults.

A field's default gives its type; its name ends in its unit. A value below 0 is refused.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Above which figure a runbook speaks of a finding; a new one is a new field here."""
