"""``tallybook demo``: the main job on real input, with planted faults."""

from __future__ import annotations

import argparse
from pathlib import Path

from tallybook.cli import output
from tallybook.errors import BadInput

FAILURE = 3


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--jobs", default="5000", metavar="N|all", help="how many (default 5000)")
    parser.add_argument("--seed", type=int, default=1, help="chooses records and faults")
    parser.add_argument(
        "--dir",
        type=Path,
        default=Path("tallybook-demo"),
        help="work folder; an earlier demo's is replaced (default ./tallybook-demo)",
    )
    output.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """0 when the columns are equal, else 3."""
    from tallybook.demo import run as demo
    from tallybook.demo.tally import table

    settings = demo.Settings(jobs=_jobs(args.jobs), seed=args.seed, folder=args.dir)
    with output.Stages() as stages:
        outcome = demo.run(settings, stages.show)
    answer = {"faults": [row.as_json() for row in outcome.rows], "report": str(outcome.report)}
    told = [row.difference() for row in outcome.rows if not row.holds]
    text = [table(outcome.rows), "", *told, f"report: {outcome.report}"]
    output.answer(answer, args.json, text=lambda: "\n".join(text))
    return 0 if outcome.holds else FAILURE


def _jobs(text: str) -> int | None:
    if text == "all":
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise BadInput(f"--jobs {text}: write a number or all")
    return int(text)
