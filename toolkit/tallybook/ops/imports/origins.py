"""From where the times of a file count: an instant that its own remarks name."""

import re
from pathlib import Path

from tallybook.errors import BadInput
from tallybook.ops.imports.profile import UNITS, Times


def origin_us(head: str, times: Times, path: Path) -> int:
    """The microseconds of the origin in the first lines of a file; 0 where none is asked for.

    Raises BadInput where the profile asks for one and the file has none.
    """
    if not times.origin:
        return 0
    found = re.search(times.origin, head, re.MULTILINE)
    if not found or not found[1].isdecimal():
        raise BadInput(f"{path}: [time] origin {times.origin!r} finds no number in its first lines")
    return int(int(found[1]) * UNITS[times.format])
