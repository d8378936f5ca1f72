"""The warehouse as of an instant: the models over the events up to there, beside those of now.

The history is cut before the first event that came after the instant, so what is left is a
beginning of the log, and its models are what a fold of it leaves.
"""

from dataclasses import dataclass
from datetime import datetime

import duckdb

from tallybook.errors import BadInput
from tallybook.ops import statements, windows
from tallybook.ops.windows import Instant

Place = Instant | int


@dataclass(frozen=True, slots=True)
class Cut:
    """Events before ``position`` count, and metrics of intervals that ended by ``until``."""

    position: int
    until: datetime | None


def find(connection: duckdb.DuckDBPyConnection, as_of: Place) -> Cut:
    """Where the history is cut for ``as_of``.

    That is a time (without an offset it is UTC), a position, or ``writer:seq`` with at least the
    first eight digits of a writer. Raises BadInput for what is none of these.
    """
    if isinstance(as_of, int):
        return _behind(connection, as_of)
    position = _position(connection, as_of)
    if position is not None:
        return _behind(connection, position)
    moment = windows.instant(as_of, windows.named_zone("UTC"))
    (first,) = connection.execute(statements.query("first_after"), {"as_of": moment}).fetchall()
    return Cut(first[0], moment)


def _behind(connection: duckdb.DuckDBPyConnection, position: int) -> Cut:
    """The cut right behind the event at ``position``."""
    asked = {"position": position}
    (last,) = connection.execute(statements.query("last_until"), asked).fetchall()
    return Cut(position + 1, last[0])


def enter(connection: duckdb.DuckDBPyConnection, cut: Cut) -> None:
    """Turn a cursor to the models as of ``cut``."""
    connection.execute("create schema if not exists past")
    connection.execute("set search_path = 'past,main'")
    connection.execute("set variable cut_position = ?", [cut.position])
    connection.execute("set variable cut_until = ?", [cut.until])
    for model in ("past_events", "past_metrics"):
        name = model.removeprefix("past_")
        connection.execute(f"create view if not exists past.{name} as {statements.model(model)}")
    for model in statements.FOLDED:
        connection.execute(f"create view if not exists past.{model} as {statements.model(model)}")


def _position(connection: duckdb.DuckDBPyConnection, as_of: Instant) -> int | None:
    """The position that ``writer:seq`` names; None for what is a time."""
    writer, colon, seq = str(as_of or "").partition(":")
    if not colon or not seq.isdecimal() or len(writer) < 8:
        return None
    asked = {"writer": writer, "seq": int(seq)}
    found = connection.execute(statements.query("position_of"), asked).fetchall()
    if not found:
        raise BadInput(f"no event {seq} of writer {writer} in this log; see 'tallybook log verify'")
    return int(found[0][0])
