"""Named SQL statements, kept in a ``.sql`` file beside the module that runs them.

-- name: ready
-- the jobs that may be claimed now, in claim order
select …

"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def load(package: str, file: str) -> Mapping[str, str]:
    """The statements of ``file`` in ``package`` by name."""
    parts = _NAME.split(files(package).joinpath(file).read_text("utf-8"))
    return {name: text.strip() for name, text in zip(parts[1::2], parts[2::2], strict=True)}
