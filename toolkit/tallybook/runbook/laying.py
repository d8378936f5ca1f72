"""``init``: notebooks, runbooks and settings laid into a folder of one's own, again and again.

What was laid is remembered by its hash, in ``.tallybook-laid.json``. A file that is still as it was
laid is replaced by the one of this version; one that a person edited, or took away, is left so.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tallybook import settings, whole
from tallybook.errors import BadInput
from tallybook.layout import carried, is_book
from tallybook.runbook.folder import private_folder

LAID = ".tallybook-laid.json"
FOLDERS = ("notebooks", "runbooks")
SETTINGS = "book/book.toml"
_HEAD = """\
# Settings of this book. Take the # away from a line, and from the head of its table, to change one.
# What each means: docs/settings.md of tallybook."""
TABLES: Mapping[str, type] = {
    "[node]": settings.NodeSettings,
    "[log]": settings.LogSettings,
    "[worker]": settings.WorkerSettings,
    "[cache]": settings.CacheSettings,
    '[topics."NAME"]': settings.TopicSettings,
}
"""The tables of book.toml, as they are written there."""
_SUFFIXES = (".ipynb", ".md", ".toml")


@dataclass(frozen=True, slots=True)
class Laid:
    """What became of each file, by its name in the folder: ``laid`` anew, ``updated``, ``same``,
    ``edited`` (by a person, and this version has another) or ``removed`` (by a person)."""

    root: Path
    files: Mapping[str, str]

    def those(self, what: str) -> list[str]:
        """The files of which that became."""
        return [name for name, became in self.files.items() if became == what]


def lay(root: Path) -> Laid:
    """Lay the carried notebooks and runbooks, and the settings of a book, into ``root``.

    Raises BadInput where the folder is a file or a book, or cannot be written.
    """
    if root.exists() and not root.is_dir():
        raise BadInput(f"{root} is a file; name a folder")
    if is_book(root):
        raise BadInput(
            f"{root} is a book; name a folder for notebooks, runbooks and a book of its own"
        )
    try:
        private_folder(root)
        known = _remembered(root)
        wanted = dict(_wanted())
        files = {name: _lay(root / name, text, known.get(name)) for name, text in wanted.items()}
        hashes = {name: _kept(files[name], text, known.get(name)) for name, text in wanted.items()}
        _remember(root, known | hashes)
    except OSError as error:
        raise BadInput(
            f"cannot write under {root}: {error.strerror}; name another folder"
        ) from None
    return Laid(root, files)


def carried_as(name: str) -> Path | None:
    """Where this version carries the file that is laid as ``name``; None for one that it writes."""
    folder, _, file = name.partition("/")
    return carried(folder) / file if folder in FOLDERS else None


def _wanted() -> Iterator[tuple[str, bytes]]:
    for folder in FOLDERS:
        for path in sorted(carried(folder).iterdir()):
            if path.suffix in _SUFFIXES:
                yield f"{folder}/{path.name}", path.read_bytes()
    yield SETTINGS, _settings().encode()


def _settings() -> str:
    """Every setting with its default, as comments: a setting that is not written has its default
    of the version that reads it."""
    parts = [_HEAD]
    for table, kind in TABLES.items():
        rows = (f"# {one.name} = {_toml(one.default)}" for one in fields(kind))
        parts.append("\n".join([f"# {table}", *rows]))
    return "\n\n".join(parts) + "\n"


def _toml(default: Any) -> str:
    if isinstance(default, bool):
        return str(default).lower()
    return str(list(default)) if isinstance(default, tuple) else json.dumps(default)


def _lay(path: Path, text: bytes, laid: str | None) -> str:
    """What became of one file; ``laid`` is the hash of what was laid there before."""
    if not path.exists():
        if laid:
            return "removed"
        _write(path, text)
        return "laid"
    found = path.read_bytes()
    if found == text:
        return "same"
    if _hash(found) != laid:
        return "edited"
    _write(path, text)
    return "updated"


def _kept(became: str, text: bytes, laid: str | None) -> str:
    """The hash to remember: of an edited or removed file that of what was laid, if anything was."""
    return (laid or "") if became in ("edited", "removed") else _hash(text)


def _write(path: Path, text: bytes) -> None:
    """All of it or nothing, also where the machine stops in the middle."""
    private_folder(path.parent)
    whole.put(path, text)


def _remembered(root: Path) -> dict[str, str]:
    try:
        told: Any = json.loads((root / LAID).read_bytes())
        return {str(name): str(digest) for name, digest in told["files"].items()}
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BadInput(
            f"{root / LAID} cannot be read; it says what was laid. Take it away, and what differs "
            "from this version counts as edited"
        ) from None


def _remember(root: Path, hashes: Mapping[str, str]) -> None:
    kept = {name: digest for name, digest in sorted(hashes.items()) if digest}
    _write(root / LAID, (json.dumps({"files": kept}, indent=1) + "\n").encode())


def _hash(text: bytes) -> str:
    return hashlib.blake2b(text, digest_size=16).hexdigest()
