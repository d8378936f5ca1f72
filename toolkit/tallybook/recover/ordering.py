"""Which writer came after which, where the lines that say so may be lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tallybook.log.manifest import Manifest
from tallybook.recover.evidence import Judged


@dataclass(frozen=True, slots=True)
class Order:
    """All writers in the order of history. ``by_clock`` are those whose first line is lost and
    whose clock does not tell their place: they overlap others."""

    writers: list[str]
    by_clock: list[str]


@dataclass(slots=True)
class _Life:
    """What is known of one writer."""

    writer: str
    first_at: str = ""
    last_at: str = ""
    follows: str = ""
    is_begun: bool = False


def order(
    judged: list[Judged], proofs: list[Manifest], named: list[str], pruned: Mapping[str, int]
) -> Order:
    """The order by links, else by the time of the first line that is left; writers that are only
    ``named`` stand before who names them, else at the end."""
    # Of a writer whose segments hold no line any more nothing says when it lived.
    lives = {short: life for short, life in _lives(judged, proofs).items() if life.first_at}
    for writer in pruned:
        if writer[:8] in lives:
            lives[writer[:8]].is_begun = True
    ordered: list[str] = []
    for short in sorted(lives, key=lambda one: lives[one].first_at):
        for one in reversed(list(_back(short, lives))):
            if one not in ordered:
                ordered.append(one)
    lost = sorted({writer[:8]: writer for writer in named if writer[:8] not in lives}.items())
    for short, _ in lost:
        ordered.insert(_before(short, ordered, lives, judged), short)
    full = dict(lost) | {short: life.writer for short, life in lives.items()}
    return Order([full[short] for short in ordered], list(_by_clock(lives)))


def _lives(judged: list[Judged], proofs: list[Manifest]) -> dict[str, _Life]:
    lives: dict[str, _Life] = {}
    for item in judged:
        life = lives.setdefault(item.writer[:8], _Life(item.writer))
        life.writer = max(life.writer, item.writer, key=len)
        life.follows = item.previous[0][:8] if item.previous else life.follows
        for run in item.runs:
            life.is_begun = life.is_begun or run.first_seq == 1
            life.first_at = min(life.first_at or run.first_at, run.first_at)
            life.last_at = max(life.last_at, run.last_at)
    for proof in proofs:
        life = lives.setdefault(proof.writer[:8], _Life(proof.writer))
        life.writer = max(life.writer, proof.writer, key=len)
        life.first_at = min(life.first_at or proof.opened_at, proof.opened_at)
        life.last_at = max(life.last_at, proof.last_occurred_at)
    return lives


def _back(short: str, lives: Mapping[str, _Life]) -> Iterator[str]:
    """A writer and those before it, by their links."""
    seen: set[str] = set()
    while short in lives and short not in seen:
        seen.add(short)
        yield short
        short = lives[short].follows


def _before(
    short: str, ordered: list[str], lives: Mapping[str, _Life], judged: list[Judged]
) -> int:
    """Where a writer of which no line is left belongs."""
    tellers = {i.writer[:8] for i in judged if any(t.writer[:8] == short for t in i.told)}
    followers = {one for one, life in lives.items() if life.follows == short} | tellers
    return min((at for at, one in enumerate(ordered) if one in followers), default=len(ordered))


def _by_clock(lives: Mapping[str, _Life]) -> Iterator[str]:
    """Writers that nothing but their clock orders, and that overlap another."""
    for short, life in lives.items():
        others = [other for one, other in lives.items() if one != short]
        overlaps = any(
            life.first_at <= other.last_at and other.first_at <= life.last_at for other in others
        )
        if not life.is_begun and overlaps:
            yield life.writer
