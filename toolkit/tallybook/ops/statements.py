"""The SQL of the warehouse: one statement a file, read by name, never put together from input."""

from functools import cache
from pathlib import Path

_ROOM = Path(__file__).parent

FOLDED = ("leases", "jobs", "cache_history", "topics")


@cache
def model(name: str) -> str:
    """The text of ``models/<name>.sql``."""
    return (_ROOM / "models" / f"{name}.sql").read_text("utf-8")


@cache
def query(name: str) -> str:
    """The text of ``queries/<name>.sql``."""
    return (_ROOM / "queries" / f"{name}.sql").read_text("utf-8")
