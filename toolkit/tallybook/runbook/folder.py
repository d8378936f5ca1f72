"""Where a run is kept: one folder a run, written aside and renamed."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path

from tallybook import settings, whole
from tallybook.errors import BadInput, TallybookError
from tallybook.layout import FILE_MODE, FOLDER_MODE, Layout, is_bucket, is_fleet

PARTIAL = ".partial"
REPORTS = "reports"
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def node_of(book: Path | str) -> str:
    """The node that wrote ``book``, as a folder name: by its newest segment, else its settings.

    ``fleet`` for a folder or bucket of nodes. Raises TallybookError where the log cannot be listed.
    """
    if is_bucket(book) or is_fleet(Path(book)):
        return "fleet"
    layout = Layout(Path(book))
    try:
        newest = sorted(layout.segments(), key=lambda path: path.stat().st_mtime, reverse=True)
    except OSError as error:
        raise TallybookError(f"cannot read {error.filename}: {error.strerror}") from error
    found = next((name for path in newest if (name := _opened_by(path))), "")
    return safe_name(found or settings.load(layout.settings).node.id) or "node"


def safe_name(text: str) -> str:
    """``text`` as one folder name that leads nowhere else."""
    return _UNSAFE.sub("-", text).strip(".-")[:80]


def named(runbook: str, started: datetime) -> str:
    """The name of a new run: ``<runbook>-<UTC time>-<4 hex>``."""
    stamp = started.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    return f"{safe_name(runbook) or 'notebook'}-{stamp}-{os.urandom(2).hex()}"


def prepare(out: Path) -> Path:
    """Make the folder of the reports under ``out``; raises BadInput where it cannot be written."""
    place = out / REPORTS
    try:
        private_folder(place)
        if not os.access(place, os.W_OK | os.X_OK) or not os.access(out, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise BadInput(f"cannot write under {out}: {error.strerror}; name another --out") from None
    return place


def begin(out: Path, run: str) -> Path:
    """The new folder of a run, under a name that says that it is not whole."""
    folder = out / REPORTS / f"{run}{PARTIAL}"
    folder.mkdir(mode=FOLDER_MODE)
    return folder


def private_folder(path: Path) -> None:
    """Make ``path`` and what is missing above it, readable by their owner alone."""
    for folder in reversed([path, *path.parents]):
        folder.mkdir(mode=FOLDER_MODE, exist_ok=True)


def finish(partial: Path) -> Path:
    """Put the folder on disk and give it its final name; from now on it is whole."""
    shutil.rmtree(partial / ".ipython", ignore_errors=True)
    for path in (*partial.iterdir(), partial):
        if path != partial:
            path.chmod(FILE_MODE)
        whole.sync(path)
    final = partial.rename(partial.with_name(partial.name.removesuffix(PARTIAL)))
    whole.sync(final.parent)
    return final


def drop(partial: Path) -> None:
    """Remove what an interrupted run left."""
    shutil.rmtree(partial, ignore_errors=True)


def _opened_by(segment: Path) -> str:
    """The node that the first line of a segment names, or empty."""
    try:
        with segment.open("rb") as lines:
            opened = json.loads(lines.readline(1 << 16))
        return str(opened.get("node_id") or "")
    except (OSError, ValueError, AttributeError):
        return ""
