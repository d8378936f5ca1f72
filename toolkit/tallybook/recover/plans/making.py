"""Making a plan: each difference with what is known of both sides, and what a policy says of it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tallybook.book import Book
from tallybook.clock import to_text
from tallybook.errors import BadInput
from tallybook.ids import payload_digest
from tallybook.layout import require_book
from tallybook.log.chain import Position, as_json
from tallybook.ops import windows
from tallybook.ops.exports.profile import Profile
from tallybook.ops.reconciling import Explained
from tallybook.ops.warehouse import Warehouse
from tallybook.recover.plans import policies
from tallybook.recover.plans.file import Action, Head, Plan, name_of
from tallybook.recover.plans.policies import POLICIES, Difference
from tallybook.recover.plans.shapes import Rules, Unfit, fields
from tallybook.recover.plans.sides import Sides

_STAMPS = ("last_modified", "updated_at")


@dataclass(frozen=True, slots=True)
class Begun:
    """Where the log stood before anything of it was read for a plan."""

    node_id: str
    position: Position


def begin(book: Path) -> Begun:
    """The place in the log that a plan is made from; asked before the warehouse is opened."""
    with Book.read(require_book(book).root) as opened:
        return Begun(opened.node.node_id, opened.position())


def make(
    begun: Begun,
    warehouse: Warehouse,
    explained: Explained,
    export: Path,
    policy: str,
    *,
    rules: Rules | None = None,
    profile: Profile | None = None,
) -> Plan:
    """The plan for the differences that ``explained`` found in ``export`` by the cache of a book.

    ``rules`` and ``profile`` are those of the comparison. Raises BadInput for a policy that is
    none, and where nothing was comparable: the key may be the wrong one.
    """
    if policy not in POLICIES:
        raise BadInput(f"no policy {policy!r}; choose one of {', '.join(POLICIES)}")
    if apart := explained.reconciliation.apart:
        raise BadInput(f"no plan is made where nothing is comparable: {apart}")
    sides = Sides.gather(warehouse, explained, export, rules or {}, profile)
    found = explained.rows.filter(explained.rows["cause"] != "in_flight").to_dicts()
    actions = tuple(_action(n, row, sides, policy) for n, row in enumerate(found, 1))
    return Plan(_head(begun, explained, export, policy, actions), actions)


def _head(
    begun: Begun, explained: Explained, export: Path, policy: str, actions: Sequence[Action]
) -> Head:
    """What the plan is made from, and its name by that and its actions."""
    covers = explained.cover.text if explained.cover else None
    made_from: dict[str, Any] = {
        "node_id": begun.node_id,
        "position": as_json(begun.position),
        "export": {"name": export.name, "digest": digest_of(export), "covers": covers},
        "policy": policy,
        "key": explained.reconciliation.key,
    }
    return Head(
        plan=name_of(made_from, actions),
        made_at=to_text(datetime.now(UTC)),
        actions=len(actions),
        **made_from,
    )


def digest_of(export: Path) -> str:
    """BLAKE2b (16 bytes, hex) of an export: of a folder over its files by name."""
    digest = hashlib.blake2b(digest_size=16)
    files = [export] if export.is_file() else sorted(p for p in export.rglob("*") if p.is_file())
    for path in files:
        digest.update(f"{path.relative_to(export)}\n".encode() if path != export else b"")
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def _action(n: int, row: Mapping[str, Any], sides: Sides, policy: str) -> Action:
    """The line of one difference."""
    one, value = _difference(row, sides)
    choice = policies.decide(policy, one)
    entry_key = sides.entry_key(row)
    entry = sides.entries.get(entry_key) if entry_key and row["is_cached"] else None
    both = policies.merged(one) if "merge" in one.can else None
    job = {name: row[name] for name in ("job_id", "job_status", "lease_token")}
    return Action(
        n=n,
        key=str(row["key"]),
        difference=one.difference,
        cause=one.cause,
        action=choice.action,
        choices=(*(name for name in _MAY if name in one.can), "leave"),
        why=choice.why,
        told=str(row["told"]),
        entry_key=entry_key,
        version=one.version,
        digest=payload_digest(entry) if row["is_cached"] else "",
        value=sides.shape.whole(value) if value is not None else None,
        merged=sides.shape.whole(both[0]) if both else None,
        topic=sides.topic if {"enqueue", "merge"} & one.can else None,
        payload=entry if "enqueue" in one.can else None,
        job=job if "requeue" in one.can else None,
    )


def _difference(row: Mapping[str, Any], sides: Sides) -> tuple[Difference, dict[str, Any] | None]:
    """All that a policy looks at, and the fields of the export's value where it can be taken."""
    entry_key = sides.entry_key(row)
    local = fields(sides.entries[entry_key]) if row["is_cached"] and entry_key else None
    cells = sides.cloud.get((row["difference"], row["key"]))
    no = {"delete": "rows of the export cannot be read"} if sides.is_cut else {}
    cloud = None
    if cells is not None:
        try:
            cloud = sides.shape.value(cells, local, sides.rules)
        except Unfit as error:
            no["take_export"] = str(error)
        if entry_key is None:
            no["take_export"] = "which entry it belongs to is not known"
    base = sides.agreed.get(entry_key or "")
    one = Difference(
        difference=str(row["difference"]),
        cause=str(row["cause"]),
        can=frozenset(),
        no=no,
        local=local,
        cloud=cloud,
        base=None if base is None else fields(base),
        version=int(row["version"] or 0) if row["is_cached"] else 0,
        cloud_version=_whole((cells or {}).get("version")),
        moved_at=to_text(row["moved_at"]) if row["moved_at"] else "",
        cloud_moved_at=_stamp(cells or {}),
        is_changed_since=bool(row["is_changed_since"]),
        may_be_older=not sides.is_covered and _may_be_older(cloud, entry_key, sides),
    )
    can = frozenset(name for name, may in _MAY.items() if may(one, row, sides))
    return replace(one, can=can), cloud if "take_export" in can else None


def _may_be_older(cloud: Mapping[str, Any] | None, entry_key: str | None, sides: Sides) -> bool:
    """Whether what an export has of a key is what it had before the last change here."""
    earlier = sides.earlier.get(entry_key or "", ())
    return cloud is None or any(_has(fields(value), cloud) for value in earlier)


def _has(value: Mapping[str, Any], cells: Mapping[str, Any]) -> bool:
    """Whether a value has all that a row of the export says."""
    return all(value.get(name) == told for name, told in cells.items())


_May = Callable[[Difference, Mapping[str, Any], Sides], bool]
_MAY: Mapping[str, _May] = {
    "requeue": lambda one, row, _: (
        one.difference != "only_cloud" and row["job_status"] in ("dead", "cancelled")
    ),
    "enqueue": lambda one, _, sides: one.local is not None and sides.topic is not None,
    "take_export": lambda one, _, __: one.cloud is not None and "take_export" not in one.no,
    "merge": lambda one, _, sides: (
        one.difference == "differs" and sides.topic is not None and policies.merged(one) is not None
    ),
    "delete": lambda one, _, sides: (
        one.difference == "only_local" and one.local is not None and not sides.is_cut
    ),
}


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdecimal() else None


def _stamp(cells: Mapping[str, str | None]) -> str | None:
    """When the cloud last changed a row, where the export says so."""
    text = next((cells[name] for name in _STAMPS if cells.get(name)), None)
    try:
        moment = windows.instant(text, windows.named_zone("UTC"))
    except BadInput:
        return None
    return to_text(moment) if moment else None
