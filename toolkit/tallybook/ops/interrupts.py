"""Ctrl-C in the middle of a query: DuckDB tells it as an error of its own, we as what it is."""

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

_SAID = "Query interrupted"


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt where a query inside was interrupted."""
    try:
        yield
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except RuntimeError as error:
        if _SAID not in str(error):
            raise
        raise KeyboardInterrupt from None
