"""``tallybook runbook``: list runbooks, run them and leave reports, tell of the runs that were."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tallybook.cli import output, scheduling
from tallybook.errors import BadInput, TallybookError
from tallybook.payload import visible

if TYPE_CHECKING:
    from tallybook.runbook import Runbook, RunResult
    from tallybook.runbook.parameters import Parameter

HELP = "list runbooks, run them now or by a schedule, tell of the runs that were, make a new one"
_EPILOG = "looks in ./runbooks, then in those that tallybook carries"
_WORST = (3, 2, 4, 1, 0)
_COLUMNS = ("began", "runbook", "status", "problems", "warnings", "notes", "seconds", "run")


def add(parser: argparse.ArgumentParser) -> None:
    """The actions and their options."""
    actions = parser.add_subparsers(
        dest="action", required=True, metavar="list|run|history|schedule|new"
    )
    scheduling.add(actions.add_parser("schedule", help=scheduling.HELP))
    listing = actions.add_parser("list", help="names, questions and parameters", epilog=_EPILOG)
    output.add_json(listing)
    _add_run(actions.add_parser("run", help="run one, or several in a row", epilog=_EPILOG))
    history = actions.add_parser("history", help="the runs that were, newest first")
    history.add_argument("name", metavar="NAME", nargs="?", help="of this runbook only")
    history.add_argument("--status", metavar="STATUS", help="those with this status only")
    history.add_argument(
        "--limit", type=int, default=20, metavar="N", help="at most N (default 20)"
    )
    history.add_argument("--out", metavar="DIR", help=_OUT)
    output.add_book(history)
    output.add_json(history)
    making = actions.add_parser("new", help="make one in ./runbooks, to be filled in")
    making.add_argument("name", metavar="NAME", help="small letters, digits and _")
    output.add_json(making)


_OUT = "default ./tallybook-out/<node>"


def _add_run(running: argparse.ArgumentParser) -> None:
    running.add_argument(
        "name", metavar="NAME", nargs="+", help="a runbook's name, or an .ipynb file"
    )
    running.add_argument(
        "-p",
        "--parameter",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a parameter that the notebook declares; again for more",
    )
    running.add_argument("--out", metavar="DIR", help=_OUT)
    for name, kind, metavar, said in _LIMITS:
        running.add_argument(name, type=kind, metavar=metavar, help=said)
    output.add_book(running)
    output.add_json(running)


_LIMITS = (
    ("--deadline", float, "S", "seconds that a run may take, 0: any (default 3600)"),
    ("--cell-deadline", float, "S", "seconds that one cell may take, 0: those of the run"),
    ("--keep", int, "N", "so many runs of a runbook are kept, 0: all (default 0)"),
    ("--keep-days", float, "D", "runs older than that are removed, 0: none (default 0)"),
)


def run(args: argparse.Namespace) -> int:
    """List, run, tell of runs or keep the schedule; a run answers with its status."""
    actions = {
        "list": _list,
        "run": _run,
        "history": _history,
        "schedule": scheduling.run,
        "new": _new,
    }
    return actions[args.action](args)


def _list(args: argparse.Namespace) -> int:
    from tallybook import runbook

    known = runbook.listed()
    shown = {"runbooks": [_described(one) for one in known]}
    output.answer(shown, args.json, text=lambda: "\n".join(_lines(known)))
    return 0


def _new(args: argparse.Namespace) -> int:
    from tallybook.runbook.making import make

    path = make(args.name)
    told = f"{path}: change its question and its cells; tallybook runbook run {args.name}"
    output.answer({"name": args.name, "path": str(path)}, args.json, text=lambda: told)
    return 0


def _run(args: argparse.Namespace) -> int:
    from tallybook import runbook

    if len(args.name) > 1:
        return _run_all(args)
    progress = output.Progress(f"runbook {args.name[0]}, cell")
    try:
        result = runbook.run(
            args.name[0],
            _given(args.parameter),
            args.book,
            args.out,
            lambda cell, cells: progress.show(cell, cells),
            limits=_limits(args),
        )
    finally:
        progress.close()
    _tell(result)
    output.answer(result.as_json(), args.json, text=lambda: _told(result))
    return result.exit_code


def _run_all(args: argparse.Namespace) -> int:
    """Several in a row on one kernel: each is told as it ends, the worst exit code is ours."""
    from tallybook import runbook

    bar: list[output.Progress] = []

    def progress(name: str) -> Callable[[int, int], None]:
        bar.append(output.Progress(f"runbook {name}, cell"))
        return lambda cell, cells: bar[-1].show(cell, cells)

    shown, codes = [], []
    given = _given(args.parameter)
    for ended in runbook.run_all(args.name, given, args.book, args.out, progress, _limits(args)):
        bar[-1].close()
        codes.append(ended.exit_code)
        shown.append(_shown(ended))
        _tell(ended)
        if not args.json and not isinstance(ended, TallybookError):
            sys.stdout.write(output.plain(f"{ended.runbook}\n{_told(ended)}\n"))
    code = next(one for one in _WORST if one in codes)
    if args.json:
        output.answer({"runs": shown, "exit_code": code}, True, text=str)
    return code


def _shown(ended: RunResult | TallybookError) -> dict[str, Any]:
    if isinstance(ended, TallybookError):
        return {"message": str(ended), "exit_code": ended.exit_code}
    return ended.as_json()


def _tell(ended: RunResult | TallybookError) -> None:
    message = str(ended) if isinstance(ended, TallybookError) else ended.message
    if message:
        sys.stderr.write(f"tallybook: {visible(message)}\n")


def _limits(args: argparse.Namespace) -> dict[str, float | None]:
    return {
        "deadline_s": args.deadline,
        "cell_deadline_s": args.cell_deadline,
        "keep": args.keep,
        "keep_days": args.keep_days,
    }


def _history(args: argparse.Namespace) -> int:
    from tallybook import runbook

    told = runbook.history(args.book, args.out)
    if told.unreadable:
        lines = output.counted(told.unreadable, "line")
        sys.stderr.write(f"tallybook: {told.path}: {lines} cannot be read\n")
    runs = [one for one in reversed(told.runs) if _is_asked(one, args)]
    shown = output.listed("runs", runs, args.limit, dict)
    output.answer(shown, args.json, text=lambda: output.and_more(_table(shown["runs"]), shown))
    return 0


def _is_asked(run: Mapping[str, Any], args: argparse.Namespace) -> bool:
    named = args.name in (None, run.get("runbook"))
    return named and args.status in (None, run["status"])


def _table(runs: Sequence[Mapping[str, Any]]) -> str:
    return output.table([_row(run) for run in runs], _COLUMNS) if runs else "no runs"


def _row(run: Mapping[str, Any]) -> dict[str, Any]:
    counts = run.get("findings") or {}
    return {
        "began": str(run.get("started_at"))[:19].replace("T", " "),
        "runbook": run.get("runbook"),
        "status": run["status"],
        "problems": counts.get("problem"),
        "warnings": counts.get("warning"),
        "notes": counts.get("info"),
        "seconds": run.get("duration_s"),
        "run": run["run"],
    }


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
