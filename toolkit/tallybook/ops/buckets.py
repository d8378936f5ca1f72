"""A fleet in a bucket: what a question needs is fetched, never the whole.

One listing says what is there; ``fetching`` takes of each node what reaches into the asked time.
Parquet, of archives and of imported logs, is not fetched at all: DuckDB reads the columns and row
groups that a question needs, as ranges, through pyarrow.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyarrow import dataset, parquet, schema, string, unify_schemas

from tallybook.errors import BadInput, TallybookError
from tallybook.layout import NODE_MARK
from tallybook.ops import archive, fetching, windows
from tallybook.ops.fetching import Bucket, File, Reach
from tallybook.ops.fleet import Fleet
from tallybook.ops.imports import stored
from tallybook.ops.nodes import Node
from tallybook.ops.storage import file_system, refused
from tallybook.ops.windows import Instant
from tallybook.ops.wording import counted

_AT_ONCE = 16


class BucketFleet(Fleet):
    """A fleet whose text was fetched and whose Parquet is read in place."""

    def __init__(
        self, bucket: Bucket, nodes: Sequence[Node], out: Path | None, told: list[str],
        left_out: Mapping[str, int], folder: TemporaryDirectory[str],
    ) -> None:  # fmt: skip
        self._bucket, self._told, self._left_out, self._folder = bucket, told, left_out, folder
        self._remote: dict[str, Any] = {}
        super().__init__(bucket.aside, nodes, out)
        self.book = Path(bucket.url)

    def _pruned_of(self) -> Mapping[str, int]:
        return {**super()._pruned_of(), **self._left_out}

    def _attach_archives(self) -> None:
        paths = [f"{self._root(node.name)}/archive/{archive.parquet(Path(), entry.segment).name}"
                 for node in self._nodes for entry in node.entries if entry.rows]  # fmt: skip
        if paths:
            self._remote["remote_archive"] = _opened(self._bucket, _dataset, paths)
            self._register()
            archive.attach_nodes(self._connection, paths, remote=True)

    def _attach_imports(self) -> None:
        remote = [(name, record, f"{self._root(name)}/log/{record.events_file}")
                  for name, record, _ in self._imported]  # fmt: skip
        if remote:
            paths = [path for *_, path in remote]
            self._remote["remote_rows"] = _opened(self._bucket, _by_node, paths)
            self._register()
            stored.attach_remote(self._connection, remote)

    def _set_variables(self) -> None:
        super()._set_variables()
        self._register()

    def _register(self) -> None:
        """Name what is read in place: a connection knows its own alone."""
        for name, rows in self._remote.items():
            self._connection.register(name, rows)

    def _root(self, node: str) -> str:
        return f"{self._bucket.root}/{NODE_MARK}{node}"

    @property
    def warnings(self) -> list[str]:
        """As of a fleet; and how much of the bucket was fetched."""
        return self._told + super().warnings

    def close(self) -> None:
        """Free the memory and what was fetched."""
        super().close()
        self._folder.cleanup()


def open_bucket(
    url: str, out: Path | None, pattern: str, since: Instant, until: Instant,
    storage: Mapping[str, Any],
) -> BucketFleet:  # fmt: skip
    """The fleet below ``url``. Raises BadInput where it cannot be listed or has no node."""
    utc = windows.named_zone("UTC")
    reach = Reach(windows.instant(since, utc), windows.instant(until, utc))
    folder = TemporaryDirectory(prefix="tallybook-bucket-")
    try:
        files, root = file_system(url, storage)
        bucket = Bucket(url, files, root.rstrip("/"), Path(folder.name))
        return _fleet(bucket, out, pattern, reach, folder)
    except BaseException:
        folder.cleanup()
        raise


def _fleet(
    bucket: Bucket, out: Path | None, pattern: str, reach: Reach, folder: TemporaryDirectory[str]
) -> BucketFleet:
    there = bucket.listed()
    of_nodes: dict[str, list[File]] = {}
    for file in sorted(there, key=lambda file: file.path):
        of_nodes.setdefault(file.node, []).append(file)
    wanted = _wanted(bucket, list(of_nodes), pattern)
    nodes: list[Node] = []
    left_out: dict[str, int] = {}
    for node, left in _fetched(bucket, {name: of_nodes[name] for name in wanted}, reach):
        nodes.append(node)
        left_out |= left
    total = sum(file.size for file in there)
    told = [f"{bucket.url}: fetched {bucket.fetched:,} of {total:,} bytes, "
            f"{counted(len(wanted), 'node')} of {len(of_nodes):,}"]  # fmt: skip
    return BucketFleet(bucket, nodes, out, told, left_out, folder)


def _wanted(bucket: Bucket, names: Sequence[str], pattern: str) -> list[str]:
    if not names:
        raise BadInput(f"{bucket.url}: no folder {NODE_MARK}… with a log in it")
    wanted = [name for name in names if fnmatchcase(name, pattern)]
    if not wanted:
        raise BadInput(f"no node is named like {pattern!r}; there are {', '.join(names[:5])}")
    return wanted


def _fetched(
    bucket: Bucket, of_nodes: Mapping[str, Sequence[File]], reach: Reach
) -> Iterator[tuple[Node, dict[str, int]]]:
    """Each node and what is left out of it; several at once, since a store answers slowly."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        work = [pool.submit(fetching.fetch, bucket, name, files, reach)
                for name, files in of_nodes.items()]  # fmt: skip
        try:
            for one in work:
                yield one.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _opened(
    bucket: Bucket, made: Callable[[Bucket, Sequence[str]], Any], paths: Sequence[str]
) -> Any:
    try:
        return made(bucket, paths)
    except OSError as error:
        raise TallybookError(refused(bucket.url, error)) from error


def _schema(bucket: Bucket, paths: Sequence[str]) -> Any:
    """The columns of all files: an older one may lack some."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return unify_schemas(
            list(pool.map(lambda path: parquet.read_schema(path, filesystem=bucket.files), paths)),
            promote_options="permissive",
        )


def _dataset(bucket: Bucket, paths: Sequence[str]) -> Any:
    """Parquet files as one."""
    return dataset.dataset(
        list(paths), schema=_schema(bucket, paths), filesystem=bucket.files, format="parquet"
    )


def _by_node(bucket: Bucket, paths: Sequence[str]) -> Any:
    """The Parquet files of imported logs as one, with the column ``node`` of their folders."""
    node = schema([("node", string())])
    return dataset.dataset(
        list(paths), schema=unify_schemas([_schema(bucket, paths), node]),
        filesystem=bucket.files, format="parquet",
        partitioning=dataset.partitioning(node, flavor="hive"), partition_base_dir=bucket.root,
    )  # fmt: skip
