"""The anchor: what holds the hash chain where the log was pruned.

``log/anchor.json`` keeps the position behind the last pruned line and, for each writer of which
lines were pruned, its last ``seq`` and hash. A segment that the anchor covers is no part of the
log any more, also where a crash left its file.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tallybook.errors import LogDamaged
from tallybook.layout import Layout
from tallybook.log import chain
from tallybook.log.chain import Position
from tallybook.log.durable import replace_file


@dataclass(frozen=True, slots=True)
class Anchor:
    """The position behind what was pruned; ``ends`` are (seq, hash) of each writer pruned."""

    position: Position
    ends: dict[str, tuple[int, bytes]]


def read(layout: Layout) -> Anchor | None:
    """The anchor of a log; None where it was never pruned. Raises LogDamaged."""
    try:
        raw = json.loads(layout.anchor.read_bytes())
        ends = {w: (int(e["seq"]), bytes.fromhex(e["hash"])) for w, e in raw["ends"].items()}
        return Anchor(chain.from_json(raw["position"]), ends)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LogDamaged(
            f"{layout.anchor}: not readable ({error}); put it back from a backup"
        ) from None


def write(layout: Layout, anchor: Anchor, pruned_at: str) -> None:
    """Make ``anchor`` the anchor of a log, on disk when this returns."""
    ends: dict[str, Any] = {
        writer: {"seq": seq, "hash": hash_then.hex()}
        for writer, (seq, hash_then) in anchor.ends.items()
    }
    shown = {"v": 1, "pruned_at": pruned_at, "position": chain.as_json(anchor.position)}
    text = json.dumps(shown | {"ends": ends}, indent=1) + "\n"
    replace_file(layout.anchor, text.encode(), "anchor")


def position(layout: Layout) -> Position:
    """Where the history begins: behind what was pruned, else at the beginning."""
    anchor = read(layout)
    return anchor.position if anchor else Position()
