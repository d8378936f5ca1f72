"""The newest events of a log, and those that come: across rolls, and while it is compressed."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator

from tallybook import packed
from tallybook.event import BadLine, Event, decode
from tallybook.layout import Layout
from tallybook.log.reader import Segment, lines, segments

_PAUSE_S = 0.1


class Tail:
    """A reader that stands in the log and remembers where. It takes no lock; a line that is no
    event is passed over."""

    def __init__(self, layout: Layout, pause: Callable[[float], None] = time.sleep) -> None:
        self._layout = layout
        self._pause = pause
        self._name = ""
        self._offset = 0

    def newest(self, limit: int) -> list[Event]:
        """The last ``limit`` events; ``coming`` goes on behind them."""
        newest: deque[Event] = deque()
        for item in reversed(segments(self._layout)):
            if self._name and len(newest) >= limit:
                break
            here = deque(self._read(item, 0), limit)
            newest.extendleft(list(reversed(here))[: limit - len(newest)])
        return list(newest)

    def coming(self) -> Iterator[Event]:
        """Every event after the last one given, for ever."""
        seen = None
        while True:
            if seen == (seen := self._look()):
                self._pause(_PAUSE_S)
                continue
            found = segments(self._layout)
            names = [item.name for item in found]
            start = names.index(self._name) if self._name in names else 0
            for item in found[start:]:
                offset = self._offset if item.name == self._name else 0
                self._name, self._offset = item.name, offset
                yield from self._read(item, offset)

    def _look(self) -> tuple[int, int]:
        """Folder time and size of the segment: both the same means that nothing came."""
        plain = self._layout.log / self._name
        size = plain.stat().st_size if self._name and plain.exists() else 0
        return self._layout.log.stat().st_mtime_ns, size

    def _read(self, item: Segment, offset: int) -> Iterator[Event]:
        """The whole lines of a segment; of the first one asked for, the end is remembered."""
        remembered = item.name == self._name or not self._name
        if remembered:
            self._name, self._offset = item.name, offset
        boot_id = item.opened.boot_id if item.opened else ""
        try:
            for line in lines(item.path, offset):
                if not line.whole:
                    return
                if remembered:
                    self._offset = line.end
                try:
                    yield decode(line.raw, item.writer, boot_id)
                except BadLine:
                    continue
        except (packed.Unreadable, FileNotFoundError):
            return
