"""The table that rows are read into, as text or typed by rule.

How many columns there are is known only at run time, so these statements are put together, but
only from positions and from the digits of a decimal: what a profile or a file says is a parameter.
"""

# ruff: noqa: S608 - see above
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow

from tallybook.ops import statements
from tallybook.ops.exports.profile import Rule
from tallybook.ops.exports.rowwise import Cells

_BATCH = 20_000
_PER_SECOND = {"epoch_s": 1, "epoch_ms": 1000, "epoch_us": 1_000_000}
_PLAIN = Rule()
_UNCAST = ("text", "boolean")
Given = dict[str, Any]
Steps = Sequence[tuple[int, int, Rule]]  # of each cell of a source: r, its column, its rule
Chosen = tuple[dict[str, str], list[list[str]]]  # SQL by column; the levels that compute it


@cache
def _macros() -> str:
    return (Path(__file__).parent / "sql" / "cells.sql").read_text("utf-8")


def prepare(connection: duckdb.DuckDBPyConnection) -> None:
    """Give a connection the macros that a target needs."""
    connection.execute(statements.model("typing_cells"))
    connection.execute(_macros())


class Target:
    """A table of DuckDB in the order of the rows: rowid + 1 is the number of a row, since numbering
    them would keep DuckDB from reading on all cores. line and byte are where it begins, if known.

    As text: r0, r1, … as the file has them and c0, … in standard notation, for those columns whose
    rule rewrites. Typed: t0, t1, … and bad, which lists the columns and texts of the cells that
    have no value of their type, else null.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        name: str,
        rules: Mapping[str, Rule],
        every: Rule = _PLAIN,
        *,
        typed: bool,
    ) -> None:
        if typed or any(rule.rewrites for rule in (*rules.values(), every)):
            prepare(connection)
        self._connection, self.name, self._rules, self.is_typed = connection, name, rules, typed
        self._every = every
        self.columns: list[str] = []
        self.known: dict[str, int] = {}
        self.rows = 0
        self.source = ""
        self._batch: list[tuple[int | None, int | None, Cells]] = []
        bad = ", bad struct(place integer, word varchar)[]" if typed else ""
        connection.execute(f"create table {name} (line bigint, byte bigint{bad})")

    def rule(self, at: int) -> Rule:
        """The rule of a column."""
        return self._rules.get(self.columns[at], self._every)

    def need(self, names: Sequence[str]) -> list[int]:
        """The positions of columns, which are added where they are new."""
        for name in names:
            if name not in self.known:
                self.known[name] = len(self.columns)
                self.columns.append(name)
                self._widen(self.known[name])
        return [self.known[name] for name in names]

    def _widen(self, at: int) -> None:
        rule = self.rule(at)
        added = [f"t{at} {_sql_type(rule)}"] if self.is_typed else [f"r{at} varchar"]
        if rule.rewrites and not self.is_typed:
            added.append(f"c{at} varchar")
        for column in added:
            self._connection.execute(f"alter table {self.name} add column {column}")

    def add(self, cells: Cells, line: int | None, offset: int | None) -> None:
        """Take a row; its cells stand in the order of the columns and may be fewer."""
        self._batch.append((line, offset, cells))
        if len(self._batch) >= _BATCH:
            self.flush()

    def flush(self) -> None:
        """Put the rows that were taken into the table."""
        if not self._batch:
            return
        lines, offsets, rows = zip(*self._batch, strict=True)
        width = len(self.columns)
        padded = [row if len(row) == width else row + [None] * (width - len(row)) for row in rows]
        cells = [pyarrow.array(column, pyarrow.string()) for column in zip(*padded, strict=True)]
        names = ["line", "byte", *(f"r{at}" for at in range(width))]
        places = [pyarrow.array(lines, pyarrow.int64()), pyarrow.array(offsets, pyarrow.int64())]
        self._batch = []
        self._connection.register("given", pyarrow.table([*places, *cells], names=names))
        try:
            self.take("given", {}, range(width), placed=True)
        finally:
            self._connection.unregister("given")

    def take(self, source: str, given: Given, at: Sequence[int], *, placed: bool = False) -> int:
        """Insert the rows of ``source``, which has text cells r0, …; ``at`` says which column each
        of them is. ``placed`` says that it has line and byte too. Gives the number of rows."""
        parameters = dict(given)
        steps = [(r, position, self.rule(position)) for r, position in enumerate(at)]
        written = {r: _written(f"r{r}", rule, r, parameters) for r, _, rule in steps}
        cells, levels = (_typed if self.is_typed else _texts)(steps, written)
        rows = source if placed else f"(select null as line, null as byte, * from {source})"
        for level in levels:
            rows = f"(select *, {', '.join(level)} from {rows})" if level else rows
        statement = f"""
    insert into {self.name} (line, byte, {", ".join(cells)})
    select line, byte, {", ".join(cells.values())} from {rows}"""
        self._connection.execute(statement, parameters or None)
        before, self.rows = self.rows, self._count()
        return self.rows - before

    def leave(self, source: str) -> None:
        """Take the rows of ``source``, which has the text cells r0, … of all columns, but leave
        them where they lie: nothing is copied, and each question reads them again."""
        self.source = source

    def show(self, view: str) -> None:
        """A view of text: n, the number of a row from 1, and r0, …"""
        cells = "".join(f", r{at}" for at in range(len(self.columns)))
        cells += "".join(f", c{at}" for at in range(len(self.columns)) if self.rule(at).rewrites)
        number, source = "rowid + 1", self.name
        if self.source:  # one thread counts them as they come, which is the order of the file
            number, source = "row_number() over ()", self.source
        self._connection.execute(
            f"""
    create view {view} as
    select {number} as n{cells} from {source}"""
        )

    @property
    def names(self) -> list[str]:
        """The names of the columns as DuckDB can tell them apart: without regard to case."""
        taken: dict[str, str] = {}
        for at, name in enumerate(self.columns, start=1):
            free = name or f"column {at}"
            while free.casefold() in taken:
                free += f" ({at})"
            taken[free.casefold()] = free
        return list(taken.values())

    def show_typed(self, view: str) -> None:
        """A view of the rows without a bad cell, their columns typed and by their names."""
        cells = ", ".join(f"t{at} as {_quoted(name)}" for at, name in enumerate(self.names))
        self._connection.execute(
            f"create view {view} as select {cells} from {self.name} where bad is null"
        )

    def bad_cells(self) -> list[tuple[int, int, str]]:
        """The first bad cell of each row that has one: the row, from 1, its column, its text."""
        return self._connection.execute(
            f"""
    select rowid + 1, bad[1].place, bad[1].word from {self.name}
    where bad is not null order by rowid"""
        ).fetchall()

    def holds(self, before: int, at: Sequence[int], cells: Sequence[str]) -> bool:
        """Whether a row behind the first ``before`` seems to have just these texts: typed columns
        are left out, and where there is no other, the texts that were set apart are compared."""
        if self.is_typed and all(self.rule(position).kind != "text" for position in at):
            same = "bad is not null and list_transform(bad, lambda cell: cell.word) = ?"
            given: list[Any] = [list(cells)]
        else:
            mark = "t" if self.is_typed else "r"
            texts = [(p, c) for p, c in zip(at, cells, strict=True) if not self.is_typed or
                     self.rule(p).kind == "text"]  # fmt: skip
            same = " and ".join(f"{mark}{position} = ?" for position, _ in texts)
            given = [cell for _, cell in texts]
        found = self._connection.execute(
            f"select count(*) from {self.name} where rowid >= ? and {same}", [before, *given]
        ).fetchall()
        return bool(found[0][0])

    def _count(self) -> int:
        (found,) = self._connection.execute(f"select count(*) from {self.name}").fetchall()
        return int(found[0])


def _quoted(name: str) -> str:
    """A name of a column as SQL: the only word of a file that becomes SQL, in its quotes."""
    return '"' + name.replace('"', '""') + '"'


def _sql_type(rule: Rule) -> str:
    if rule.kind == "decimal":
        digits, scale = rule.digits
        return f"decimal({digits}, {scale})"
    kinds = {"text": "varchar", "integer": "bigint", "timestamp": "timestamptz"}
    return kinds.get(rule.kind, rule.kind)


def _written(cell: str, rule: Rule, at: int, given: Given) -> str:
    """SQL of a cell in standard notation; null words are null."""
    if rule.null:
        given[f"null{at}"] = list(rule.null)
        cell = f"case when list_contains($null{at}, {cell}) then null else {cell} end"
    if rule.encoded:
        cell = f"url_decode(replace({cell}, '+', ' '))"
    if rule.is_number and (rule.decimal != "." or rule.thousands):
        given[f"point{at}"], given[f"thousands{at}"] = rule.decimal, rule.thousands
        given[f"shape{at}"] = number_shape(rule)
        return f"marked_number({cell}, $shape{at}, $thousands{at}, $point{at})"
    if rule.is_time and rule.format in _PER_SECOND:
        return f"epoch_time({cell}, {_PER_SECOND[rule.format]})"
    if rule.is_time and rule.format:
        has_zone = "%z" in rule.format
        given[f"format{at}"], given[f"zone{at}"] = rule.format, "UTC" if has_zone else rule.zone
        return f"marked_time({cell}, $format{at}, $zone{at})"
    if rule.kind == "timestamp" and rule.zone != "UTC":
        given[f"zone{at}"] = rule.zone
        return f"zoned_time({cell}, $zone{at})"
    return cell


def number_shape(rule: Rule) -> str:
    """A regular expression of numbers as this rule has them; thousands stand in groups of three."""
    point = re.escape(rule.decimal)
    whole = "[0-9]+"
    if rule.thousands:
        whole = f"(?:[0-9]{{1,3}}(?:{re.escape(rule.thousands)}[0-9]{{3}})+|[0-9]+)"
    return f"[+-]?(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+)"


def _texts(steps: Steps, written: Mapping[int, str]) -> Chosen:
    """The columns of text, and those in standard notation beside them."""
    cells = {f"r{position}": f"r{r}" for r, position, _ in steps}
    cells |= {f"c{position}": written[r] for r, position, rule in steps if rule.rewrites}
    return cells, []


def _typed(steps: Steps, written: Mapping[int, str]) -> Chosen:
    """The typed columns and what of them is bad, computed level by level, so that each is computed
    and planned once: w0, … in standard notation; v0, … what DuckDB makes of them; p0, … which keep
    that for plain cells; s0, … the texts of the values of others; t0, … the values."""
    word = {r: f"w{r}" if rule.rewrites else f"r{r}" for r, _, rule in steps}
    cast = [(r, rule) for r, _, rule in steps if rule.kind not in _UNCAST]
    levels = [
        [f"{written[r]} as {word[r]}" for r, _, rule in steps if rule.rewrites],
        [f"try_cast({word[r]} as {_cast_type(rule)}) as v{r}" for r, rule in cast],
        [f"{_plain(r, word[r], rule)} as p{r}" for r, rule in cast],
        [f"{_spelled(r, word[r], rule)} as s{r}" for r, rule in cast],
        [f"{_value(r, word[r], rule)} as t{r}" for r, _, rule in steps],
    ]
    cells = {f"t{position}": f"t{r}" for r, position, _ in steps}
    return cells | {"bad": _bad(steps, word)}, levels


def _cast_type(rule: Rule) -> str:
    return "timestamp" if rule.kind == "timestamp" else _sql_type(rule)


def _plain(r: int, word: str, rule: Rule) -> str:
    """SQL of the value of a plain cell: what DuckDB makes of it is right."""
    scale = f", {rule.digits[1]}" if rule.kind == "decimal" else ""
    return f"plain_{rule.kind}({word}, v{r}{scale})"


def _spelled(r: int, word: str, rule: Rule) -> str:
    """SQL of the text of the value of any other cell."""
    text = "timestamp_text" if rule.is_time else f"{rule.kind}_digits"
    return f"case when p{r} is null and {word} is not null then {text}({word}) end"


def _value(r: int, word: str, rule: Rule) -> str:
    """SQL of the value of a cell; null where it has none of the type."""
    if rule.kind == "text":
        return word
    if rule.kind == "boolean":
        return f"boolean_cell({word})"
    spelled = f"spelled_{rule.kind}(s{r})"
    if rule.is_number:
        scale = rule.digits[1] if rule.kind == "decimal" else 0
        spelled = f"try_cast(spelled_number(s{r}, {scale}) as {_sql_type(rule)})"
    return f"case when p{r} is not null then p{r} else {spelled} end"


def _bad(steps: Steps, word: Mapping[int, str]) -> str:
    """SQL of the list of bad cells of a row; null where there is none."""
    checked = [(r, position) for r, position, rule in steps if rule.kind != "text"]
    if not checked:
        return "null"
    unfit = {r: f"(t{r} is null and {word[r]} is not null)" for r, _ in checked}
    listed = ", ".join(
        f"case when {unfit[r]} then {{'place': {position}, 'word': r{r}}} end"
        for r, position in checked
    )
    anything = " or ".join(unfit.values())
    return f"case when {anything} then list_filter([{listed}], lambda cell: cell is not null) end"
