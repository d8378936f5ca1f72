"""The lossless load: segments become the table `lines`, and what cannot be read is accounted for.

DuckDB reads with declared columns, strictly, by one of three roads:

    proven     an archive that its manifest proves: kinds declared, nothing to be checked but that
               the rows, their first and last seq are those of the manifest
    clean      ``judge`` found a row in every line: numbers as JSON text, each cell checked
    spoiled    the same over a copy that ``judge`` made of the whole lines

A segment that does not come out as its road promises takes the next one.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

from tallybook.errors import TallybookError
from tallybook.layout import Layout, segment_name
from tallybook.ops import archive, statements
from tallybook.ops.fields import COLUMNS, PROVEN_COLUMNS
from tallybook.ops.judge import Verdict, judge
from tallybook.ops.openings import Opening
from tallybook.ops.proofs import Proof, proof
from tallybook.ops.survey import Survey

_LINE_LIMIT = 4 * 1024 * 1024
_BATCH_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Source:
    """A segment on its way: the file to read it from, and how many rows must come out."""

    path: Path
    file: Path
    opening: Opening
    rows: int = 0
    longest: int = 0
    proof: Proof | None = None

    @property
    def segment(self) -> str:
        """The name of the segment."""
        return self.opening.segment


def load(
    connection: duckdb.DuckDBPyConnection,
    place: Layout,
    paths: Sequence[Path],
    openings: Sequence[Opening],
) -> list[Verdict]:
    """Fill the table `lines` from ``paths``; a verdict for each segment that no manifest proves.

    ``openings`` are those of the whole log; the table `openings` holds them.
    """
    opening = {one.segment: one for one in openings}
    sources = [_source(place, path, opening[segment_name(path)]) for path in paths]
    with TemporaryDirectory(prefix="tallybook-load-") as aside:
        work = _Work(connection, Path(aside))
        proven = [source for source in sources if source.proof]
        left = [source for source in sources if not source.proof] + work.load_proven(proven)
        work.load_spoiled(work.load_judged(left))
        return [work.verdicts[path] for path in paths if path in work.verdicts]


def move(connection: duckdb.DuckDBPyConnection, found: Survey) -> None:
    """Bring segments of the archive into `lines`, at the positions that they have by now."""
    bases = {one.segment: one.base for one in found.openings}
    for entry in found.moved:
        file = str(archive.parquet(found.folder, entry.segment))
        connection.execute("delete from sources")
        named = {"file": file, "segment": entry.segment, "base": bases[entry.segment]}
        connection.execute(statements.query("add_source"), named)
        connection.execute(
            "insert into lines by name " + statements.model("moved"), {"files": [file]}
        )


def _source(place: Layout, path: Path, opening: Opening) -> _Source:
    found = proof(place, path)
    return _Source(path, path, opening, found.lines if found else 0, proof=found)


def _batches(sources: list[_Source]) -> Iterator[list[_Source]]:
    """The sources, about so many bytes at a time that DuckDB has a second's work."""
    batch: list[_Source] = []
    size = 0
    for source in sources:
        batch.append(source)
        size += source.path.stat().st_size
        if size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class _Work:
    """One load: where the rows go, a folder for copies, and what was found of each file."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, aside: Path) -> None:
        self.connection, self.aside = connection, aside
        self.verdicts: dict[Path, Verdict] = {}
        self._type("typing")
        (aside / "nothing").touch()
        self._read("create or replace table lines as ", [aside / "nothing"], COLUMNS)

    def load_proven(self, sources: list[_Source]) -> list[_Source]:
        """Read archives as their manifests prove them; those that do not come out so return."""
        self._type("typing_proven")
        return self._unlike(sources, self._insert(sources, PROVEN_COLUMNS))

    def load_judged(self, sources: list[_Source]) -> list[_Source]:
        """Judge segments and read them strictly; those that do not come out as judged return.

        While DuckDB reads some, the next are judged: so both cores have work.
        """
        self._type("typing")
        judged: list[_Source] = []
        reads: list[Future[list[_Source]]] = []
        with ThreadPoolExecutor(1) as reader:
            try:
                for batch in _batches(sources):
                    judged += (batch := [self.judged(source) for source in batch])
                    reads.append(reader.submit(self._insert, batch, COLUMNS))
                failed = [source for read in reads for source in read.result()]
            except BaseException:
                self.connection.interrupt()
                reader.shutdown(cancel_futures=True)
                raise
        return self._unlike(judged, failed)

    def load_spoiled(self, sources: list[_Source]) -> None:
        """Judge every line of each segment and read those that are whole, from a copy."""
        for source in sources:
            copied = self.judged(source, every_line=True)
            if self._unlike([copied], self._insert([copied], COLUMNS)):
                raise TallybookError(
                    f"{source.segment}: two readers disagree on which of its lines are whole; "
                    "please report this file as a bug"
                )
            copied.file.unlink()

    def judged(self, source: _Source, *, every_line: bool = False) -> _Source:
        """The source with a verdict; where it is not clean the file is a copy that is."""
        verdict = judge(source.path) if not every_line else None
        file = source.path
        if verdict is None or not verdict.is_clean:
            file = self.aside / source.segment
            with file.open("wb") as clean:
                verdict = judge(source.path, clean, every_line=every_line)
        self.verdicts[source.path] = verdict
        return replace(source, file=file, rows=verdict.rows, longest=verdict.longest, proof=None)

    def _type(self, macros: str) -> None:
        self.connection.execute(statements.model(macros))

    def _insert(self, sources: list[_Source], columns: dict[str, str]) -> list[_Source]:
        """Read what can be read; the sources that failed return. Halves find them."""
        if not sources:
            return []
        self._name(sources)
        limit = max(_LINE_LIMIT, *(2 * source.longest for source in sources))
        try:
            self._read("insert into lines ", [one.file for one in sources], columns, limit)
        except (duckdb.InvalidInputException, duckdb.IOException, duckdb.ConversionException):
            return self._insert_halves(sources, columns)
        return []

    def _insert_halves(self, sources: list[_Source], columns: dict[str, str]) -> list[_Source]:
        half = len(sources) // 2
        if not half:
            return sources
        return self._insert(sources[:half], columns) + self._insert(sources[half:], columns)

    def _name(self, sources: list[_Source]) -> None:
        self.connection.execute("delete from sources")
        rows = [{"file": str(one.file), "segment": one.segment, "base": one.opening.base}
                for one in sources]  # fmt: skip
        self.connection.executemany(statements.query("add_source"), rows)

    def _read(
        self, into: str, files: list[Path], columns: dict[str, str], limit: int = _LINE_LIMIT
    ) -> None:
        asked = {"files": [str(file) for file in files], "columns": columns, "line_limit": limit}
        self.connection.execute(into + statements.model("lines"), asked)

    def _unlike(self, sources: list[_Source], failed: list[_Source]) -> list[_Source]:
        """Those that failed or came out other than promised; their rows are taken out again."""
        found = self.connection.execute(statements.query("rows_by_segment")).fetchall()
        came = {segment: tuple(counts) for segment, *counts in found}
        unlike = [one for one in sources if one in failed or not _as_promised(one, came)]
        names = [one.segment for one in unlike]
        if names:
            self.connection.execute(statements.query("drop_segments"), [names])
        return unlike


def _as_promised(source: _Source, came: dict[str, tuple[int, ...]]) -> bool:
    rows, *ends = came.get(source.segment, (0, None, None))
    proof = source.proof
    return rows == source.rows and (not proof or ends == [proof.first_seq, proof.last_seq])
