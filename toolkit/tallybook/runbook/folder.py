"""Where a run is kept: one folder a run, written aside and renamed, and a ledger of all runs."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tallybook import settings
from tallybook.errors import BadInput, TallybookError
from tallybook.layout import FILE_MODE, FOLDER_MODE, Layout, is_bucket, is_fleet

PARTIAL = ".partial"
LEDGER = "runs.ndjson"
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


def begin(out: Path, runbook: str, started: datetime) -> Path:
    """A new folder ``<runbook>-<UTC time>-<4 hex>.partial`` under ``out/reports``."""
    stamp = started.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    name = f"{safe_name(runbook) or 'notebook'}-{stamp}-{os.urandom(2).hex()}{PARTIAL}"
    folder = out / "reports" / name
    try:
        private_folder(folder)
    except OSError as error:
        raise BadInput(f"cannot write under {out}: {error.strerror}; name another --out") from None
    return folder


def private_folder(path: Path) -> None:
    """Make ``path`` and what is missing above it, readable by their owner alone."""
    for folder in reversed([path, *path.parents]):
        folder.mkdir(mode=FOLDER_MODE, exist_ok=True)


def finish(partial: Path) -> Path:
    """Give the folder its final name; from now on it is whole."""
    shutil.rmtree(partial / ".ipython", ignore_errors=True)
    for path in partial.iterdir():
        path.chmod(FILE_MODE)
    return partial.rename(partial.with_name(partial.name.removesuffix(PARTIAL)))


def drop(partial: Path) -> None:
    """Remove what an interrupted run left."""
    shutil.rmtree(partial, ignore_errors=True)


def record(out: Path, line: Mapping[str, Any]) -> None:
    """Append one run to the ledger, in one write."""
    text = json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n"
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    descriptor = os.open(out / LEDGER, flags, FILE_MODE)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def _opened_by(segment: Path) -> str:
    """The node that the first line of a segment names, or empty."""
    try:
        with segment.open("rb") as lines:
            opened = json.loads(lines.readline(1 << 16))
        return str(opened.get("node_id") or "")
    except (OSError, ValueError, AttributeError):
        return ""
