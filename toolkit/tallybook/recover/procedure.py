"""The steps of the runbook ``cache_rebuild``: plan, act, after, and what to say of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tallybook import layout as layouts
from tallybook.errors import TallybookError
from tallybook.layout import Layout
from tallybook.ops.findings import Finding
from tallybook.ops.silence import Silence
from tallybook.ops.wording import command, counted
from tallybook.recover import page
from tallybook.recover.certificate import Certificate
from tallybook.recover.rebuild import Rebuilt, look, rebuild

_LOOKS = 3
_UNCHANGED = Silence("dry_run: nothing was changed")
_NOTHING = "The log of another system holds no cache and no queue: there is nothing to rebuild."
_OF_NODES = "A fleet has no state.db: rebuild that of a node, with --book FLEET/node=NAME."


@dataclass(frozen=True, slots=True)
class Paper:
    """A certificate as a notebook shows it; without one, why there is none."""

    certificate: Certificate | None
    words: str = ""

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        if self.certificate is None:
            return {"text/plain": self.words}
        told = "\n".join(self.certificate.statements) or "nothing is missing"
        return {"text/plain": told, "text/html": page.body(self.certificate)}


def plan(book: Path) -> Paper:
    """What a rebuild of ``book`` would bring; nothing is changed."""
    if told := _untold(book):
        return Paper(None, told)
    return Paper(look(book)[0])


def act(book: Path, *, dry_run: bool) -> Rebuilt | Silence:
    """Rebuild state.db, unless ``dry_run``; what came back."""
    if dry_run:
        return _UNCHANGED
    return rebuild(layouts.require_book(book).root)


def after(book: Path, done: Rebuilt | Silence) -> Paper:
    """The certificate of the book as it is now.

    Raises TallybookError where it was rebuilt and state.db is not what the log says; under living
    workers, which write between two looks, only the third one counts.
    """
    paper = plan(book)
    for _ in range(_LOOKS - 1):
        if isinstance(done, Silence) or _holds(paper.certificate):
            return paper
        paper = plan(book)
    if not _holds(paper.certificate):
        raise TallybookError(
            f"the rebuild of {book} does not hold: state.db is not what the log says; "
            "run 'tallybook log verify' and look at the disk"
        )
    return paper


def _holds(certificate: Certificate | None) -> bool:
    found = certificate.surviving if certificate else []
    state = next((one for one in found if one.source == "state.db"), None)
    return state is not None and certificate is not None and state.parity == certificate.parity


def _untold(book: Path) -> str:
    """Why there is nothing to rebuild; empty for a book."""
    if layouts.is_bucket(book) or layouts.is_fleet(book):
        return _OF_NODES
    return _NOTHING if Layout(book).imported.exists() else ""


def findings(book: Path, paper: Paper) -> list[Finding]:
    """What cannot be known, for the end of a runbook; empty where everything is."""
    told = paper.certificate
    if told is None or told.complete:
        return []
    paperwork = command(book, "rebuild", "--dry-run", "--certificate", "certificate")
    found = [
        _found("unknown_keys", "Keys whose value may be old", told.unknown_keys, paperwork),
        _found("unknown_jobs", "Jobs of which events may be missing", told.unknown_jobs, paperwork),
        _found("payloads_lost", "Jobs whose payload is lost", told.payloads_lost, paperwork),
    ]  # fmt: skip
    return [*(one for one in found if one), *edits(book, paper)]


def edits(book: Path, paper: Paper) -> list[Finding]:
    """The segments whose hash chain says that a line was edited; empty where none was."""
    told = paper.certificate
    segments = [edit.segment for edit in told.edits] if told else []
    verify = command(book, "log", "verify")
    found = _found("edited", "Segments with lines that were edited", segments, verify)
    return [found] if found else []


def _found(kind: str, title: str, ids: list[str], mend: str) -> Finding | None:
    if not ids:
        return None
    detail = f"{counted(len(ids), 'name')} in the certificate"
    return Finding(kind, "problem", f"{title}: {len(ids):,}", tuple(ids), detail, mend)
