"""Text of any encoding as UTF-8, and what one look over its bytes says."""

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tallybook.errors import BadInput, IncompleteInput
from tallybook.ops.exports.parts import Part

_CHUNK = 1 << 20
_OVERLAP = 4
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_BLANK_AT_QUOTE = re.compile(rb'(?:^|[^ \t"])[ \t]+"|"[ \t]+(?:[^ \t"]|$)')
_NOT_IN_CP1252 = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
_CONTROLS = bytes(sorted(set(range(1, 32)) - set(b"\t\n\v\f\r\x1b\x1c\x1d\x1e\x1f\x01")))
_MANY = 0.1


@dataclass(slots=True)
class Look:
    """What the bytes of a text hold, as far as it decides how they are read.

    ``ends`` has the kinds of line ends: lone \\n, lone \\r and both; inside quotes they count too.
    """

    quoted: bool = False
    blanks_at_quotes: bool = False
    ends: set[bytes] = field(default_factory=set)
    doubled_ends: bool = False
    is_utf8: bool = True
    has_wide: bool = False
    outside_cp1252: bool = False
    has_exponents: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """A text as UTF-8 at ``path``, and the encoding that it had."""

    name: str
    path: Path
    encoding: str
    look: Look
    was_guessed: bool = False


def text_of(part: Part, encoding: str | None, target: Path) -> Text:
    """The part as UTF-8: itself, or transcribed into ``target``.

    ``encoding`` None means to find it out: by its mark, else UTF-8, else cp1252 or latin-1 where
    no byte beyond ASCII is UTF-8. Raises BadInput for what is empty or no text.
    """
    head = _head(part)
    found = encoding or _by_mark(head)
    if found is None:
        _require_text(part, head)
    if found is None or _is_utf8(part, found):
        look = look_at(part.path)
        if found or look.is_utf8 or look.has_wide:
            return Text(part.name, part.path, "utf-8", look)
        found = "latin-1" if look.outside_cp1252 else "cp1252"
    _transcribe(part, found, target)
    guessed = encoding is None and not head.startswith(tuple(mark for mark, _ in _BOMS))
    return Text(part.name, target, found, look_at(target), guessed)


def _head(part: Part) -> bytes:
    with part.path.open("rb") as file:
        head = file.read(1 << 16)
    if not head.strip(b" \t\r\n\xef\xbb\xbf\xff\xfe\x00") and part.path.stat().st_size < 1 << 16:
        raise BadInput(f"{part.name} is empty")
    return head


def _require_text(part: Part, head: bytes) -> None:
    if len(head.translate(None, _CONTROLS)) < (1 - _MANY) * len(head):
        raise BadInput(f"{part.name} is no text: it holds control characters")


def _is_utf8(part: Part, encoding: str) -> bool:
    try:
        return codecs.lookup(encoding).name in ("utf-8", "utf-8-sig", "ascii")
    except LookupError:
        raise BadInput(f"{part.name}: there is no encoding {encoding!r}; utf-8, utf-16, latin-1 "
                       "and cp1252 are the usual ones") from None  # fmt: skip


def _by_mark(head: bytes) -> str | None:
    """The encoding by a byte order mark, or by the NULs that UTF-16 leaves between letters."""
    for mark, name in _BOMS:
        if head.startswith(mark):
            return name
    low, high = head[::2], head[1::2]
    if len(high) >= 2 and high.count(0) > 0.7 * len(high) and low.count(0) < 0.1 * len(low):
        return "utf-16-le"
    if len(high) >= 2 and low.count(0) > 0.7 * len(low) and high.count(0) < 0.1 * len(high):
        return "utf-16-be"
    return None


def _transcribe(part: Part, encoding: str, target: Path) -> None:
    decoder = codecs.getincrementaldecoder(encoding)()
    target.parent.mkdir(parents=True, exist_ok=True)
    done = 0
    with part.path.open("rb") as source, target.open("wb") as file:
        try:
            while chunk := source.read(_CHUNK):
                file.write(decoder.decode(chunk).encode())
                done += len(chunk)
            file.write(decoder.decode(b"", final=True).encode())
        except UnicodeError as error:
            raise _no_such_text(part, encoding, done, error) from None


def _no_such_text(
    part: Part, encoding: str, done: int, error: UnicodeError
) -> BadInput | IncompleteInput:
    size = part.path.stat().st_size
    if done >= size:
        return IncompleteInput(
            f"{part.name} ends in the middle of a letter of {encoding}; it is cut"
        )
    at = done + (error.start if isinstance(error, UnicodeDecodeError) else 0)
    return BadInput(f"{part.name} is no {encoding}: see byte {at:,}; name its encoding in [read]")


def look_at(path: Path) -> Look:
    """One look over the bytes of a text."""
    look, letters = Look(), codecs.getincrementaldecoder("utf-8")()
    last = b""
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            whole = last + chunk
            _look_at_ends(look, whole)
            _look_at_quotes(look, whole)
            if not look.has_exponents and b"+" in whole:  # one byte is found ten times sooner
                look.has_exponents = b"E+" in whole
            if look.has_wide or not chunk.isascii():
                _look_at_letters(look, chunk, letters)
            last = chunk[-_OVERLAP:]
    look.is_utf8 = look.is_utf8 and not letters.getstate()[0]
    return look


def _look_at_quotes(look: Look, chunk: bytes) -> None:
    if b'"' not in chunk:
        return
    look.quoted = True
    if not look.blanks_at_quotes and (b' "' in chunk or b'" ' in chunk or b'\t"' in chunk):
        look.blanks_at_quotes = bool(_BLANK_AT_QUOTE.search(chunk))


def _look_at_ends(look: Look, chunk: bytes) -> None:
    if b"\r" not in chunk:
        if b"\n" in chunk:
            look.ends.add(b"\n")
        return
    both = chunk.count(b"\r\n")
    if both:
        look.ends.add(b"\r\n")
    if chunk.count(b"\n") > both + chunk.startswith(b"\n"):
        look.ends.add(b"\n")
    if chunk.count(b"\r") > both + chunk.endswith(b"\r"):
        look.ends.add(b"\r")
    look.doubled_ends = look.doubled_ends or b"\r\r\n" in chunk


def _look_at_letters(look: Look, chunk: bytes, letters: codecs.IncrementalDecoder) -> None:
    look.outside_cp1252 = look.outside_cp1252 or bool(_NOT_IN_CP1252.search(chunk))
    try:
        look.has_wide = not letters.decode(chunk).isascii() or look.has_wide
    except UnicodeDecodeError:
        letters.reset()
        look.is_utf8 = False
        look.has_wide = look.has_wide or not chunk.decode("utf-8", "ignore").isascii()


def lines_at(path: Path, offsets: Sequence[int]) -> list[int]:
    """The lines, from 1, in which these bytes stand, which are in order; a line ends with \\n, with
    \\r or with both. The line that DuckDB gives counts rows, which may have several lines."""
    lines, line, at = [], 1, 0
    with path.open("rb") as file:
        for offset in offsets:
            while at < offset:
                chunk = file.read(min(offset - at, _CHUNK))
                if not chunk:
                    break
                at += len(chunk)
                line += chunk.count(b"\n") + chunk.count(b"\r") - chunk.count(b"\r\n")
            lines.append(line)
    return lines
