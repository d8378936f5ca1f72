"""The certificate of a rebuild: what is proven, what cannot be known, and why.

A key is *proven* where a full write of it stands behind everything that is missing or edited, else
*unknown*. Of the proven ones, *unsealed* are those whose last write stands in lines that no hash
covers: nobody would see an edit there. An invalidation is a write too; what it leaves is no key.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tallybook.ids import parity
from tallybook.log.reader import Position
from tallybook.recover.evidence import BadPlace
from tallybook.recover.folding import Folded
from tallybook.recover.pieces import Edit
from tallybook.recover.sentences import Keys, Told
from tallybook.recover.survey import Loss, Survey
from tallybook.recover.survivors import Surviving
from tallybook.settings import Settings

VERSION = 1


@dataclass(frozen=True, slots=True)
class Used:
    """A segment, or the lines that are left of it. ``hash`` is the chain behind its last line;
    ``state`` is sealed (a hash that was kept covers all of it), open, or damaged."""

    segment: str
    writer: str
    first_seq: int
    last_seq: int
    lines: int
    hash: str
    state: str
    first_at: str
    last_at: str


@dataclass(frozen=True, slots=True)
class Certificate:
    """All that is said of a rebuild. Times are RFC 3339; ``made_at`` is the only thing in it that
    differs when the same log is certified again."""

    v: int
    node_id: str
    made_at: str
    as_of: str | None
    base: str | None
    end: dict[str, Any]
    first_at: str | None
    last_at: str | None
    events_read: int
    events_used: int
    passed_over: int
    start_lost: bool
    doubled: int
    segments: list[Used]
    losses: list[Loss]
    edits: list[Edit]
    quarantined: list[BadPlace]
    missing_events: int
    keys: Keys
    unknown_keys: list[str]
    unsealed_keys: list[str]
    jobs: dict[str, int]
    unknown_jobs: list[str]
    payloads_lost: list[str]
    withheld: list[str]
    parity: str
    surviving: list[Surviving]
    statements: list[str]

    @property
    def complete(self) -> bool:
        """Whether nothing is unknown."""
        damage = self.losses or self.edits or self.quarantined
        unknown = self.unknown_keys or self.unknown_jobs or self.payloads_lost or self.start_lost
        return not (damage or unknown)

    def as_json(self) -> dict[str, Any]:
        """The certificate as ``certificate.json`` has it."""
        return {"complete": self.complete} | asdict(self)

    def figures(self) -> dict[str, Any]:
        """What every rebuild answers, of the queue or of the cache alone."""
        return {
            "keys": self.keys.proven + self.keys.unknown,
            "events_read": self.events_read,
            "gaps": len(self.losses),
            "quarantined": len(self.quarantined),
            "unknown_keys": self.keys.unknown,
            "parity": self.parity,
            "missing_events": self.missing_events,
            "checkpoint": self.base,
            "statements": self.statements,
            "complete": self.complete,
        }

    def text(self) -> str:
        """The JSON text of it."""
        return json.dumps(self.as_json(), ensure_ascii=False, indent=1) + "\n"


@dataclass(frozen=True, slots=True)
class Cached:
    """What is known of a folded cache: how many keys, which are unknown or unsealed, its parity."""

    keys: int
    unknown: list[str]
    unsealed: list[str]
    parity: str


@dataclass(frozen=True, slots=True)
class Of:
    """Which book a certificate is of, when it was made, and as of when if not as of the end."""

    node_id: str
    made_at: str
    settings: Settings
    as_of: str | None = None


def cached(survey: Survey, folded: Folded) -> Cached:
    """What is known of the cache that was folded in memory."""
    unknown = folded.unknown_keys(survey.doubt(folded.begin))
    unsealed = _unsealed(survey, folded, set(unknown))
    entries = folded.tables.entries.items()
    return Cached(
        len(entries), unknown, unsealed, parity((key, entry.value) for key, entry in entries)
    )


def certify(
    of: Of,
    survey: Survey,
    folded: Folded,
    end: Position,
    surviving: Sequence[Surviving] = (),
    known: Cached | None = None,
) -> Certificate:
    """The certificate of a log that was surveyed and folded up to ``end``; ``known`` is its cache
    where that was folded elsewhere."""
    doubt = survey.doubt(folded.begin)
    found = known or cached(survey, folded)
    keys = Keys(found.keys - len(found.unknown), len(found.unsealed), len(found.unknown))
    used = [_used(survey, at) for at in range(len(survey.segments))]
    told = Told(survey, folded, end, keys)
    return Certificate(
        v=VERSION, node_id=of.node_id, made_at=of.made_at, as_of=of.as_of,
        base=folded.begun_with,
        end={"writer": end.writer, "seq": end.seq, "hash": end.hash.hex()},
        first_at=min((item.first_at for item in used if item.first_at), default=None),
        last_at=folded.last_at,
        events_read=folded.events_read,
        events_used=folded.events_read - folded.passed_over,
        passed_over=folded.passed_over, start_lost=folded.is_bare, doubled=survey.doubled,
        segments=used, losses=survey.losses, edits=survey.edits, quarantined=survey.bad,
        missing_events=told.missing,
        keys=keys, unknown_keys=found.unknown, unsealed_keys=found.unsealed,
        jobs=_by_status(folded),
        unknown_jobs=folded.unknown_jobs(doubt),
        payloads_lost=[job.job_id for job in folded.unsettled() if job.payload_is_lost],
        withheld=list(_withheld(of.settings)),
        parity=found.parity,
        surviving=list(surviving), statements=list(told.statements()),
    )  # fmt: skip


def _unsealed(survey: Survey, folded: Folded, unknown: set[str]) -> list[str]:
    """Keys whose last write stands in lines that no hash covers."""
    spans = [
        (survey.place(writer, first), survey.place(writer, last))
        for writer, parts in survey.sealed().items()
        for first, last in parts
    ]
    covered = _Spans(spans)
    return sorted(
        key
        for key in folded.tables.entries
        if key not in unknown
        and (place := folded.written.get(key, folded.begin)) > folded.begin
        and place not in covered
    )


class _Spans:
    """Places from first to last, each pair a span; asked many times."""

    def __init__(self, spans: list[tuple[int, int]]) -> None:
        self._spans = sorted(spans)
        self._firsts = [first for first, _ in self._spans]

    def __contains__(self, place: int) -> bool:
        at = bisect_right(self._firsts, place) - 1
        return at >= 0 and place <= self._spans[at][1]


def _used(survey: Survey, at: int) -> Used:
    item = survey.segments[at]
    runs = item.runs
    last = runs[-1].last_seq if runs else 0
    state = "sealed" if last and item.sealed_seq >= last else "open"
    state = "damaged" if item.bad or item.edited or len(runs) > 1 else state
    return Used(
        item.name,
        item.writer,
        runs[0].first_seq if runs else 0,
        last,
        item.lines,
        item.hash,
        state,
        runs[0].first_at if runs else "",
        runs[-1].last_at if runs else "",
    )


def _by_status(folded: Folded) -> dict[str, int]:
    counts: dict[str, int] = {}
    for job in folded.tables.jobs.values():
        counts[str(job.status)] = counts.get(str(job.status), 0) + 1
    return dict(sorted(counts.items()))


def _withheld(settings: Settings) -> Iterable[str]:
    """What the settings keep out of the log, a sentence each."""
    for topic in ("", *sorted(settings.topics)):
        keeping = settings.keeping(topic)
        name = f"topic {topic}" if topic else "all topics that say nothing else"
        if keeping.leaves_out:
            yield f"{name}: payload = {keeping.payload!r} keeps {', '.join(keeping.leaves_out)} out"
        if keeping.redact:
            yield f"{name}: redacted by name: {', '.join(keeping.redact)}"
