"""A certificate in sentences: what a person must know."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tallybook.log.reader import Position
from tallybook.recover.folding import Folded
from tallybook.recover.survey import Survey


@dataclass(frozen=True, slots=True)
class Keys:
    """How many keys there are of each kind; ``unsealed`` are among the proven ones."""

    proven: int
    unsealed: int
    unknown: int


@dataclass(frozen=True, slots=True)
class Told:
    """The certificate in sentences."""

    survey: Survey
    folded: Folded
    end: Position
    keys: Keys

    @property
    def missing(self) -> int:
        """Lines that are missing."""
        return sum(loss.events for loss in self.survey.losses)

    def statements(self) -> Iterable[str]:
        """What a person must know, the gravest first."""
        if self.folded.is_bare:
            yield "the log was pruned and no checkpoint is left: what came before is not known"
        yield from self._losses()
        if self.survey.edits:
            ranges = _n(len(self.survey.edits), "range")
            yield f"{ranges} of lines edited after they were written"
        if self.survey.by_clock:
            yield "the first line of a writer is lost, and clocks do not tell when it began"
        if self.survey.bad:
            yield f"{_n(len(self.survey.bad), 'line')} that cannot be read"
        if self.keys.unknown:
            keys = _n(self.keys.unknown, "key")
            yield f"{keys} with no write behind the last damage, whose value may be old"
        base = self.folded.base
        if base:
            at = f"seq {base.position.seq} of writer {base.position.writer[:8]}"
            yield f"what happened up to {at} is taken from the checkpoint {base.name}"
            end = self.survey.place(self.end.writer, self.end.seq)
            if self.end.writer and end < self.folded.begin:
                yield (
                    f"the checkpoint {base.name} is newer than the log, which ends at seq "
                    f"{self.end.seq} of writer {self.end.writer[:8]}: it saw more than is left of "
                    "the log"
                )
        if self.folded.export:
            yield f"the cache is that of the export {self.folded.export}, with the log since"
        if self.folded.passed_over:
            events = _n(self.folded.passed_over, "event")
            yield f"{events} passed over, as they no longer fit what is left before them"
        if self.keys.unsealed:
            keys = _n(self.keys.unsealed, "key")
            yield f"{keys} last written in lines that no hash covers yet"
        if not self.survey.marks:
            yield "nothing but the log says how far it came: a lost end would not be seen"

    def _losses(self) -> Iterable[str]:
        if not self.survey.losses:
            return
        holes = _n(len(self.survey.losses), "hole")
        yield f"{_n(self.missing, 'event')} missing in {holes}"
        begin = self.folded.begin
        if not all(self.survey.is_covered(loss, begin) for loss in self.survey.losses):
            yield f"{_n(self.missing, 'missing event')} may concern keys not listed here"
        else:
            yield "a checkpoint saw all that is missing: the state is whole, its history is not"


def _n(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"
