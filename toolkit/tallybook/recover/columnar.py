"""A checkpoint as Parquet: a folder with a file each table of state.db, readable by anything.

    <writer8>-<seq>/checkpoint.json      what it is: version, position, rows and digest of each file
    <writer8>-<seq>/jobs.parquet  cache.parquet  topics.parquet  …

It holds all that the checkpoint file does, so a rebuild from either gives the same state. It is
written aside and renamed in, and refused where a file of it is not the one that was written.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from tallybook.book import checkpoints
from tallybook.book import store as stores
from tallybook.book.checkpoints import Checkpoint
from tallybook.errors import BadInput, unwritable
from tallybook.layout import FILE_MODE, FOLDER_MODE
from tallybook.log import chain
from tallybook.log.manifest import digest

if TYPE_CHECKING:
    import pyarrow

VERSION = 1
_MARK = "checkpoint.json"
_ROWS = 50_000


def is_one(path: Path) -> bool:
    """Whether ``path`` is a checkpoint as Parquet."""
    return (path / _MARK).is_file()


def write(made: Checkpoint, folder: Path) -> Path:
    """Write the checkpoint ``made`` below ``folder``; where it lies. One that is there is kept.

    Raises BadInput where it cannot be written.
    """
    target = folder / made.path.stem
    if is_one(target):
        return target
    try:
        folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".checkpoint-", dir=folder) as aside:
            _write(made, Path(aside) / "new")
            shutil.rmtree(target, ignore_errors=True)
            (Path(aside) / "new").rename(target)
    except OSError as error:
        raise unwritable(f"--out {folder}", error) from error
    return target


def _write(made: Checkpoint, aside: Path) -> None:
    aside.mkdir(mode=FOLDER_MODE)
    with closing(sqlite3.connect(f"{made.path.resolve().as_uri()}?mode=ro", uri=True)) as source:
        (version,) = source.execute("pragma user_version").fetchone()
        tables = {name: _write_table(source, name, aside) for name in _tables(source)}
    told = {"v": VERSION, "schema": version, "made_at": made.made_at, "tables": tables}
    text = json.dumps(told | chain.as_json(made.position), indent=1) + "\n"
    (aside / _MARK).write_text(text, "utf-8")
    (aside / _MARK).chmod(FILE_MODE)


def _tables(source: sqlite3.Connection) -> list[str]:
    query = "select name from sqlite_schema where type = 'table' order by rowid"
    return [name for (name,) in source.execute(query)]


def _write_table(source: sqlite3.Connection, name: str, aside: Path) -> dict[str, Any]:
    import pyarrow
    from pyarrow import parquet

    path, schema, rows = aside / f"{name}.parquet", _schema(source, name), 0
    # In the order that they lie in, which a table without rowid has by its key.
    found = source.execute(f'select * from "{name}"')  # noqa: S608 - the name of a table of ours
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        while batch := found.fetchmany(_ROWS):
            columns = zip(*batch, strict=True)
            cells = [pyarrow.array(column, field.type)
                     for column, field in zip(columns, schema, strict=True)]  # fmt: skip
            writer.write_table(pyarrow.Table.from_arrays(cells, schema=schema))
            rows += len(batch)
    path.chmod(FILE_MODE)
    _sync(path)
    return {"rows": rows, "digest": digest(path)}


def _schema(source: sqlite3.Connection, name: str) -> pyarrow.Schema:
    """The columns of a strict table, each with its own type."""
    import pyarrow

    kinds = {"INTEGER": pyarrow.int64(), "REAL": pyarrow.float64(), "TEXT": pyarrow.string(),
             "BLOB": pyarrow.binary()}  # fmt: skip
    columns = source.execute("select name, upper(type) from pragma_table_info(?)", [name])
    return pyarrow.schema([(column, kinds[kind]) for column, kind in columns])


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def as_file(path: Path) -> Iterator[Path]:
    """The checkpoint in the folder ``path`` as a state file, for as long as it is looked at.

    Raises BadInput where the folder is damaged, of a newer version, or Parquet cannot be read.
    """
    told = _told(path)
    with TemporaryDirectory(prefix="tallybook-checkpoint-") as aside:
        file = Path(aside) / f"{path.name}.db"
        try:
            _restore(path, told, file)
        except ImportError:
            raise BadInput(
                f"{path} is Parquet: it needs the extra ops: pip install 'tallybook[ops]'"
            ) from None
        except (OSError, ValueError, KeyError, sqlite3.Error) as error:
            raise BadInput(f"{path} is damaged: {error}") from error
        yield file


def _told(path: Path) -> dict[str, Any]:
    try:
        told = json.loads((path / _MARK).read_bytes())
        version, tables = told["v"], told["tables"]
        wrong = [name for name, one in tables.items()
                 if digest(path / f"{name}.parquet") != one["digest"]]  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"{path} is no whole checkpoint: {error}") from error
    if version != VERSION or told["schema"] > stores.SCHEMA_VERSION:
        raise BadInput(f"{path} is of a newer version; update tallybook to read it")
    if wrong:
        raise BadInput(f"{path} is damaged: {wrong[0]}.parquet is not the file that was written")
    return dict(told)


def _restore(path: Path, told: dict[str, Any], file: Path) -> None:
    from pyarrow import parquet

    with closing(sqlite3.connect(file, isolation_level=None)) as target:
        target.execute("pragma journal_mode = off")
        target.execute(f"pragma application_id = {stores.APPLICATION_ID}")
        target.execute(f"pragma user_version = {int(told['schema'])}")
        if told["schema"] == stores.SCHEMA_VERSION:
            target.executescript(";".join(stores.SCHEMA))
        target.execute("begin")
        for name in told["tables"]:
            source = parquet.ParquetFile(path / f"{name}.parquet")
            _restore_table(target, name, source)
        target.execute("commit")
    if checkpoints.position_of(file) != chain.from_json(told):
        raise BadInput(f"{path}: its tables do not stand where it says")


def _restore_table(target: sqlite3.Connection, name: str, source: Any) -> None:
    """The rows of a table; one of an older version is made with the columns that it had."""
    columns = ", ".join(f'"{column}"' for column in source.schema_arrow.names)
    target.execute(f'create table if not exists "{name}" ({columns})')
    marks = ", ".join("?" * len(source.schema_arrow.names))
    query = f'insert into "{name}" ({columns}) values ({marks})'  # noqa: S608 - names of ours
    for batch in source.iter_batches(_ROWS):
        rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
        target.executemany(query, rows)
