"""A run that can be made: what the user gave, checked before a kernel starts."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tallybook import layout
from tallybook.errors import BadInput
from tallybook.runbook import catalogue, folder, parameters, secrets, settings
from tallybook.runbook.catalogue import Runbook
from tallybook.runbook.limits import Limits
from tallybook.runbook.turns import Turn

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Order:
    """One run to make: everything the user gave was understood. ``run`` is its name."""

    run: str
    runbook: Runbook
    values: Mapping[str, Any]
    book: Path | str | None
    node: str
    out: Path
    started: datetime
    limits: Limits
    sample: bool = False

    @property
    def shown(self) -> dict[str, Any]:
        """The parameters of this run, given or default; of a secret the reference."""
        known = self.runbook.parameters
        return {one.name: self.values.get(one.name, one.default) for one in known}

    @property
    def asked(self) -> str:
        """The parameters that the user gave, as they would be typed."""
        return ", ".join(f"{name}={self.shown[name]}" for name in self.values if name != "book")

    @property
    def turn(self) -> Turn:
        """What only one run at a time has."""
        return Turn(self.out, self.runbook.name, str(self.book or self.runbook.path.resolve()))

    @property
    def has_secrets(self) -> bool:
        """Whether the kernel of this run is told where to find a secret."""
        return any(one.secret and self.shown[one.name] for one in self.runbook.parameters)


def order(
    name_or_path: str | Path,
    given: Mapping[str, str],
    book: str | Path | None,
    out: str | Path | None,
    limits: Mapping[str, float | None],
) -> Order:
    """The run of these; raises BadInput where anything of it cannot be."""
    runbook = catalogue.find(name_or_path)
    known = settings.load(settings.place(runbook.path))
    values = _values(runbook, given)
    where = _book(runbook, values, book)
    sample = where is not None and runbook.takes("book") and _is_unasked(values, book)
    if sample:
        _tell_sample(runbook, values, where)
    node = folder.node_of(where) if where else "no-book"
    if runbook.takes("book"):
        values = {**values, "book": str(where)}
    started = datetime.now(UTC)
    return Order(
        run=folder.named(runbook.name, started),
        runbook=runbook,
        values=values,
        book=where,
        node=node,
        out=layout.out_dir(out, node),
        started=started,
        limits=known.runs.asked(**limits),
        sample=sample,
    )


def _values(runbook: Runbook, given: Mapping[str, str]) -> dict[str, Any]:
    """The given texts as values; what is a secret must be there, and is not read."""
    try:
        if given and not runbook.tagged:
            raise BadInput("it has no cell tagged 'parameters', so it takes none; tag one")
        values = parameters.typed(runbook.parameters, given)
        for one in runbook.parameters:
            if one.secret and values.get(one.name, one.default):
                secrets.require(one.name, values.get(one.name, one.default))
    except BadInput as error:
        raise BadInput(f"runbook {runbook.name}: {error}") from None
    return values


def _book(
    runbook: Runbook, values: Mapping[str, Any], book: str | Path | None
) -> Path | str | None:
    """The book, fleet or bucket that the run reads, checked; None for one that takes none."""
    if not runbook.takes("book"):
        return Path(book).resolve() if book else None
    named = values.get("book") or ""
    if named and book and Path(named).resolve() != Path(book).resolve():
        raise BadInput(f"two books: --book {book} and parameter book={named}; name one")
    return layout.require_readable(layout.find_book_or_sample(named or book))


def _is_unasked(values: Mapping[str, Any], book: str | Path | None) -> bool:
    """Whether nobody named a book and there is none here, so that the sample is read."""
    return not (values.get("book") or book) and not layout.is_readable(layout.find_book())


def _tell_sample(runbook: Runbook, values: Mapping[str, Any], book: Path | str | None) -> None:
    """Say that the sample book is read; raises BadInput where the run would change it."""
    if values.get("dry_run") is False:
        raise BadInput(
            f"runbook {runbook.name}: dry_run=false changes a book, and none is named and none is "
            "at ./book; name it with --book DIR"
        )
    _LOG.warning("no book is named and none is at ./book: this is the sample book %s", book)
