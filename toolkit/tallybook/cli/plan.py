"""``tallybook plan``: show, apply or undo a repair plan of ``tallybook reconcile --plan``."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tallybook.cli import output
from tallybook.errors import BadInput
from tallybook.layout import find_book

if TYPE_CHECKING:
    from tallybook.recover.plans import Applied, Plan

HELP = "show, apply or undo a repair plan of reconcile"
_PASSED_OVER = 1
_SHOWN = 20
_COLUMNS = ("n", "key", "cause", "action", "why", "told")


def add(parser: argparse.ArgumentParser) -> None:
    """The actions and their options."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="show|apply|undo")
    showing = actions.add_parser("show", help="what a plan would do, and why")
    showing.add_argument("--limit", type=int, default=_SHOWN, metavar="N", help="default 20")
    applying = actions.add_parser("apply", help="do it, by events of the book")
    applying.add_argument(
        "--max", type=int, default=1000, metavar="N", help="refuse a plan with more to do (1,000)"
    )
    undoing = actions.add_parser("undo", help="bring back what stood before")
    for action in (applying, undoing):
        action.add_argument("--dry-run", action="store_true", help="say what; change nothing")
        output.add_book(action)
    for action in (showing, applying, undoing):
        action.add_argument("plan", metavar="PLAN", help="the file of a plan")
        output.add_json(action)


def run(args: argparse.Namespace) -> int:
    """0; 1 where keys were passed over because they changed."""
    return {"show": _show, "apply": _apply, "undo": _undo}[args.action](args)


def _show(args: argparse.Namespace) -> int:
    from tallybook.recover import plans

    if args.limit < 1:
        raise BadInput(f"--limit {args.limit}: use a number from 1 up")
    plan = plans.read(Path(args.plan))
    shown = _head(plan) | {"actions": [one.as_json() for one in plan.actions]}
    output.answer(shown, args.json, text=lambda: told(plan, args.limit))
    return 0


def _apply(args: argparse.Namespace) -> int:
    from tallybook.recover import plans

    with _Shown("applied") as progress:
        applied = plans.apply(
            find_book(args.book), Path(args.plan), most=args.max, dry_run=args.dry_run,
            progress=progress.show,
        )  # fmt: skip
    output.answer(asdict(applied), args.json, text=lambda: _applied(applied))
    return _PASSED_OVER if applied.passed_over else 0


def _undo(args: argparse.Namespace) -> int:
    from tallybook.recover import plans

    with _Shown("undone") as progress:
        undone = plans.undo(
            find_book(args.book), Path(args.plan), dry_run=args.dry_run, progress=progress.show
        )
    output.answer(asdict(undone), args.json, text=lambda: _undone(undone))
    return _PASSED_OVER if undone.passed_over else 0


class _Shown:
    """Progress on a terminal."""

    def __init__(self, label: str) -> None:
        self._progress = output.Progress(label)

    def __enter__(self) -> output.Progress:
        return self._progress

    def __exit__(self, *_: object) -> None:
        self._progress.close()


def _head(plan: Plan) -> dict[str, Any]:
    head = plan.head
    made_from = {"node_id": head.node_id, "position": dict(head.position)}
    return {
        "plan": head.plan, "made_at": head.made_at, "policy": head.policy, "key": list(head.key),
        "export": dict(head.export), **made_from, "counts": plan.counts(),
    }  # fmt: skip


def told(plan: Plan, limit: int = _SHOWN) -> str:
    """A plan for a person: what it was made from, what it does, its first lines."""
    from tallybook.recover.plans import ACTIONS

    head = plan.head
    place = f"{head.position['writer'][:8]}:{head.position['seq']}"
    covers = f", which covers {head.export['covers']}" if head.export["covers"] else ""
    lines = [f"plan {head.plan}, made {head.made_at} from the log of {head.node_id} up to {place} "
             f"and {head.export['name']}{covers}; policy {head.policy}"]  # fmt: skip
    if not plan.actions:
        return lines[0] + "\n\nnothing differs: there is nothing to do"
    counts = [{"action": action, "keys": keys, "meaning": ACTIONS[action]}
              for action, keys in plan.counts().items()]  # fmt: skip
    rows = [one.as_json() for one in plan.actions[:limit]]
    parts = [*lines, output.table(counts, ["action", "keys", "meaning"])]
    parts.append(output.table(rows, _COLUMNS))
    if len(plan.actions) > limit:
        parts.append(f"and {len(plan.actions) - limit:,} more: see --limit")
    return "\n\n".join(parts)


def _applied(applied: Applied) -> str:
    would = "would be done; nothing was changed" if applied.dry_run else "done"
    lines = [_counts(applied.done, would)]
    if applied.already:
        lines.append(f"{applied.already:,} were done before")
    if applied.left:
        lines.append(f"{applied.left:,} left to a person: tallybook plan show")
    lines += _over(applied)
    if applied.done and not applied.dry_run:
        lines.append(f"undo file {applied.undo}")
        lines.append("when the queue is drained, reconcile a new export to see what is left")
    return "\n".join(lines)


def _undone(undone: Applied) -> str:
    would = "would be taken back; nothing was changed" if undone.dry_run else "taken back"
    return "\n".join([_counts(undone.done, would), *_over(undone)])


def _counts(done: dict[str, int], what: str) -> str:
    counts = ", ".join(f"{number:,} {action}" for action, number in done.items())
    return f"{counts or 'nothing'} {what}"


def _over(applied: Applied) -> list[str]:
    over = [f"passed over: {key}: {why}" for key, why in list(applied.passed_over.items())[:_SHOWN]]
    left = len(applied.passed_over) - len(over)
    return over + ([f"and {left:,} more passed over"] if left else [])
