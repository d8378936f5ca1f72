"""What a file is, by its first bytes: its name may say anything."""

import zipfile
from pathlib import Path

GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
ZIP = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
PARQUET = b"PAR1"
ORC = b"ORC"
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_FOREIGN = {
    _OLE[:4]: "is a workbook of the old kind (.xls); save it as .xlsx or CSV",
    b"SQLite format 3": "is an SQLite database; write its table as CSV first",
    b"Obj\x01": "is binary Avro; write it as NDJSON or Parquet first",
    b"\x7fELF": "is a program",
    b"%PDF": "is a PDF",
    b"BZh": "is packed by bzip2; unpack it first",
    b"\xfd7zXZ\x00": "is packed by xz; unpack it first",
    b"7z\xbc\xaf\x27\x1c": "is a 7z archive; unpack it first",
    b"Rar!": "is a rar archive; unpack it first",
}
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_DIRECTORY_BYTES = 1 << 20


def foreign(head: bytes, path: Path) -> str | None:
    """What a file is that no reader here reads, and what to do about it; None for all others."""
    if head.startswith(_OLE) and _holds(path, _ENCRYPTED):
        return "is a password-protected workbook; save it without its password"
    return next((what for magic, what in _FOREIGN.items() if head.startswith(magic)), None)


def _holds(path: Path, mark: bytes) -> bool:
    """Whether the first or last megabyte of a file has ``mark``: one of them is its directory."""
    with path.open("rb") as file:
        if mark in file.read(_DIRECTORY_BYTES):
            return True
        file.seek(max(path.stat().st_size - _DIRECTORY_BYTES, 0))
        return mark in file.read(_DIRECTORY_BYTES)


def is_workbook(path: Path) -> bool:
    """Whether a zip archive is a workbook."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError):
        return False
    return "xl/workbook.xml" in names or "xl/workbook.bin" in names
