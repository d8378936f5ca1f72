"""Whether a log has grown since it was read, by the names and sizes of its segments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tallybook import layout
from tallybook.layout import segment_name
from tallybook.ops.opening import Books


@dataclass(frozen=True, slots=True)
class Growth:
    """When a log was about to be read, and how long each of its segments was."""

    read_at: datetime
    sizes: Mapping[Path, int]

    @classmethod
    def of(cls, book: Books) -> Growth:
        """As it is now. A log in a bucket has no segments here, so it never grows."""
        sizes = {path: _size(path) for path in _segments(book)}
        return cls(datetime.now(UTC), sizes)

    def goes_on(self, book: Books) -> bool:
        """Whether a segment is new, or longer; one that was only compressed is neither."""
        known = {segment_name(path) for path in self.sizes}
        return any(
            segment_name(path) not in known or _size(path) > self.sizes.get(path, _size(path))
            for path in _segments(book)
        )


def _segments(book: Books) -> Iterator[Path]:
    for root in _roots(book):
        for pattern in ("log/*.ndjson*", "node=*/log/*.ndjson*"):
            yield from (path for path in root.glob(pattern) if not path.name.startswith("."))


def _roots(book: Books) -> list[Path]:
    if book is not None and not isinstance(book, str | Path):
        return [Path(one) for one in book]
    return [] if "://" in str(book) else [layout.find_book_or_sample(book or None)]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # compressed or pruned meanwhile
        return 0
