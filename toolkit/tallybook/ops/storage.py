"""Places in buckets: local folders, S3 and whatever else pyarrow knows, by their URL."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyarrow import fs

from tallybook.errors import BadInput, TallybookError

_CHUNK = 1 << 20


def file_system(url: str, storage: Mapping[str, Any]) -> tuple[Any, str]:
    """The file system of a URL and the path in it; ``storage`` is given to that of S3.

    Raises BadInput where the URL names none.
    """
    given = dict(storage)
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if url.startswith("s3://") and endpoint:
        given.setdefault("endpoint_override", endpoint)
    try:
        if given and url.startswith("s3://"):
            return fs.S3FileSystem(**given), url.removeprefix("s3://")
        found, root = fs.FileSystem.from_uri(url)
    except (OSError, ValueError, TypeError) as error:
        raise BadInput(refused(url, error)) from None
    return found, str(root)


def refused(what: str, error: Exception) -> str:
    """What a store said, in one line, with what to do about it."""
    said = " ".join(str(error).split())[:300]
    if "ACCESS_DENIED" in said or "403" in said:
        advice = "these credentials have no right to it; ask for list and read"
    elif "NO_SUCH_BUCKET" in said or "404" in said or isinstance(error, FileNotFoundError):
        advice = "there is no such bucket or folder"
    else:
        advice = "look at the name, the region and the credentials"
    return f"{what}: {advice} ({said})"


def listed(url: str, files: Any, root: str) -> list[str]:
    """The paths of the files at or below a place, sorted. Raises BadInput where it is none."""
    try:
        if files.get_file_info(root).is_file:
            return [root]
        found = files.get_file_info(fs.FileSelector(root, recursive=True))
    except OSError as error:
        raise BadInput(refused(url, error)) from None
    return sorted(entry.path for entry in found if entry.is_file)


def fetch(url: str, files: Any, path: str, target: Path) -> None:
    """Copy a file of a bucket to ``target``."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with files.open_input_stream(path, compression=None) as source, target.open("wb") as file:
            shutil.copyfileobj(source, file, _CHUNK)
    except OSError as error:
        raise TallybookError(refused(f"{url}: {path}", error)) from error
