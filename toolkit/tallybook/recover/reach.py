"""How far back and how far on a log that was pruned or damaged can answer."""

from __future__ import annotations

from dataclasses import replace

from tallybook.book import checkpoints
from tallybook.book.checkpoints import Checkpoint
from tallybook.errors import BadInput, IncompleteInput
from tallybook.layout import Layout
from tallybook.recover.survey import Survey


def until(found: Survey, as_of: str | None) -> Survey:
    """A survey without the damage that lies behind an instant. Raises BadInput where the whole log
    does."""
    if as_of is None:
        return found
    first = min((p.first_at for pieces in found.pieces.values() for p in pieces), default=None)
    if first and as_of < first and not found.pruned:
        raise BadInput(f"--as-of {as_of}: nothing was cached yet; the log begins at {first}")
    return replace(
        found,
        losses=[one for one in found.losses if not (one.after_at and one.after_at > as_of)],
        edits=[one for one in found.edits if _begin(found, one.segment) <= as_of],
    )


def _begin(found: Survey, segment: str) -> str:
    runs = next(item.runs for item in found.segments if item.name == segment)
    return runs[0].first_at if runs else ""


def require_reach(layout: Layout, found: Survey, covers: str) -> None:
    """Raises IncompleteInput where the log since an export is not there any more."""
    first = min((p.first_at for pieces in found.pieces.values() for p in pieces), default=covers)
    if found.pruned and first > covers:
        raise IncompleteInput(
            f"--covers {covers}: the log since then is not whole, {layout.log} was pruned up to "
            f"{first}; take a later export"
        )


def pruned_words(layout: Layout, found: Survey, as_of: str | None) -> str:
    """Why a pruned log cannot say what was cached at an instant, and what to do."""
    first = min((p.first_at for pieces in found.pieces.values() for p in pieces), default="its end")
    kept: list[Checkpoint] = list(checkpoints.whole(layout))
    oldest = f"the oldest checkpoint is of {kept[-1].made_at}" if kept else "no checkpoint is good"
    when = f" as of {as_of}" if as_of else ""
    return (
        f"{layout.log}: the cache{when} cannot be known: the log was pruned up to {first}, and "
        f"{oldest}; name an older checkpoint with --from"
    )
