"""What ``tallybook reconcile`` says of why rows differ: its options, and its words."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tallybook.cli import output, ruling
from tallybook.errors import BadInput
from tallybook.layout import Layout, find_book

if TYPE_CHECKING:
    from tallybook.ops import Explained, Flight, Warehouse
    from tallybook.ops.exports.profile import Profile
    from tallybook.recover.plans import Plan

_FIRST = 5
_UNCOVERED = ("nothing says up to where the export goes, so what was delivered after it was made "
              "looks as if the cloud had changed; say it with --covers")  # fmt: skip


class Planner:
    """Makes the plan that ``--plan`` asks for; begun before the log is read, for it says from
    which place on its keys must not have changed."""

    def __init__(self, args: argparse.Namespace) -> None:
        from tallybook.recover import plans

        if args.local:
            raise BadInput("--plan repairs the cache of a book: leave --local out")
        if args.plan not in plans.POLICIES:
            raise BadInput(f"--plan {args.plan}: choose one of {', '.join(plans.POLICIES)}")
        self._args = args
        self._book = find_book(args.book)
        self._rules = ruling.rules(args)
        self._begun = plans.begin(self._book)

    def write(
        self, warehouse: Warehouse, explained: Explained, profile: Profile | None
    ) -> tuple[Path, Plan]:
        """Write the plan, into ``--out`` or else the book's ``plans/``; where, and what it is."""
        from tallybook.recover import plans

        export = Path(self._args.export)
        policy = self._args.plan
        plan = plans.make(
            self._begun, warehouse, explained, export, policy, rules=self._rules, profile=profile
        )
        folder = Path(self._args.out) if self._args.out else Layout(self._book).plans
        path = folder / f"plan-{plan.head.plan}.ndjson"
        plans.write(path, plan)
        return path, plan


def add(parser: argparse.ArgumentParser) -> None:
    """The options that ask the log of the book."""
    parser.add_argument(
        "--explain", action="store_true",
        help="say why each row differs, by the log of the book; also of the rows of --local",
    )  # fmt: skip
    parser.add_argument(
        "--covers", metavar="C",
        help="up to where the export goes: a version, a place in the log (writer:seq) or a time",
    )  # fmt: skip
    parser.add_argument(
        "--in-flight-max", metavar="TIME", default="1h",
        help="what is in flight for longer than this is a difference (default: 1h)",
    )  # fmt: skip
    parser.add_argument(
        "--again", metavar="TIME", nargs="?", const="",
        help="a second look: a clean run settles earlier ones of --out; with TIME, where rows are "
        "in flight, look again after it",
    )  # fmt: skip
    parser.add_argument(
        "--plan", metavar="POLICY",
        help="write a repair plan: last-write-wins, version-check, merge, server or manual",
    )  # fmt: skip


def require_no_log(args: argparse.Namespace) -> None:
    """Raise BadInput where two files are compared by options that ask the log of a book."""
    given = {"--covers": args.covers, "--again": args.again, "--plan": args.plan}
    asked = [option for option, value in given.items() if value is not None]
    if asked:
        raise BadInput(f"{asked[0]} asks the log of a book: leave --local out, or add --explain")


def flight(args: argparse.Namespace, profile: Profile | None) -> Flight:
    """What counts as in flight. Raises BadInput for a length of time that is none."""
    from tallybook import ops
    from tallybook.ops.reconciling.explaining import covered

    asked = ops.Flight(args.covers, seconds("--in-flight-max", args.in_flight_max))
    return covered(asked, profile)


def seconds(option: str, given: str) -> float:
    """The length of time that an option gives. Raises BadInput."""
    from tallybook.ops import windows

    try:
        if given == windows.AUTO:
            raise BadInput(given)
        return windows.length(given, windows.DAY).total_seconds()
    except BadInput:
        raise BadInput(f"{option} {given!r}: write it like 30s, 5m, 1h or 2d") from None


class Recorder:
    """The line of this run in the ledger of ``--out``; nothing without one."""

    def __init__(self, args: argparse.Namespace, warehouse: Warehouse, covered: str | None) -> None:
        from tallybook.ops.reconciling import covers
        from tallybook.ops.reconciling.ledger import Ledger, series_of

        self._args = args
        self._export = Path(args.export).name
        series = series_of(warehouse.node_id, args.key, args.local)
        self._ledger = Ledger.of(Path(args.out), series) if args.out else None
        if self._ledger and covered:
            self._ledger.require_newer(self._export, covers.cover(warehouse, covered))

    def record(self, explained: Explained, *, whole: bool) -> dict[str, Any]:
        """Write the line; what it adds to the answer."""
        if self._ledger is None:
            return {}
        told = self._ledger.second_look(explained)
        again = self._args.again is not None
        ledger = self._ledger.add(self._export, explained, again=again, whole=whole)
        return ledger.as_json() | ({"second_look": told} if told else {})


def verified(recorded: Mapping[str, Any]) -> list[str]:
    """How far all is verified, in sentences."""
    if not recorded:
        return []
    through, stopped = recorded["verified_through"], recorded["stopped_by"]
    runs = output.counted(recorded["clean_runs"], "clean run")
    nothing = "nothing is verified yet: a run counts that is clean and has --covers"
    told = [f"verified through {through} ({runs})" if through else nothing]
    if stopped:
        told.append(f"stopped by run {stopped}, which is kept; a clean run with --again settles it")
    if look := recorded.get("second_look"):
        told.append(
            f"of the rows in flight before, {look['match']:,} match now, {look['differs']:,} "
            f"differ, {look['in_flight']:,} are still in flight"
        )
    return told


def wait_s(args: argparse.Namespace) -> float:
    """How long to wait for a second look."""
    return seconds("--again", args.again) if args.again else 0.0


def text(explained: Explained) -> str:
    """The causes, counted, and the first rows of each."""
    from tallybook.ops.reconciling.explaining import first_of_each

    if explained.rows.is_empty():
        return "nothing to explain"
    counted = output.table(explained.causes.to_dicts(), ["cause", "rows", "meaning"])
    shown = first_of_each(explained.rows, _FIRST)
    parts = [counted, output.table(shown, ["key", "difference", "cause", "told"])]
    left = explained.rows.height - len(shown)
    if left:
        parts.append(f"and {output.counted(left, 'more row')}; --out DIR writes all")
    return "\n\n".join(parts)


def covers(args: argparse.Namespace, explained: Explained | None) -> tuple[str, ...]:
    """What up to where the export goes rests on, in sentences."""
    if explained is None or explained.cover:
        return explained.cover.told if explained and explained.cover else ()
    asked = (args.explain or args.plan) and not explained.rows.is_empty()
    return (_UNCOVERED,) if asked else ()


def planned(path: Path, plan: Plan) -> str:
    """Where the plan is, and what to type next."""
    counts = ", ".join(f"{keys:,} {action}" for action, keys in plan.counts().items())
    return f"plan {path}: {counts or 'nothing to do'}; see 'tallybook plan show {path}'"
