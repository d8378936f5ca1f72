"""Manifests and checksums: a part that is missing or damaged is never "deleted in the cloud"."""

import base64
import hashlib
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tallybook.errors import BadInput, IncompleteInput
from tallybook.ops.exports.parts import Found, Part

_NUMBER = re.compile(r"(?i)(?:^|[^0-9])(?:part|shard|chunk|slice|split|piece|data)[-_. ]?([0-9]+)")
_BARE = re.compile(r"^0[0-9]{4,}(?=\.|$)")
_OF = re.compile(r"(?i)([0-9]+)[-_ ]?of[-_ ]?([0-9]+)")
_SUM = re.compile(r"^([0-9a-fA-F]{32,128}) [ *]?(.+)$")
_SUMS = {".md5": "md5", ".sha256": "sha256", ".sha1": "sha1"}
_BY_LENGTH = {32: "md5", 40: "sha1", 64: "sha256", 128: "sha512"}


def digest(path: Path, kind: str) -> bytes:
    """The digest of a file: md5, sha1, sha256 or sha512."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).digest()


def read(part: Part) -> Any:
    """The JSON of a manifest. Raises IncompleteInput where it is cut."""
    try:
        return json.loads(part.path.read_text("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise IncompleteInput(f"{part.name} is a damaged or cut manifest: {error}") from None


def the_only(parts: Iterable[Part], what: str, source: str) -> Part | None:
    """The only one; None where there is none. Raises BadInput where two exports are mixed."""
    found = list(parts)
    if len(found) > 1:
        names = " and ".join(part.name for part in found[:2])
        raise BadInput(f"{source} holds {len(found)} exports ({what} {names}); name one of them")
    return found[0] if found else None


def part_of(found: Found, key: str, manifest: Part) -> Part:
    """The file that a manifest names by its key in a bucket, the longest end of which counts."""
    steps = key.split("/")
    for at in range(len(steps)):
        ending = "/".join(steps[at:])
        for part in (*found.parts, *found.beside):
            if part.name == ending or part.name.endswith(f"/{ending}"):
                return part
    raise IncompleteInput(f"{found.source}: {manifest.name} names {key}, which is not there")


def require_digest(part: Part, kind: str, expected: str, who: str) -> None:
    """Raise IncompleteInput where a file is not the one that ``expected`` (hex or base64) is of."""
    found = digest(part.path, kind)
    if expected.lower() not in (found.hex(), base64.b64encode(found).decode().lower()):
        raise IncompleteInput(
            f"{part.name} is damaged or cut: its {kind} is {found.hex()}, and {who} says {expected}"
        )


def require_size(part: Part, size: int, who: str) -> None:
    """Raise IncompleteInput where a file has not so many bytes."""
    found = part.path.stat().st_size
    if found != size:
        raise IncompleteInput(
            f"{part.name} is cut or another file: it has {found:,} bytes, and {who} says {size:,}"
        )


def require_no_other(found: Found, parts: Iterable[Part], manifest: Part) -> None:
    """Raise BadInput where files lie beside those that a manifest names."""
    known = {part.path for part in parts} | {manifest.path}
    other = [part.name for part in found.parts
             if part.path not in known and "manifest" not in part.name]  # fmt: skip
    if other:
        raise BadInput(f"{found.source}: {manifest.name} does not name {other[0]}; two exports "
                       "seem to be mixed")  # fmt: skip


def require_sums(found: Found) -> None:
    """Check the parts against the checksum files that lie beside them.

    Raises IncompleteInput for a part that is damaged or missing."""
    for beside in found.beside:
        name = beside.name.rpartition("/")[2]
        kind = _SUMS.get(Path(name).suffix.lower(), "")
        if kind:
            _require_sum_of(found, beside, kind)
        elif name.upper().endswith("SUMS"):
            _require_listed_sums(found, beside)


def _require_sum_of(found: Found, beside: Part, kind: str) -> None:
    words = beside.path.read_text("utf-8", "replace").split()
    of = beside.name.rpartition(".")[0]
    for part in found.parts:
        if part.name == of and words:
            require_digest(part, kind, words[0], beside.name)


def _require_listed_sums(found: Found, beside: Part) -> None:
    folder = beside.name.rpartition("/")[0]
    for line in beside.path.read_text("utf-8", "replace").splitlines():
        listed = _SUM.match(line)
        if listed is None or len(listed[1]) not in _BY_LENGTH:
            continue
        name = f"{folder}/{listed[2]}".strip("/").removeprefix("./")
        part = next((part for part in found.parts if part.name == name), None)
        if part is None:
            raise IncompleteInput(f"{found.source}: {beside.name} names {name}, which is not there")
        require_digest(part, _BY_LENGTH[len(listed[1])], listed[1], beside.name)


def require_numbers(found: Found) -> None:
    """Raise IncompleteInput where the numbers of the parts have a hole or a lost end."""
    if len(found.parts) == 1 and not _OF.search(found.parts[0].name):
        return
    families: dict[str, dict[int, str]] = {}
    for part in found.parts:
        name = part.name.rpartition("/")[2]
        if total := _OF.search(name):
            _require_of(found, part.name, int(total[2]))
        mark = _NUMBER.search(name) or _BARE.search(name)
        if mark:
            number = mark[mark.lastindex or 0]
            start = mark.start(mark.lastindex or 0)
            family = part.name.rpartition("/")[0] + "/" + name[:start]
            families.setdefault(family, {})[int(number)] = part.name
    for numbers in families.values():
        _require_no_hole(found.source, numbers)


def _require_of(found: Found, name: str, total: int) -> None:
    if len(found.parts) < total:
        raise IncompleteInput(f"{found.source}: {name} is one of {total} parts, and "
                              f"{len(found.parts)} are there")  # fmt: skip


def _require_no_hole(source: str, numbers: dict[int, str]) -> None:
    lowest = min(numbers)
    first = lowest if lowest < 2 else 0
    for number in range(first, max(numbers)):
        if number not in numbers:
            near = next(numbers[other] for other in sorted(numbers) if other > number)
            raise IncompleteInput(f"{source}: part {number} is missing before {near}")


def require_total(part: Part, total: int, summed: int, files: Part) -> None:
    """Raise IncompleteInput where a manifest lists fewer rows than the export has."""
    if total != summed:
        raise IncompleteInput(f"{part.name} says {total:,} rows, and {files.name} lists {summed:,}")
