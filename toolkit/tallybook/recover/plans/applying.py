"""Applying a plan, and undoing it: in batches, each one change of the book that names its steps.

What is done is read from the log (``plan.applied``), so a plan that was killed goes on where it
was, and applying it twice changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tallybook.book import Book
from tallybook.book.repairing import APPLIED, UNDONE, Step
from tallybook.clock import Clock
from tallybook.errors import BadInput
from tallybook.layout import require_book
from tallybook.recover.plans import acts, file, undofile
from tallybook.recover.plans.file import Action, Plan
from tallybook.recover.plans.past import look

BATCH = 100
MOST = 1000
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of a plan. ``done`` counts the actions of this run by name, ``already`` those
    that were done before; ``passed_over`` are the keys that changed meanwhile, each with why;
    ``left`` is for a person. With ``dry_run`` nothing was done: ``done`` is what would be."""

    plan: str
    dry_run: bool
    done: dict[str, int]
    already: int
    passed_over: dict[str, str]
    left: int
    undo: str


def apply(
    book: Path,
    path: Path,
    *,
    most: int = MOST,
    dry_run: bool = False,
    clock: Clock | None = None,
    progress: Progress | None = None,
) -> Applied:
    """Do what the plan at ``path`` says. Raises BadInput, with nothing changed, for a plan that is
    none, is of another book, is stale, was undone, or has more than ``most`` actions to do."""
    plan = file.read(path)
    layout = require_book(Path(book))
    past = look(layout, plan)
    if past.is_undone:
        raise BadInput(f"plan {plan.head.plan} was undone: reconcile again and make another")
    kept = undofile.path_of(path)
    with Book.open(layout.root, create=False, clock=clock) as opened:
        waiting = [one for one in plan.to_do if one.n not in past.done]
        _require_bounds(plan, len(waiting), most)
        steps = [(one, acts.forward(opened, plan.head.plan, one, past)) for one in waiting]
        over = {one.key: step for one, step in steps if isinstance(step, str)}
        fitting = [(one, step) for one, step in steps if isinstance(step, Step)]
        if over and not past.done:
            _refuse_stale(plan, waiting, over)
        done = Counter(one.action for one, _ in fitting)
        if fitting and not dry_run:
            undofile.keep(kept, plan, opened)
            done = _do(opened, plan.head.plan, fitting, APPLIED, over, progress)
    left = len(plan.actions) - len(plan.to_do)
    return Applied(plan.head.plan, dry_run, dict(done), len(past.done), over, left, str(kept))


def undo(
    book: Path,
    path: Path,
    *,
    dry_run: bool = False,
    clock: Clock | None = None,
    progress: Progress | None = None,
) -> Applied:
    """Bring back what stood before the plan at ``path``, for every action whose key is still as
    the plan left it; the others are passed over. Raises BadInput as ``apply``."""
    plan = file.read(path)
    layout = require_book(Path(book))
    past = look(layout, plan, may_be_old=True)
    kept = undofile.path_of(path)
    before = undofile.read(kept, plan) if past.done else {}
    with Book.open(layout.root, create=False, clock=clock) as opened:
        taken = [one for one in plan.actions if one.n in past.done and one.n in before]
        steps = [
            (one, acts.back(opened, plan.head.plan, one, before[one.n], past)) for one in taken
        ]
        over = {one.key: step for one, step in steps if isinstance(step, str)}
        fitting = [(one, step) for one, step in steps if isinstance(step, Step)]
        done = Counter(one.action for one, _ in fitting)
        if fitting and not dry_run:
            done = _do(opened, plan.head.plan, fitting, UNDONE, over, progress)
    return Applied(plan.head.plan, dry_run, dict(done), 0, over, 0, str(kept))


def _require_bounds(plan: Plan, waiting: int, most: int) -> None:
    if most < 1:
        raise BadInput(f"--max {most}: use a number from 1 up")
    if waiting > most:
        raise BadInput(
            f"plan {plan.head.plan} has {waiting:,} actions to do, more than {most:,}: allow them "
            f"with --max {waiting}, or take lines out of the plan"
        )


def _refuse_stale(plan: Plan, waiting: Sequence[Action], over: dict[str, str]) -> None:
    first = next(one for one in waiting if one.key in over)
    raise BadInput(
        f"plan {plan.head.plan} is stale: {len(over):,} of {len(waiting):,} keys changed since it "
        f"was made (line {first.line}, key {first.key}: {over[first.key]}); reconcile again and "
        "make another, or take those lines out"
    )


def _do(
    book: Book,
    plan: str,
    steps: Sequence[tuple[Action, Step]],
    reason: str,
    over: dict[str, str],
    progress: Progress | None,
) -> Counter[str]:
    """Do the steps, a batch with one sync; those that no longer fit are noted in ``over``."""
    done: Counter[str] = Counter()
    for batch in _batches(steps):
        events = book.repair(plan, [step for _, step in batch], reason)
        made = set(events[-1]["steps"]) if events else set()
        done.update(one.action for one, _ in batch if one.n in made)
        over |= {one.key: "changed meanwhile" for one, _ in batch if one.n not in made}
        if progress:
            progress(done.total(), len(steps))
    return done


def _batches(steps: Sequence[tuple[Action, Step]]) -> Iterator[Sequence[tuple[Action, Step]]]:
    return (steps[at : at + BATCH] for at in range(0, len(steps), BATCH))
