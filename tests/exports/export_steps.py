"""Steps shared by the tests of exports: files in a moment, and what was read of them."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tallybook import ops
from tallybook.ops import Export
from tallybook.ops.exports import choosing
from tallybook.ops.exports.profile import Profile

Cell = str | None


def write(path: Path, content: str | bytes) -> Path:
    """A file with this content, its folder made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def profile(tables: Mapping[str, Any]) -> Profile:
    """A profile of these tables."""
    return choosing.parse("given", tables, "given.toml")


@contextmanager
def reading(path: str | Path, **tables: Any) -> Iterator[Export]:
    """An export as read, with a profile of these tables where there are any."""
    with ops.read_export(path, profile=profile(tables) if tables else None) as export:
        yield export


def cells(path: str | Path, **tables: Any) -> tuple[list[str], list[list[Cell]]]:
    """The names of the columns and the rows, every row being readable."""
    with reading(path, **tables) as export:
        assert export.ledger.complete, export.ledger.unreadable.to_dicts()
        return export.columns, [list(row) for row in export.relation().fetchall()]


def unreadable(path: str | Path, **tables: Any) -> list[tuple[Any, ...]]:
    """Line, column, reason and text of what is set apart; rows in = rows + unreadable."""
    with reading(path, **tables) as export:
        ledger = export.ledger
        assert ledger.rows_in == ledger.files["rows_in"].sum()
        return ledger.unreadable.select("line", "column", "reason", "text").rows()


def warnings(path: str | Path, **tables: Any) -> str:
    """What was said of an export."""
    with reading(path, **tables) as export:
        return "\n".join(export.ledger.warnings)


def dynamodb(folder: Path, parts: list[list[dict[str, Any]]], total: int | None = None) -> Path:
    """A DynamoDB export of these items, by part."""
    home, entries = folder / "AWSDynamoDB" / "01-ab", []
    bucket = "exports/AWSDynamoDB/01-ab"
    for at, items in enumerate(parts):
        text = "".join(json.dumps({"Item": item}) + "\n" for item in items)
        path = write(home / "data" / f"{at}.json.gz", gzip.compress(text.encode()))
        digest = base64.b64encode(hashlib.md5(path.read_bytes()).digest()).decode()  # noqa: S324
        entries.append({"itemCount": len(items), "md5Checksum": digest,
                        "dataFileS3Key": f"{bucket}/data/{at}.json.gz"})  # fmt: skip
    write(home / "manifest-files.json", "".join(json.dumps(entry) + "\n" for entry in entries))
    summary = {
        "manifestFilesS3Key": f"{bucket}/manifest-files.json",
        "itemCount": sum(map(len, parts)) if total is None else total,
        "outputFormat": "DYNAMODB_JSON",
    }
    write(home / "manifest-summary.json", json.dumps(summary))
    return folder


def inventory(folder: Path, text: str, **other: Any) -> Path:
    """An S3 Inventory of one CSV file without a header: Bucket, Key, Size, IsLatest."""
    path = write(folder / "data" / "a.csv.gz", gzip.compress(text.encode()))
    return inventoried(folder, path, "CSV", "Bucket, Key, Size, IsLatest", **other)


def inventoried(folder: Path, path: Path, form: str, schema: str, **other: Any) -> Path:
    """The manifest of an S3 Inventory that is one file."""
    manifest = {
        "sourceBucket": "b", "fileFormat": form, "fileSchema": schema,
        "files": [{"key": f"inv/b/data/{path.name}", "size": path.stat().st_size,
                   "MD5checksum": hashlib.md5(path.read_bytes()).hexdigest()}],  # noqa: S324
        **other,
    }  # fmt: skip
    write(folder / "2026-11-30T00-00Z" / "manifest.json", json.dumps(manifest))
    return folder
