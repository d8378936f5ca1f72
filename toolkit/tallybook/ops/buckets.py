"""A fleet in a bucket: what a question needs is fetched, never the whole.

One listing says what is there. Of each segment the first bytes say when it begins, so segments
outside the asked time stay where they are; the others are fetched whole, since text cannot be
read in part. Parquet of imported logs is not fetched at all: DuckDB reads the columns and row
groups that a question needs, as ranges, through pyarrow.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyarrow import dataset, fs, parquet, schema, string, unify_schemas

from tallybook import packed
from tallybook.errors import BadInput, TallybookError
from tallybook.layout import MANIFEST_SUFFIX, SEGMENT_SUFFIX, first_seq
from tallybook.ops import fleet, openings, windows
from tallybook.ops.fleet import MARK, Fleet, Node
from tallybook.ops.imports import stored
from tallybook.ops.storage import file_system, refused
from tallybook.ops.windows import Instant
from tallybook.ops.wording import counted

_HEAD_BYTES = 1 << 18
_SMALL = ("anchor.json", "imported.json", "writer.json")


@dataclass(frozen=True, slots=True)
class _File:
    """A file of a node's log in the bucket, and where it lies when fetched."""

    node: str
    path: str
    name: str
    size: int

    @property
    def is_segment(self) -> bool:
        return self.name.removesuffix(packed.SUFFIX).endswith(SEGMENT_SUFFIX)


@dataclass(slots=True)
class _Bucket:
    """A place in a file system; ``fetched`` counts the bytes that came from it."""

    url: str
    files: Any
    root: str
    aside: Path
    fetched: int = 0

    def listed(self) -> list[_File]:
        """Every file of a log of a node; raises BadInput where the bucket cannot be listed."""
        try:
            found = self.files.get_file_info(fs.FileSelector(self.root, recursive=True))
        except OSError as error:
            raise BadInput(refused(self.url, error)) from None
        return [file for info in found if info.is_file and (file := self._file(info))]

    def _file(self, info: Any) -> _File | None:
        steps = info.path.removeprefix(self.root).strip("/").split("/")
        if len(steps) != 3 or not steps[0].startswith(MARK):
            return None
        if steps[1] == "log" or steps[2] == "unreadable.ndjson":
            return _File(steps[0].removeprefix(MARK), info.path, steps[2], info.size)
        return None

    def head(self, file: _File) -> Path:
        """The first bytes of a file, in a file of that name."""
        return self._written(file, self.aside / "heads", min(file.size, _HEAD_BYTES))

    def fetch(self, file: _File) -> Path:
        """The whole file, in its place below ``aside``."""
        return self._written(file, self.aside / f"{MARK}{file.node}" / "log", file.size)

    def _written(self, file: _File, folder: Path, size: int) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / file.name
        try:
            with self.files.open_input_file(file.path) as source:
                target.write_bytes(source.read_at(size, 0))
        except OSError as error:
            raise TallybookError(refused(f"{self.url}: {file.path}", error)) from error
        self.fetched += size
        return target


class BucketFleet(Fleet):
    """A fleet whose text was fetched and whose imported logs are read in place."""

    def __init__(
        self, bucket: _Bucket, nodes: Sequence[Node], out: Path | None, told: list[str],
        left_out: Mapping[str, int], folder: TemporaryDirectory[str],
    ) -> None:  # fmt: skip
        self._bucket, self._told, self._left_out, self._folder = bucket, told, left_out, folder
        super().__init__(bucket.aside, nodes, out)

    def _pruned_of(self) -> Mapping[str, int]:
        return {**super()._pruned_of(), **self._left_out}

    def _attach(self) -> None:
        remote = [(name, record, f"{self._bucket.root}/{MARK}{name}/log/{record.events_file}")
                  for name, record, _ in self._imported]  # fmt: skip
        if remote:
            rows = _dataset(self._bucket, [path for *_, path in remote])
            stored.attach_remote(self._connection, remote, rows)

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
    folder = TemporaryDirectory(prefix="tallybook-bucket-")
    try:
        files, root = file_system(url, storage)
        bucket = _Bucket(url, files, root.rstrip("/"), Path(folder.name))
        return _opened(bucket, out, pattern, since, until, folder)
    except BaseException:
        folder.cleanup()
        raise


def _opened(
    bucket: _Bucket, out: Path | None, pattern: str, since: Instant, until: Instant,
    folder: TemporaryDirectory[str],
) -> BucketFleet:  # fmt: skip
    utc = windows.named_zone("UTC")
    start, end = windows.instant(since, utc), windows.instant(until, utc)
    there = bucket.listed()
    names = sorted({file.node for file in there})
    if not names:
        raise BadInput(f"{bucket.url}: no folder {MARK}… with a log in it")
    wanted = [name for name in names if fnmatchcase(name, pattern)]
    if not wanted:
        raise BadInput(f"no node is named like {pattern!r}; there are {', '.join(names[:5])}")
    left_out: dict[str, int] = {}
    for name in wanted:
        _fetch(bucket, [file for file in there if file.node == name], start, end, left_out)
    nodes = [fleet.node_at(name, bucket.aside / f"{MARK}{name}", in_place=False) for name in wanted]
    total = sum(file.size for file in there)
    told = [f"{bucket.url}: fetched {bucket.fetched:,} of {total:,} bytes, "
            f"{counted(len(wanted), 'node')} of {len(names):,}"]  # fmt: skip
    return BucketFleet(bucket, nodes, out, told, left_out, folder)


def _fetch(
    bucket: _Bucket,
    files: Sequence[_File],
    since: datetime | None,
    until: datetime | None,
    left_out: dict[str, int],
) -> None:
    """Fetch what the log of one node has between two instants."""
    (bucket.aside / f"{MARK}{files[0].node}" / "log").mkdir(parents=True)
    segments = sorted((file for file in files if file.is_segment), key=lambda file: file.name)
    kept = list(_between(bucket, segments, since, until)) if since or until else segments
    for file in kept:
        bucket.fetch(file)
    stems = {file.name.removesuffix(packed.SUFFIX).removesuffix(SEGMENT_SUFFIX) for file in kept}
    for file in files:
        stem = file.name.removesuffix(MANIFEST_SUFFIX)
        if file.name in _SMALL or (stem != file.name and stem in stems):
            bucket.fetch(file)
        elif file.name == "unreadable.ndjson":
            path = bucket.fetch(file)
            path.rename(path.parent.parent / path.name)
    for writer in {file.name[:8] for file in kept}:
        first = min(first_seq(file.name) for file in kept if file.name.startswith(writer))
        if first > 1:
            left_out[writer] = first - 1


def _between(
    bucket: _Bucket, segments: Sequence[_File], since: datetime | None, until: datetime | None
) -> Iterator[_File]:
    """The segments that begin before ``until`` and are not followed by one before ``since``."""
    begun = [_begun(bucket, file) for file in segments]
    for at, file in enumerate(segments):
        after = begun[at + 1] if at + 1 < len(segments) else None
        same = after and segments[at + 1].name[:8] == file.name[:8]
        is_over = since and same and after is not None and after <= since
        first = begun[at]
        if not is_over and not (until and first and first >= until):
            yield file


def _begun(bucket: _Bucket, file: _File) -> datetime | None:
    """When a segment begins; None where its first bytes do not say."""
    (opening,) = openings.read([bucket.head(file)])
    return windows.instant(opening.first_at or None, windows.named_zone("UTC"))


def _dataset(bucket: _Bucket, paths: Sequence[str]) -> Any:
    """The Parquet files of imported logs as one, with the column ``node`` of their folders."""
    try:
        known = unify_schemas(
            [parquet.read_schema(path, filesystem=bucket.files) for path in paths]
        )
        node = schema([("node", string())])
        return dataset.dataset(
            list(paths), schema=unify_schemas([known, node]), filesystem=bucket.files,
            format="parquet", partitioning=dataset.partitioning(node, flavor="hive"),
            partition_base_dir=bucket.root,
        )  # fmt: skip
    except OSError as error:
        raise TallybookError(refused(bucket.url, error)) from error
