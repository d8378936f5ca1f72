"""What passes by itself, such as a full disk or a log held by another: it is waited for."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from tallybook.errors import NotNow, TallybookError

log = logging.getLogger("tallybook.worker")
_AGAIN_S = 1.0
_COMPLAIN_S = 30.0
_Answer = TypeVar("_Answer")


class Patience:
    """How one worker waits; its threads share it."""

    def __init__(self) -> None:
        self._complained_s: dict[str, float] = {}

    def until_now(self, change: Callable[[], _Answer]) -> _Answer:
        """Make a change; where something passing is in the way, wait and try again."""
        while True:
            try:
                return change()
            except NotNow as error:
                self.again_later(error)

    def again_later(self, error: NotNow) -> None:
        """Say what is in the way, and wait a second."""
        self.complain("%s; trying again", error)
        time.sleep(_AGAIN_S)

    def complain(self, words: str, error: TallybookError | str) -> None:
        """Tell what is in the way, each kind twice a minute at most."""
        now_s = time.monotonic()
        if now_s - self._complained_s.get(words, -_COMPLAIN_S) >= _COMPLAIN_S:
            self._complained_s[words] = now_s
            log.warning(words, error)
