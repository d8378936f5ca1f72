"""The docs say all that there is, and nothing that there is not."""

from __future__ import annotations

import argparse
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
from house_pages import (
    ROOT,
    blocks,
    code,
    headings,
    page,
    rows,
    section,
)

from tallybook import errors, settings
from tallybook.book import Book
from tallybook.cli import main
from tallybook.entry import Put
from tallybook.errors import BadInput, TallybookError
from tallybook.event import EVENTS
from tallybook.recover.rebuild import Rebuilt
from tallybook.runbook.laying import TABLES
from tallybook.worker.handlers import registered
from tallybook.worker.loop import Worker
from tallybook.worker.metrics import COLUMNS
from tallybook.worker.run import Context


def walk(name: str, parser: argparse.ArgumentParser) -> Iterator[tuple[str, list[argparse.Action]]]:
    """Every command that runs something, with its arguments and options."""
    actions = [action for action in parser._actions if action.dest != "help"]
    inner = [action for action in actions if isinstance(action, argparse._SubParsersAction)]
    if not inner:
        yield name, actions
    for action in inner:
        for word, below in action.choices.items():
            yield from walk(f"{name} {word}", below)


def commands() -> dict[str, list[argparse.Action]]:
    found: dict[str, list[argparse.Action]] = {}
    for name in main.COMMANDS:
        parser = argparse.ArgumentParser(prog=f"tallybook {name}")
        main.module_of(name).add(parser)
        found |= walk(f"tallybook {name}", parser)
    return found


COMMANDS = commands()


def names(action: argparse.Action) -> list[str]:
    """What a person must find in the docs of an argument or option."""
    shown = action.option_strings or [str(action.metavar or action.dest)]
    return [*shown, *map(str, action.choices or ())]


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A book in which a worker did one job."""
    root = tmp_path_factory.mktemp("docs") / "book"
    with Book.open(root) as opened:
        opened.enqueue("a.b", {"id": 1})

    def done(job: object, ctx: Context) -> None:
        ctx.cache.put("key", 1)

    handlers = {"a.b": registered(done)}
    Worker(root, handlers, threads=1, drain=True).run()
    return root


# commands


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_section_with_all_its_arguments_and_options(command: str) -> None:
    told = " ".join(code(section(page("docs/cli.md"), f"`{command}`")))
    words = re.findall(r"[\w-]+", told)
    missing = [name for action in COMMANDS[command] for name in names(action) if name not in words]
    assert told and not missing, f"docs/cli.md, {command}: {missing}"


@pytest.mark.parametrize("command", COMMANDS)
def test_no_section_has_an_option_that_its_command_does_not_take(command: str) -> None:
    first = [row[0] for row in rows(section(page("docs/cli.md"), f"`{command}`"))]
    told = {word for cell in first for word in re.findall(r"(?<![\w-])--?[a-z][\w-]*", cell)}
    taken = {option for action in COMMANDS[command] for option in action.option_strings}
    assert told <= taken


def test_no_section_is_about_a_command_that_is_not_there() -> None:
    told = [head.strip("`") for head in headings(page("docs/cli.md")) if head.startswith("`")]
    assert sorted(told) == sorted(COMMANDS)


def test_the_options_of_tallybook_itself_are_told() -> None:
    assert {"tallybook --version", "tallybook COMMAND --help", "-h"} <= set(
        code(page("docs/cli.md"))
    )


def test_every_exit_code_is_told() -> None:
    classes = vars(errors).values()
    raised = {c.exit_code for c in classes if inspect.isclass(c) and issubclass(c, TallybookError)}
    told = {row[0] for row in rows(page("docs/cli.md"))}
    known = raised | {main.BAD_INPUT, main.FAILURE, main.INTERRUPTED, 0, 1}
    assert {str(number) for number in known} <= told


def test_the_answer_of_rebuild_is_told_name_by_name() -> None:
    told = code(section(page("docs/cli.md"), "`tallybook rebuild`"))
    assert {field.name for field in fields(Rebuilt)} <= set(told)


# the log


def test_every_event_is_told_with_exactly_its_fields() -> None:
    table = rows(section(page("docs/log-format.md"), "Events and their fields"))
    told = {code(row[0])[0]: sorted(code(row[1])) for row in table}
    assert told == {name: sorted(known) for name, known in EVENTS.items()}


def test_every_field_of_an_event_is_explained() -> None:
    table = rows(section(page("docs/log-format.md"), "What the fields mean"))
    explained = {name for row in table if len(row) == 3 for name in code(row[0])}
    assert explained == {name for known in EVENTS.values() for name in known}


def test_the_program_in_the_specification_reads_a_log_as_the_book_does(
    book: Path, tmp_path: Path
) -> None:
    program = tmp_path / "chain.py"
    (source,) = [body for kind, body in blocks(page("docs/log-format.md")) if kind == "python"]
    program.write_text(source, "utf-8")
    command = [sys.executable, "-I", str(program), str(book)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    with Book.read(book) as opened:
        end = opened.position()
    assert told == f"{end.writer} {end.seq} {end.hash.hex()}\n"


def test_the_fields_of_every_line_are_told(book: Path) -> None:
    (path,) = (book / "log").glob("*.ndjson")
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    common = set.intersection(*(set(line) for line in lines))
    table = rows(section(page("docs/log-format.md"), "Fields of every line"))
    assert {code(row[0])[0] for row in table} == common


# the book, its settings, its metrics


def test_every_column_of_state_db_is_told(book: Path) -> None:
    with Book.open(book) as opened, opened._reading() as store:
        query = "select m.name, c.name from sqlite_schema m, pragma_table_info(m.name) c"
        known = store.connection.execute(f"{query} where m.type = 'table'").fetchall()
    told = []
    for part in re.split(r"^`(?=\w+`, )", section(page("docs/book.md"), "state.db"), flags=re.M)[
        1:
    ]:
        table = part.partition("`")[0]
        told += [(table, code(row[0])[0]) for row in rows(part)]
    assert sorted(told) == sorted(known)


def setting_rows(table: str) -> list[list[str]]:
    return rows(section(page("docs/settings.md"), f"`{table}`"))


@pytest.mark.parametrize("table", TABLES)
def test_every_setting_is_told_with_its_default(table: str) -> None:
    told = {code(row[0])[0]: row[1] for row in setting_rows(table)}
    known = {field.name: field.default for field in fields(TABLES[table])}
    assert told == {name: f"`{written(default)}`" for name, default in known.items()}


def written(default: object) -> str:
    """A default as it is written in book.toml."""
    if isinstance(default, tuple):
        return str(list(default))
    return f'"{default}"' if isinstance(default, str) else str(default)


def is_number(table: str, name: str) -> bool:
    return isinstance(getattr(TABLES[table](), name), int | float)


CHOICES = [
    (table, code(row[0])[0], code(row[2]))
    for table in TABLES
    for row in setting_rows(table)
    if code(row[2]) and not is_number(table, code(row[0])[0])
]


@pytest.mark.parametrize(("table", "name", "told"), CHOICES)
def test_a_setting_takes_the_words_that_are_told_and_no_other(
    table: str, name: str, told: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "book.toml"
    for word in told:
        path.write_text(f'{table}\n{name} = "{word}"\n', "utf-8")
        settings.load(path)
    path.write_text(f'{table}\n{name} = "{"".join(told)}"\n', "utf-8")
    with pytest.raises(BadInput, match=", ".join(told)):
        settings.load(path)


RANGES = [
    (table, code(row[0])[0], *[float(number) for number in code(row[2])])
    for table in TABLES
    for row in setting_rows(table)
    if code(row[2]) and is_number(table, code(row[0])[0])
]


@pytest.mark.parametrize(("table", "name", "smallest", "largest"), RANGES)
def test_a_setting_takes_the_range_that_is_told_and_no_more(
    table: str, name: str, smallest: float, largest: float, tmp_path: Path
) -> None:
    whole = isinstance(getattr(TABLES[table](), name), int)
    step = 1 if whole else 0.0001
    path = tmp_path / "book.toml"

    def load(value: float) -> None:
        path.write_text(f"{table}\n{name} = {int(value) if whole else value}\n", "utf-8")
        settings.load(path)

    load(smallest)
    load(largest)
    for value in (smallest - step, largest + step):
        with pytest.raises(BadInput):
            load(value)


def test_every_variable_of_the_environment_is_told() -> None:
    sources = [path.read_text("utf-8") for path in (ROOT / "toolkit").rglob("*.py")]
    known = {name for source in sources for name in re.findall(r"\bTALLYBOOK_[A-Z_]+", source)}
    table = rows(section(page("docs/settings.md"), "Environment"))
    assert {name for row in table for name in code(row[0])} == known


def test_every_metrics_column_is_told_in_its_order() -> None:
    table = rows(section(page("docs/metrics.md"), "Columns"))
    assert tuple(code(row[0])[0] for row in table) == COLUMNS


def test_every_name_of_latest_json_is_told(book: Path) -> None:
    known = json.loads((book / "metrics" / "latest.json").read_bytes())
    table = rows(section(page("docs/metrics.md"), "latest.json"))
    assert {name for row in table for name in code(row[0])} == set(known)


# handlers


@pytest.mark.parametrize("error", ["Retry", "NotReached", "Permanent", "Snooze"])
def test_every_way_that_a_run_ends_is_told_with_its_arguments(error: str) -> None:
    told = page("docs/handlers.md")
    known = list(inspect.signature(getattr(errors, error)).parameters)
    missing = [name for name in known if name not in re.findall(r"\w+", told)]
    assert error in told and not missing


def test_every_part_of_the_context_and_every_field_of_a_cache_write_is_told() -> None:
    told = page("docs/handlers.md")
    note = list(inspect.signature(Context.note).parameters)[1:]
    parts = [f"ctx.{field.name}" for field in fields(Context) if field.name != "notes"]
    known = [*parts, *note, *(field.name for field in fields(Put))]
    assert [name for name in known if not re.search(rf"\b{re.escape(name)}\b", told)] == []


# runbooks, notebooks, models


@pytest.mark.parametrize("path", sorted(ROOT.glob("*books/*.ipynb")), ids=lambda path: path.stem)
def test_every_runbook_and_notebook_is_told(path: Path) -> None:
    told = " ".join(code(page("docs/runbooks.md")))
    assert re.search(rf"\b{path.stem}\b", told)


def test_every_parameter_of_a_runbook_is_told() -> None:
    from tallybook.runbook.catalogue import read

    table = rows(section(page("docs/runbooks.md"), "Parameters"))
    told = {(n, p) for row in table for n in code(row[0]) or ["all"] for p in code(row[1])}
    for path in ROOT.glob("*books/*.ipynb"):
        for parameter in read(path).parameters:
            both = {("all", parameter.name), (path.stem, parameter.name)}
            assert told & both, f"docs/runbooks.md: {path.name}: {parameter.name}"


def test_every_model_and_only_a_model_has_a_section(book: Path) -> None:
    from tallybook import ops

    with ops.open(book) as warehouse:
        query = "select view_name from duckdb_views() where not internal order by 1"
        known = [name for (name,) in warehouse.sql(query).fetchall()]
    told = re.findall(r"^### (\w+)$", section(page("docs/models.md"), "Models"), re.MULTILINE)
    assert sorted(told) == known
