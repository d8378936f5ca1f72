"""``tallybook runbook schedule``: keep the schedule of runbooks.toml, or say what it means."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tallybook import clock, layout, whole
from tallybook.cli import output
from tallybook.errors import BadInput

if TYPE_CHECKING:
    from tallybook.runbook.schedule import Ended, Listener, Missed, Outcome, Planned
    from tallybook.runbook.schedule.definitions import File

HELP = "run runbooks when runbooks.toml says"
_EPILOG = (
    "reads runbooks.toml beside the runbooks; stays in the foreground until Ctrl-C or SIGTERM. "
    "What was missed meanwhile is run at the next start, by the entry's rule"
)

_KINDS = ("systemd", "crontab", "kubernetes", "airflow", "github")


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the schedule."""
    parser.epilog = _EPILOG
    one_of = parser.add_mutually_exclusive_group()
    one_of.add_argument(
        "--next", type=int, metavar="N", help="say the next N times of each entry, and run nothing"
    )
    one_of.add_argument("--now", metavar="NAME", help="run this entry once, at once, and tell")
    one_of.add_argument(
        "--print", choices=_KINDS, metavar="KIND", help=f"print definitions for {', '.join(_KINDS)}"
    )
    parser.add_argument("--to", metavar="DIR", help="with --print: write the files into DIR")
    parser.add_argument("--parallel", type=int, default=2, metavar="N", help="default: 2 runs")
    parser.add_argument("--out", metavar="DIR", help="default ./tallybook-out/<node>")
    output.add_book(parser)
    output.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Keep the schedule, or answer with times, a run or definitions."""
    from tallybook.runbook import alerts, schedule, settings

    known = settings.load()
    plan = schedule.planned(known)
    if args.parallel < 1:
        raise BadInput("--parallel: write 1 or more")
    if not plan:
        alerts.require(known.alerts, known.path)
        raise BadInput(f"nothing is scheduled: {known.path} has no [[schedule]]")
    if args.to and not args.print:
        raise BadInput("--to says where the files of --print go; add --print KIND")
    if args.next is not None:
        return _next(args, plan)
    if args.print:
        return _print(args, plan)
    book, out = _places(args)
    if args.now is not None:
        plan = [schedule.chosen(plan, args.now)]
    with _listening(plan, known.path, out) as listener:
        if args.now is not None:
            return _now(plan[0], book, out, listener)
        return schedule.keep(
            plan,
            book,
            out / "schedule",
            lambda one: one.command(book, out),
            listener,
            parallel=args.parallel,
        )


def _places(args: argparse.Namespace) -> tuple[Path, Path]:
    from tallybook.runbook import folder

    book = layout.require_readable_book(layout.find_book(args.book)).root.resolve()
    return book, layout.out_dir(args.out, folder.node_of(book)).resolve()


def _print(args: argparse.Namespace, plan: list[Planned]) -> int:
    from tallybook.runbook.schedule import definitions

    elsewhere = args.print in ("kubernetes", "github")
    book, out = (Path("book"), Path("out")) if elsewhere else _places(args)
    files = definitions.KINDS[args.print](plan, definitions.Where(Path.cwd(), book, out))
    shown = {"files": [{"name": file.name, "text": file.text} for file in files]}
    if args.to:
        written = [str(_write(Path(args.to), file)) for file in files]
        output.answer({"written": written}, args.json, text=lambda: "\n".join(written))
    else:
        output.answer(shown, args.json, text=lambda: "\n".join(file.text for file in files))
    return 0


def _write(folder: Path, file: File) -> Path:
    """Write one definition; raises BadInput where another file has its name."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / file.name
    if path.exists() and path.read_bytes() != file.text.encode():
        raise BadInput(
            f"{path} is there and says something else; move it away or name another --to"
        )
    return whole.put(path, file.text.encode())


@contextmanager
def _listening(plan: list[Planned], path: Path, out: Path) -> Iterator[Listener]:
    """Who is told: whoever reads standard output, and the alerts of the entries."""
    from tallybook.runbook import alerts

    known = {name: rules for one in plan for name, rules in one.alerts.items()}
    alerts.require(known, path)
    if not known:
        yield _Lines()
        return
    time = clock.SystemClock()
    outbox = alerts.Outbox(out / "alerts" / "outbox")
    postman = alerts.Postman(outbox, time)
    postman.start()
    try:
        yield _Both(_Lines(), alerts.Alerting(out / "alerts", outbox, time, postman.wake))
    finally:
        if waiting := postman.close():
            said = output.counted(waiting, "alert")
            sys.stderr.write(f"tallybook: {said} not delivered yet, in {outbox.place}\n")


def _now(one: Planned, book: Path, out: Path, listener: Listener) -> int:
    from tallybook.runbook import folder, schedule

    place = out / "schedule" / f"now-{folder.safe_name(one.entry.name)}"
    return schedule.run_once(one, place, lambda one: one.command(book, out), listener)


def _next(args: argparse.Namespace, plan: list[Planned]) -> int:
    if not 1 <= args.next <= 1000:
        raise BadInput(f"--next {args.next}: write 1 to 1000")
    rows = [row for one in plan for row in _rows(one, args.next)]
    shown = {"times": sorted(rows, key=lambda row: str(row["due_at"]))}
    columns = ("due_at", "local", "zone", "name", "runbook")
    output.answer(shown, args.json, text=lambda: output.table(shown["times"], columns))
    return 0


def _rows(one: Planned, most: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    due = one.times.after(clock.SystemClock().moment().now)
    while due is not None and len(rows) < most:
        local = due.astimezone(one.times.zone).isoformat(timespec="minutes")
        entry = one.entry
        row = {"due_at": _utc(due), "local": local, "zone": entry.zone}
        rows.append({**row, "name": entry.name, "runbook": entry.runbook})
        due = one.times.after(due)
    return rows


@dataclass(frozen=True, slots=True)
class _Lines:
    """What happens, a line each on standard output."""

    def opened(self, plan: Sequence[Planned]) -> None:
        for one in plan:
            due = one.times.after(clock.SystemClock().moment().now)
            self.say(f"{one.entry.name}: next at {_at(due, one)}")

    def begun(self, planned: Planned, due: datetime, pid: int) -> None:
        self.say(f"{planned.entry.name}: begun, due at {_at(due, planned)} (process {pid})")

    def ended(self, planned: Planned, ended: Ended, outcome: Outcome) -> None:
        report = f"; report: {ended.report}" if ended.report else ""
        said = f": {ended.message}" if ended.message else ""
        found = f", {output.counted(len(outcome.findings), 'finding')}" if outcome.findings else ""
        self.say(f"{planned.entry.name}: {ended.status}{found}{said}{report}")

    def missed(self, planned: Planned, missed: Missed) -> None:
        entry, last = planned.entry, _at(missed.times[-1], planned)
        self.say(f"{entry.name}: {missed.told(entry.missed)}; the last was due at {last}")

    def say(self, line: str) -> None:
        now = _utc(clock.SystemClock().moment().now)
        sys.stdout.write(output.plain(f"{now} {line}") + "\n")
        sys.stdout.flush()


@dataclass(frozen=True, slots=True)
class _Both:
    """Tells the lines first, then the alerts."""

    lines: Listener
    alerts: Listener

    def opened(self, plan: Sequence[Planned]) -> None:
        self.lines.opened(plan)
        self.alerts.opened(plan)

    def begun(self, planned: Planned, due: datetime, pid: int) -> None:
        self.lines.begun(planned, due, pid)

    def ended(self, planned: Planned, ended: Ended, outcome: Outcome) -> None:
        self.lines.ended(planned, ended, outcome)
        self.alerts.ended(planned, ended, outcome)

    def missed(self, planned: Planned, missed: Missed) -> None:
        self.lines.missed(planned, missed)
        self.alerts.missed(planned, missed)


def _at(due: datetime | None, planned: Planned) -> str:
    if due is None:
        return "no time"
    local = due.astimezone(planned.times.zone).isoformat(timespec="minutes")
    return f"{_utc(due)} ({local} {planned.entry.zone})"


def _utc(instant: datetime) -> str:
    return clock.to_text(instant)[:19] + "Z"
