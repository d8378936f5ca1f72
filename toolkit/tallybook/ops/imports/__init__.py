"""imports: the job log of another system as a book, so that the runbooks serve it too.

    choosing     which profile, a small TOML file               choosing, parsing, profiles
    reading      files become rows of text, or are told         reading, rewriting, texts
    mapping      text is typed by rule, rows become events      fields, origins, mapping, sql
    writing      events as Parquet in a book of kind imported   writing
    reading on   such a book in the warehouse                   stored
    inspecting   proposes a profile, says what is unsure        inspecting, guessing

A row of the log is a job (``rows = "jobs"``), a state of a job (``"states"``, the furthest counts)
or an event of one (``"events"``). Either way each job becomes the events that a book has:
``job.enqueued`` when it was submitted, ``job.leased`` when it was started, and how it ended. Where
the log does not say when a job was submitted, ``job.enqueued`` stands at the first instant that it
does say, with reason ``submit_unknown``, and the models leave its wait unknown.

``position`` orders the events of a job by its life, also where its clocks run backwards; ``seq``
is the row of the log that an event comes from.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

from tallybook.ops.imports import choosing, mapping, writing
from tallybook.ops.imports.choosing import built_in, load
from tallybook.ops.imports.mapping import Counts
from tallybook.ops.imports.profile import Profile
from tallybook.ops.imports.texts import BadRow
from tallybook.ops.interrupts import interruptible

__all__ = ["BadRow", "Counts", "Imported", "Profile", "built_in", "import_jobs", "load"]


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import read and wrote. ``silent`` says what this log cannot say."""

    book: Path
    profile: str
    counts: Counts
    unknown_words: dict[str, int]
    unreadable: tuple[BadRow, ...]
    silent: Mapping[str, str]

    @property
    def complete(self) -> bool:
        """Whether every row of the files is accounted for in the book."""
        return not self.unreadable


def import_jobs(
    files: Sequence[str | Path],
    how: str | Profile,
    book: str | Path,
    *,
    replace: bool = False,
    at: datetime | None = None,
) -> Imported:
    """Import ``files``, read in their order as one log, into the new book ``book``.

    Raises BadInput before anything is written where a file or the profile does not fit.
    """
    given = how if isinstance(how, Profile) else choosing.load(how)
    place = Path(book)
    writing.require_room(place, replace)
    moment = (at or datetime.now(UTC)).isoformat()
    with TemporaryDirectory(prefix="tallybook-import-") as aside, _connect() as connection:
        with interruptible(connection):
            paths = [Path(file) for file in files]
            mapped = mapping.map_files(connection, paths, given, Path(aside))
            record = writing.write(place, mapped, given, place.resolve().name, moment)
        counts = Counts(**record.counts)
        return Imported(place, given.name, counts, mapped.unknown_words,
                        tuple(mapped.unreadable), record.silent)  # fmt: skip


def _connect() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    connection.execute("load icu")
    return connection
