"""``tallybook runbook``: list runbooks, or run one and leave a report."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from tallybook.cli import output, scheduling
from tallybook.errors import BadInput

if TYPE_CHECKING:
    from tallybook.runbook import Runbook, RunResult
    from tallybook.runbook.parameters import Parameter

HELP = "list runbooks, run one and leave a report, or run them by a schedule"
_EPILOG = "looks in ./runbooks, else in those that tallybook carries"


def add(parser: argparse.ArgumentParser) -> None:
    """The two actions and their options."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="list|run|schedule")
    listing = actions.add_parser("list", help="names, questions and parameters", epilog=_EPILOG)
    output.add_json(listing)
    running = actions.add_parser("run", help="run one", epilog=_EPILOG)
    running.add_argument("name", metavar="NAME", help="a runbook's name, or an .ipynb file")
    running.add_argument(
        "-p",
        "--parameter",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a parameter that the notebook declares; again for more",
    )
    running.add_argument("--out", metavar="DIR", help="default ./tallybook-out/<node>")
    output.add_book(running)
    output.add_json(running)
    scheduling.add(actions.add_parser("schedule", help=scheduling.HELP))


def run(args: argparse.Namespace) -> int:
    """List, keep the schedule, or run and answer with the status of the run."""
    if args.action == "schedule":
        return scheduling.run(args)
    return _list(args) if args.action == "list" else _run(args)


def _list(args: argparse.Namespace) -> int:
    from tallybook import runbook

    known = runbook.listed()
    shown = {"runbooks": [_described(one) for one in known]}
    output.answer(shown, args.json, text=lambda: "\n".join(_lines(known)))
    return 0


def _run(args: argparse.Namespace) -> int:
    from tallybook import runbook

    progress = output.Progress(f"runbook {args.name}, cell")

    def step(cell: int, cells: int) -> None:
        progress.show(cell, cells)

    try:
        result = runbook.run(args.name, _given(args.parameter), args.book, args.out, step)
    finally:
        progress.close()
    if result.message:
        sys.stderr.write(f"tallybook: {result.message}\n")
    output.answer(result.as_json(), args.json, text=lambda: _told(result))
    return result.exit_code


def _given(pairs: list[str]) -> dict[str, str]:
    """The texts of ``-p key=value``; raises BadInput for a pair without a key or given twice."""
    given: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise BadInput(f"-p {pair}: write -p key=value")
        if name in given:
            raise BadInput(f"-p {name} is given twice")
        given[name] = value
    return given


def _described(one: Runbook) -> dict[str, object]:
    parameters = [
        {
            "name": parameter.name,
            "kind": parameter.kind,
            "bounds": parameter.bounds.told,
            "required": parameter.required,
            "default": parameter.default,
            "meaning": parameter.meaning,
        }
        for parameter in one.parameters
    ]
    return {
        "name": one.name,
        "path": str(one.path),
        "question": one.question,
        "parameters": parameters,
    }


def _lines(known: list[Runbook]) -> list[str]:
    lines = []
    for one in known:
        lines += [one.name, f"  {one.question}"]
        lines += [f"  {_parameter(parameter)}" for parameter in one.parameters]
    return lines or ["no runbooks"]


def _parameter(one: Parameter) -> str:
    """A parameter as it is typed, with its bounds and its meaning."""
    default = one.kind.upper() if one.required else "" if one.default is None else one.default
    bounds = f"[{one.bounds.told}] " if one.bounds.told else ""
    return f"-p {one.name}={default}  {bounds}{one.meaning}"


def _told(result: RunResult) -> str:
    found = [f"{item['severity']:<8} {item['title']}" for item in result.findings]
    return "\n".join([*found, f"status: {result.status}", f"report: {result.report}"])
