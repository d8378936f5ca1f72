"""What a rebuild leaves behind: ``rebuilt/<time>/`` with the old state and the certificate.

The certificates stay; of the old states the newest three, each as large as a state.db.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from itertools import count
from pathlib import Path

from tallybook.errors import BadInput
from tallybook.layout import FOLDER_MODE, Layout
from tallybook.log.durable import make_folder, replace_file, sync_folder
from tallybook.recover import page
from tallybook.recover.certificate import Certificate

KEPT = 3
_STATE = ("state.db", "state.db-wal", "state.db-shm", "state.db-journal", "cache.json")


def begin(layout: Layout, made_at: str) -> Path:
    """Make the folder of a rebuild, which nobody else has."""
    make_folder(layout.rebuilt, FOLDER_MODE)
    stamp = made_at.replace("-", "").replace(":", "").replace(".", "")
    for number in count(1):
        folder = layout.rebuilt / (stamp if number == 1 else f"{stamp}-{number}")
        try:
            folder.mkdir(FOLDER_MODE)
            break
        except FileExistsError:
            continue
    sync_folder(layout.rebuilt, "rebuilt")
    return folder


def set_aside(path: Path, folder: Path) -> None:
    """Move a file into the folder of a rebuild; nothing where there is no such file."""
    if path.exists():
        path.replace(folder / path.name)
        sync_folder(folder, "set aside")


def forget(folder: Path) -> None:
    """A rebuild that came to nothing leaves no folder: what lies in it has its old name too."""
    shutil.rmtree(folder)
    with suppress(OSError):
        folder.parent.rmdir()


def write_certificate(folder: Path, certificate: Certificate) -> Path:
    """Write ``certificate.json`` and ``certificate.html``; the path of the first."""
    path = folder / "certificate.json"
    try:
        make_folder(folder, FOLDER_MODE)
        replace_file(path, certificate.text().encode(), "certificate")
        replace_file(folder / "certificate.html", page.html(certificate).encode(), "certificate")
    except OSError as error:
        raise BadInput(
            f"{error.filename or folder}: the certificate cannot be written: {error.strerror}"
        ) from error
    return path


def require_folder(folder: Path, option: str) -> None:
    """Raises BadInput where nothing can be written into the ``folder`` of an option; asked before
    the long work."""
    above = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not above.is_dir():
        raise BadInput(f"{option} {folder}: {above} is a file; name a folder")
    if not os.access(above, os.W_OK | os.X_OK):
        raise BadInput(f"{option} {folder}: no right to write into {above}")


def drop_old(layout: Layout) -> None:
    """Remove the old states of all but the newest three rebuilds; their certificates stay."""
    kept = sorted(path for path in layout.rebuilt.iterdir() if (path / _STATE[0]).exists())
    for folder in kept[:-KEPT]:
        for name in _STATE:
            (folder / name).unlink(missing_ok=True)
