"""The columns of the table ``jobs`` and the statements that name them."""

from __future__ import annotations

from collections.abc import Mapping

from tallybook import statements
from tallybook.job import Job

COLUMNS = tuple(name.removesuffix("_json") for name in Job._fields)
_NARROW = {"payload": "'' as payload", "result": "null as result"}
_KEYED = _NARROW | {"payload": "substr(payload, 1, 1) as payload"}
FIRST_CHANGING = COLUMNS.index("status")


def statements_of_jobs() -> Mapping[str, str]:
    """The statements of ``queue.sql``; a row that they read or write is a ``Job``."""
    filled = {
        "{columns}": ", ".join(COLUMNS),
        "{keyed}": ", ".join(_KEYED.get(name, name) for name in COLUMNS),
        "{narrow}": ", ".join(_NARROW.get(name, name) for name in COLUMNS),
        "{marks}": ", ".join("?" * len(COLUMNS)),
        "{changes}": ", ".join(f"{name} = ?" for name in COLUMNS[FIRST_CHANGING:]),
    }
    found = dict(statements.load("tallybook.queue", "queue.sql"))
    for name, text in found.items():
        for mark, words in filled.items():
            text = text.replace(mark, words)
        found[name] = text
    return found
