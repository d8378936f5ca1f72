"""What a rebuild leaves in its folder ``rebuilt/<time>/`` beside the old state."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from tallybook.errors import BadInput, unwritable
from tallybook.layout import FOLDER_MODE
from tallybook.log.durable import make_folder, replace_file, sync_folder
from tallybook.recover import page
from tallybook.recover.certificate import Certificate


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
        raise unwritable(f"{error.filename or folder}: the certificate", error) from error
    return path


def require_folder(folder: Path, option: str) -> None:
    """Raises BadInput where nothing can be written into the ``folder`` of an option; asked before
    the long work."""
    above = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not above.is_dir():
        raise BadInput(f"{option} {folder}: {above} is a file; name a folder")
    if not os.access(above, os.W_OK | os.X_OK):
        raise BadInput(f"{option} {folder}: no right to write into {above}")
