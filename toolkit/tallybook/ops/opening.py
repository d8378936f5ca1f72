"""``ops.open``: one book, a list of books, a folder of nodes, or a bucket of them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tallybook import layout
from tallybook.errors import BadInput
from tallybook.ops import buckets, frames
from tallybook.ops import nodes as nodes_of
from tallybook.ops.fleet import Fleet
from tallybook.ops.past import Place
from tallybook.ops.warehouse import Warehouse
from tallybook.ops.windows import Instant

Books = str | Path | Sequence[str | Path] | None


def open_warehouse(
    book: Books = None,
    *,
    out: str | Path | None = None,
    archive: str | Path | None = None,
    as_of: Place = None,
    nodes: str = "*",
    since: Instant = None,
    until: Instant = None,
    storage: Mapping[str, Any] | None = None,
) -> Warehouse:
    """The warehouse of ``book``, else of TALLYBOOK_BOOK, ``./book`` or the sample book.

    A list of books, a folder with ``node=…/`` or a bucket (``s3://…``) with them opens as one
    ``Fleet``; ``nodes`` is a pattern of the names to read. Of a bucket only segments that reach
    into ``since`` to ``until`` are fetched; ``storage`` are options of pyarrow's S3FileSystem.

    ``as_of`` as in ``Warehouse.as_of``. Raises BadInput where there is no book, or where its log
    is that of another program. A log with holes opens, with ``notes`` that name them. In a
    notebook frames are from then on shown by ``frames.html``.
    """
    frames.show_in_notebooks()
    places = [Path(one) if one else None for one in (out, archive)]
    many = _many(book, places[0], nodes, since, until, storage)
    warehouse = many or Warehouse(layout.find_book_or_sample(_one(book)), *places)
    return warehouse if as_of in (None, "") else warehouse.turned_to(as_of)


def _one(book: Books) -> str | Path | None:
    return book if book is None or isinstance(book, str | Path) else None


def _many(
    book: Books,
    out: Path | None,
    pattern: str,
    since: Instant,
    until: Instant,
    storage: Mapping[str, Any] | None,
) -> Fleet | None:
    """The fleet that ``book`` names; None where it is one book."""
    if book is not None and not isinstance(book, str | Path):
        if not book:
            raise BadInput("an empty list of books: name at least one")
        found = nodes_of.chosen(nodes_of.listed(book), pattern)
        return Fleet(Path(book[0]).parent, found, out)
    root = layout.find_book(book)
    if layout.is_bucket(root):
        url = str(layout.require_readable(root))
        return buckets.open_bucket(url, out, pattern, since, until, storage or {})
    if layout.is_fleet(root):
        return Fleet(root, nodes_of.chosen(nodes_of.nodes_in(root), pattern), out)
    return None
