"""Whom a long act tells how far it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Steps:
    """Whom to tell how far it is: segments read, of all; then events folded."""

    read: Callable[[int, int], None] = lambda *_: None
    folded: Callable[[int], None] = lambda _: None
