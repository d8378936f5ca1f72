"""The warehouse as of an instant: the models over the events up to there, beside those of now.

The history is cut before the first event that came after the instant, so what is left is a
beginning of the log, and its models are what a fold of it leaves.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import duckdb

from tallybook.errors import BadInput
from tallybook.ops import statements, windows
from tallybook.ops.windows import Instant

Place = Instant | int
_LINE = re.compile(r"[0-9a-f-]{8,}:[0-9]+", re.I)


@dataclass(frozen=True, slots=True)
class Cut:
    """Events before ``position`` count, and metrics of intervals that ended by ``until``.

    In a fleet the events of a node before its place in ``nodes``, all of one that is not there.
    """

    position: int
    until: datetime | None
    nodes: Mapping[str, int] | None = None


def names_a_line(as_of: Instant) -> bool:
    """Whether it is ``writer:seq``, the first eight digits of a writer or more, and no time."""
    return _LINE.fullmatch(str(as_of or "")) is not None


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


def find_in_nodes(connection: duckdb.DuckDBPyConnection, as_of: Place) -> Cut:
    """Where the history of each node is cut for a time, by the clock of that node.

    Raises BadInput for a position or ``writer:seq``, which is a place in the log of one node.
    """
    if isinstance(as_of, int) or names_a_line(as_of):
        raise BadInput(
            f"as of {as_of}: that is a place in the log of one node, and a fleet is asked as of a "
            "time; name the node with --book FLEET/node=NAME"
        )
    moment = windows.instant(as_of, windows.named_zone("UTC"))
    found = connection.execute(statements.query("first_after_of_nodes"), {"as_of": moment})
    return Cut(0, moment, dict(found.fetchall()))


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
    if cut.nodes is not None:
        # Of no type but that of its rows: one that names no node stands for none.
        cuts = [("", 0), *cut.nodes.items()]
        named = [{"cut_node": node, "cut_at": at} for node, at in cuts]
        connection.execute("set variable cut_nodes = ?", [named])
    events = "past_events" if cut.nodes is None else "past_events_of_nodes"
    for name, model in (("events", events), ("metrics", "past_metrics")):
        connection.execute(f"create view if not exists past.{name} as {statements.model(model)}")
    for model in statements.FOLDED:
        connection.execute(f"create view if not exists past.{model} as {statements.model(model)}")


def _position(connection: duckdb.DuckDBPyConnection, as_of: Instant) -> int | None:
    """The position that ``writer:seq`` names; None for what is a time."""
    if not names_a_line(as_of):
        return None
    writer, _, seq = str(as_of).partition(":")
    asked = {"writer": writer, "seq": int(seq)}
    found = connection.execute(statements.query("position_of"), asked).fetchall()
    if not found:
        raise BadInput(f"no event {seq} of writer {writer} in this log; see 'tallybook log verify'")
    return int(found[0][0])
