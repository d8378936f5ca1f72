"""Up to where a run could read: the ends of the log of its book, and the files it was given."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from tallybook import clock
from tallybook.layout import (
    NODE_MARK,
    SEGMENT_SUFFIX,
    Layout,
    is_bucket,
    is_fleet,
    segment_name,
)

_TAIL = 1 << 20


def of_log(book: Path | str) -> list[dict[str, Any]]:
    """The newest segment of each writer: ``{"segment", "bytes", "seq"}``, ``seq`` its last line.

    ``seq`` is None where that line cannot be read; an imported log has its file and bytes alone.
    Of a folder of nodes ``segment`` begins with the node; of a bucket nothing is told.
    """
    if is_bucket(book):
        return []
    if is_fleet(Path(book)):
        nodes = sorted(path for path in Path(book).glob(f"{NODE_MARK}*") if path.is_dir())
        return [
            one | {"segment": f"{node.name}/{one['segment']}"}
            for node in nodes
            for one in of_log(node)
        ]
    layout = Layout(Path(book))
    if layout.imported.exists():
        files = sorted(path for path in layout.log.iterdir() if path.suffix == ".parquet")
        return [{"segment": path.name, "bytes": path.stat().st_size} for path in files]
    by_writer = groupby(layout.segments(), key=lambda path: path.name[:8])
    return [_end(layout, max(paths)) for _, paths in by_writer]


def of_files(parameters: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """``{parameter: {"bytes", "modified_at"}}`` of those whose value is the path of a file."""
    paths = {name: Path(value) for name, value in parameters.items() if _may_be_path(value)}
    return {name: _file(path) for name, path in paths.items() if path.is_file()}


def _may_be_path(value: Any) -> bool:
    return (
        isinstance(value, str)
        and 0 < len(value.encode(errors="replace")) < 256 * 4
        and ("\0" not in value and max(map(len, value.split("/"))) < 256)
    )


def _file(path: Path) -> dict[str, Any]:
    found = path.stat()
    at = clock.to_text(datetime.fromtimestamp(found.st_mtime, UTC))
    return {"bytes": found.st_size, "modified_at": at}


def _end(layout: Layout, segment: Path) -> dict[str, Any]:
    size = segment.stat().st_size
    plain = segment.name.endswith(SEGMENT_SUFFIX)
    seq = _last_seq(segment, size) if plain else _told(layout.manifest(segment_name(segment)))
    return {"segment": segment.name, "bytes": size, "seq": seq}


def _last_seq(segment: Path, size: int) -> int | None:
    """The sequence of the last whole line."""
    with segment.open("rb") as lines:
        lines.seek(max(0, size - _TAIL))
        whole = lines.read().rpartition(b"\n")[0]
    return _seq(whole.rpartition(b"\n")[2], "seq")


def _told(manifest: Path) -> int | None:
    try:
        return _seq(manifest.read_bytes(), "last_seq")
    except OSError:
        return None


def _seq(text: bytes, name: str) -> int | None:
    try:
        seq = json.loads(text)[name]
    except (ValueError, KeyError, TypeError):
        return None
    return seq if isinstance(seq, int) else None
