"""What a log cannot say, said where its rows would stand."""

from dataclasses import dataclass
from typing import Any

import polars

from tallybook.ops.warehouse import Warehouse
from tallybook.ops.wording import sentence


@dataclass(frozen=True, slots=True)
class Silence:
    """One sentence, shown by a notebook in place of a table that could only be empty."""

    words: str

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        return {"text/plain": self.words}


def or_silence(
    warehouse: Warehouse, what: str, rows: polars.DataFrame
) -> polars.DataFrame | Silence:
    """``rows``; where they hold no value and the log cannot speak of ``what``, why not.

    ``what`` is one of the names of ``warehouse.silent``: cache, leases, workers, settings, …
    """
    told = warehouse.silent.get(what)
    known = any(column.null_count() < rows.height for column in rows)
    return rows if known or told is None else Silence(sentence(told))
