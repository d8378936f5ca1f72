"""The order of history: which writer came after which, what is doubled and what is missing."""

from collections.abc import Sequence

import duckdb

from tallybook.layout import Layout, pruned_ends
from tallybook.ops import statements

Link = tuple[str, str | None]


def order_writers(links: Sequence[Link]) -> list[str]:
    """The writers in the order of their links.

    ``links`` are (writer, writer before it), oldest first; writers that nothing links keep that
    order, and so do two that follow the same one. A circle of links is cut at its oldest.
    """
    known = {writer for writer, _ in links}
    followers: dict[str | None, list[str]] = {}
    for writer, previous in links:
        followers.setdefault(previous if previous in known else None, []).append(writer)
    ordered: list[str] = []
    for start in [*followers.get(None, []), *(writer for writer, _ in links)]:
        _follow(start, followers, ordered)
    return ordered


def _follow(start: str, followers: dict[str | None, list[str]], ordered: list[str]) -> None:
    waiting = [start]
    while waiting:
        writer = waiting.pop()
        if writer not in ordered:
            ordered.append(writer)
            waiting.extend(reversed(followers.get(writer, [])))


def arrange(connection: duckdb.DuckDBPyConnection) -> int:
    """Make the tables `segments` and `writers`, drop doubled lines; how many those were."""
    _make_segments(connection)
    doubled = connection.execute(statements.query("count_doubled")).fetchall()[0][0]
    if doubled:
        connection.execute(statements.query("drop_doubled"))
        _make_segments(connection)
    links = connection.execute(statements.query("writer_links")).fetchall()
    ordered = order_writers([(writer, previous) for writer, previous, _ in links])
    connection.execute("create table writers (writer varchar, ordinal bigint)")
    if ordered:
        rows = [[writer, ordinal] for ordinal, writer in enumerate(ordered)]
        connection.executemany("insert into writers values (?, ?)", rows)
    return int(doubled)


def note_pruned(connection: duckdb.DuckDBPyConnection, place: Layout) -> None:
    """Make the table `pruned`: up to where the lines of a writer were removed on purpose."""
    connection.execute("create table pruned (short_name varchar, last_seq bigint)")
    ends = [[name, seq] for name, seq in pruned_ends(place).items()]
    if ends:
        connection.executemany("insert into pruned values (?, ?)", ends)


def _make_segments(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("create or replace table segments as " + statements.model("segments"))
