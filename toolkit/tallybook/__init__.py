"""tallybook: a durable job queue and worker whose append-only log is the truth.

    from tallybook import Book, Permanent, Retry, handler

    @handler("orders.sync")
    def sync(job, ctx):
        ...

    with Book.open("book") as book:
        book.enqueue("orders.sync", {"id": 7}, idempotency_key="order-7")

``from tallybook import ops`` brings the analysis half (extra ``ops``). Nothing heavy is loaded
before it is used.
"""

__version__ = "0.1.0"

TYPE_CHECKING = False  # type checkers know the name; Ctrl-C while `typing` loads: a traceback
if TYPE_CHECKING:
    from tallybook.book import Book
    from tallybook.errors import NotReached, Permanent, Retry, Snooze, TallybookError
    from tallybook.worker.handlers import handler

_PLACES = {
    "Book": "tallybook.book",
    "NotReached": "tallybook.errors",
    "Permanent": "tallybook.errors",
    "Retry": "tallybook.errors",
    "Snooze": "tallybook.errors",
    "TallybookError": "tallybook.errors",
    "handler": "tallybook.worker.handlers",
}

__all__ = [
    "Book",
    "NotReached",
    "Permanent",
    "Retry",
    "Snooze",
    "TallybookError",
    "__version__",
    "handler",
]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in _PLACES:
        return getattr(import_module(_PLACES[name]), name)
    raise AttributeError(f"module 'tallybook' has no attribute {name!r}")
