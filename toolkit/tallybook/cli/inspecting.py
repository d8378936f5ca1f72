"""``tallybook reconcile EXPORT --inspect``: what an export is, and a profile that pins it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tallybook import whole
from tallybook.cli import output
from tallybook.errors import BadInput

if TYPE_CHECKING:
    from tallybook.ops.exports.inspecting import Inspected

_FINDINGS, _INCOMPLETE = 1, 4
_SHOWN = 10


def run(args: argparse.Namespace) -> int:
    """0 where nothing looks wrong, 1 where something does, 4 where a row cannot be read."""
    from tallybook.ops.exports import choosing, inspecting

    profile = choosing.load(args.profile) if args.profile else None
    found = inspecting.inspect(args.export, profile)
    written = _write(found.profile, Path(args.out)) if args.out else None
    shown = found.as_json() | ({"written": str(written)} if written else {})
    output.answer(shown, args.json, text=lambda: _text(found, written))
    if found.bad:
        return _INCOMPLETE
    return _FINDINGS if found.suspicious else 0


def _write(text: str, folder: Path) -> Path:
    """The profile as a new file ``profile.toml``. Raises BadInput where it is there already."""
    path = folder / "profile.toml"
    if path.exists():
        raise BadInput(f"{path} is there already; name another folder with --out")
    with output.writing_under(folder):
        whole.put(path, text.encode())
    return path


def _text(found: Inspected, written: Path | None) -> str:
    parts = [_first_line(found), output.table(_columns(found), ["column", "type", "nulls",
             "different", "samples"])]  # fmt: skip
    if found.bad:
        bad: list[dict[str, Any]] = [
            {"file": one.file, "line": one.line, "reason": one.reason, "text": one.text}
            for one in found.bad[:_SHOWN]
        ]
        parts.append(output.table(bad, ["file", "line", "reason", "text"]))
    parts += [f"suspicious: {words}" for words in found.suspicious]
    if found.known:
        parts.append(f"a profile that knows these columns: --profile {found.known[0]}")
    if written:
        return "\n\n".join([*parts, f"next: look at {written}, then use it with --profile"])
    return "\n\n".join([*parts, "# a profile; --out DIR writes it\n" + found.profile])


def _first_line(found: Inspected) -> str:
    how = [found.layout, found.encoding, repr(found.delimiter) if found.delimiter else ""]
    bad = f", {len(found.bad):,} of them cannot be read" if found.bad else ""
    words = ", ".join(word for word in how if word)
    return f"{found.source}: {words}; {output.counted(found.rows, 'row')}{bad}"


def _columns(found: Inspected) -> list[dict[str, Any]]:
    return [
        {"column": one.name, "type": one.rule().get("type", "text"), "nulls": one.nulls,
         "different": one.different, "samples": " · ".join(s[:30] for s in one.samples)}
        for one in found.columns
    ]  # fmt: skip
