"""What an empty parameter stands for: the export beside the book, the job most worth a look."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tallybook.errors import BadInput
from tallybook.layout import Layout

if TYPE_CHECKING:
    from tallybook.ops import Warehouse

_EXPORT = Path("exports") / "airports.csv"


def export_or_sample(export: str, book: Path) -> Path | None:
    """``export``, or where it is empty the sample's: ``exports/airports.csv`` beside the book.

    None for an imported log: it has no cache to compare, and no export beside it.
    Raises BadInput where there is no such file.
    """
    if not export and Layout(book).imported.exists():
        return None
    path = Path(export) if export else book.parent / _EXPORT
    if path.is_file():
        return path
    if export:
        raise BadInput(f"no export at {export}; name a file with -p export=FILE")
    raise BadInput(f"no {_EXPORT} beside the book {book}; name one with -p export=FILE")


def job_or_worst(warehouse: Warehouse, job: str) -> str:
    """``job``, or where it is empty the job most worth a look.

    That is the first of: a job with a stuck lease, one in the dead letters, one whose answer was
    lost, one tried again, the last one enqueued. Raises BadInput for a log without jobs.
    """
    from tallybook import ops

    if job:
        return job
    for detector in (ops.stuck_leases, ops.dead, ops.answer_lost, ops.retried):
        found = detector(warehouse)
        if found.height:
            return str(found["job_id"][0])
    last = warehouse.sql("from jobs order by job_id desc limit 1").pl()
    if last.is_empty():
        raise BadInput(f"no job in the log of {warehouse.book}")
    return str(last["job_id"][0])
