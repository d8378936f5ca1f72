"""``import jobs --inspect``: which profile fits a file, tried on it, and what is unsure of it."""

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

from tallybook.errors import BadInput
from tallybook.ops.imports import choosing, guessing, mapping, parsing, reading
from tallybook.ops.imports.mapping import Mapped
from tallybook.ops.imports.profile import UNITS, Profile

_LINES = 5000
_BYTES = 1 << 24
_SAMPLES = 5
_LOCAL = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?![\d:.,]|Z| ?[+-]\d| ?UTC)"
)
_SAMPLE = ("job_id", "topic", "status", "submitted_at", "started_at", "ended_at", "worker")


@dataclass(frozen=True, slots=True)
class Proposal:
    """A profile for a file: ``toml`` to keep, jobs as it reads them, and what is unsure."""

    file: str
    profile: str
    built_in: bool
    toml: str
    samples: tuple[Mapping[str, Any], ...]
    unsure: tuple[str, ...]
    counts: Mapping[str, int]

    def as_json(self) -> dict[str, Any]:
        """What ``--inspect --json`` prints."""
        return asdict(self)

    def text(self) -> str:
        """A profile as TOML, with samples and doubts as remarks: it can be kept as it is."""
        parts = [f"# {self.file}: {self._head()}", ""]
        parts += [f"# unsure: {one}" for one in self.unsure]
        counts = [f"{name.replace('_', ' ')} {count:,}" for name, count in self.counts.items()
                  if count]  # fmt: skip
        parts += [f"# the first rows: {', '.join(counts)}"]
        for sample in self.samples:
            told = [f"{name} {value}" for name, value in sample.items() if value is not None]
            parts.append("#   " + ", ".join(told))
        return "\n".join([*parts, "", self.toml.rstrip()])

    def _head(self) -> str:
        if self.built_in:
            return f"use --profile {self.profile}, or change this copy of it"
        return "no profile of ours fits; this is a proposal"


@dataclass(frozen=True, slots=True)
class _Tried:
    profile: Profile
    counts: Mapping[str, int]
    samples: tuple[Mapping[str, Any], ...]
    unknown_words: tuple[str, ...]
    first_bad: str
    has_local_times: bool

    @property
    def badness(self) -> tuple[float, int]:
        """Less is better: the share of rows that do not fit, then jobs never seen to run."""
        share = self.counts["unreadable"] / max(1, self.counts["rows"])
        return share, self.counts["jobs"] - self.counts["open"] == 0


def inspect(file: str | Path, named: str | None = None, changes: Sequence[str] = ()) -> Proposal:
    """Propose how to read ``file``, or try the profile that is ``named`` on its first rows.

    Raises BadInput where the file is none that can be read, or the named profile does not fit.
    """
    path = Path(file)
    with TemporaryDirectory(prefix="tallybook-inspect-") as aside:
        sample = _sample(path, Path(aside))
        if named:
            tried = _try(sample, choosing.load(named, changes), Path(aside))
            return _proposal(path, tried, named in choosing.built_in(), ())
        fitting = [one for name in choosing.built_in() if (one := _fits(sample, name, aside))]
        if fitting:
            best = min(fitting, key=lambda one: one.badness)
            return _proposal(path, best, True, ())
        return _guessed(path, sample, Path(aside))


def _sample(path: Path, aside: Path) -> Path:
    """The first lines of a file under its own name; a JSON document whole, where it is small."""
    plain = reading.unpacked(path, aside)
    folder = aside / "sample"
    folder.mkdir()
    target = folder / path.name.removesuffix(".gz").removesuffix(".zst")
    with plain.open("rb") as source, target.open("wb") as file:
        if plain.stat().st_size <= _BYTES:
            file.write(source.read())
        else:
            file.writelines(itertools.islice(source, _LINES))
    return target


def _fits(sample: Path, name: str, aside: str) -> _Tried | None:
    changes = []
    if not choosing.load(name).times.has_year:
        changes.append(f"time.year={_year(sample)}")
    try:
        tried = _try(sample, choosing.load(name, changes), Path(aside))
    except BadInput:
        return None
    return tried if tried.counts["jobs"] and tried.badness[0] < 0.5 else None


def _year(sample: Path) -> int:
    return datetime.fromtimestamp(sample.stat().st_mtime, UTC).year


def _try(sample: Path, given: Profile, aside: Path) -> _Tried:
    folder = aside / f"try-{given.name}"
    folder.mkdir()
    with duckdb.connect() as connection:
        connection.execute("load icu")
        mapped = mapping.map_files(connection, [sample], given, folder)
        bad = [f"{one.place}: {one.reason}" for one in mapped.unreadable[:1]]
        return _Tried(given, asdict(mapped.counts), tuple(_samples(mapped)),
                      tuple(mapped.unknown_words), "".join(bad),
                      _has_local_times(sample, given))  # fmt: skip


def _has_local_times(sample: Path, given: Profile) -> bool:
    """Whether times of the file name no offset, as far as its text shows."""
    if given.times.format in UNITS:
        return False
    if given.times.format != "iso":
        return "%z" not in given.times.format
    with sample.open(encoding="utf-8", errors="replace") as file:
        return bool(_LOCAL.search(file.read(1 << 20)))


def _samples(mapped: Mapped) -> Iterator[dict[str, Any]]:
    """The first jobs, a row each, as text."""
    mapped.connection.execute(f"create view told_events as {mapped.sql}")
    mapped.connection.execute("set TimeZone = 'UTC'")
    found = mapped.connection.execute(mapping.statement("samples"), [_SAMPLES])
    for row in found.fetchall():
        yield dict(zip(_SAMPLE, row, strict=True))


def _proposal(path: Path, tried: _Tried, built_in: bool, unsure: tuple[str, ...]) -> Proposal:
    doubts = [*unsure, *_doubts(tried, built_in)]
    return Proposal(str(path), tried.profile.name, built_in, tried.profile.text, tried.samples,
                    tuple(doubts), tried.counts)  # fmt: skip


def _doubts(tried: _Tried, built_in: bool) -> Iterator[str]:
    given = tried.profile
    if built_in and given.times.zone == "UTC" and tried.has_local_times:
        yield "times without an offset are read as UTC: --set time.zone=… where they are local"
    if given.times.year:
        yield f"the times have no year: {given.times.year} is that of the file; say which it is"
    if tried.unknown_words:
        yield f"words that the profile does not know: {', '.join(tried.unknown_words[:10])}"
    if tried.first_bad:
        yield f"rows that cannot be read, the first is {tried.first_bad}"
    for name in ("negative_waits", "negative_runs", "repeated_ends", "ends_without_start"):
        if tried.counts.get(name):
            yield f"{tried.counts[name]:,} {name.replace('_', ' ')}: is a column the right one?"


def _guessed(path: Path, sample: Path, aside: Path) -> Proposal:
    head = sample.read_bytes()[: 1 << 20].decode("utf-8-sig", "replace")
    made = guessing.guess(head)
    if not made:
        first = "; ".join(repr(line[:80]) for line in head.splitlines()[:3])
        raise BadInput(f"{path}: no profile of ours fits and no column of times is found in it: "
                       f"{first}; write a profile, docs/imports.md says how")  # fmt: skip
    text = _toml(made.tables)
    given = parsing.parse("proposed", made.tables, str(path), text)
    try:
        tried = _try(sample, given, aside)
    except BadInput as error:
        unsure = (*made.unsure, f"this proposal does not read the file yet: {error}")
        return Proposal(str(path), "proposed", False, text, (), unsure, {})
    return _proposal(path, tried, False, tuple(made.unsure))


def _toml(tables: Mapping[str, Mapping[str, Any]]) -> str:
    parts = ['about = ""', ""]
    for name, table in tables.items():
        parts += [f"[{name}]"]
        parts += [f"{_key(key)} = {json.dumps(value, ensure_ascii=False)}"
                  for key, value in table.items()]  # fmt: skip
        parts.append("")
    return "\n".join(parts)


def _key(name: str) -> str:
    return name if name.replace("_", "").isalnum() else json.dumps(name)
