"""systemd: a service and a timer an entry."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cronsim import CronSim

from tallybook.errors import BadInput
from tallybook.runbook.schedule.definitions.written import File, Where, label, require_apart
from tallybook.runbook.schedule.plan import Planned
from tallybook.runbook.schedule.times import WALL

_DAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")
_SERVICE = """\
# /etc/systemd/system/{label}.service
[Unit]
Description=tallybook: {name} (runbook {runbook})

[Service]
Type=oneshot
WorkingDirectory={folder}
# The addresses of alerts and other secrets of env:NAME, as NAME=value
EnvironmentFile=-/etc/tallybook/schedule.env
ExecStart={command}
# 1 means findings
SuccessExitStatus=1
TimeoutStartSec={timeout:.0f}
KillMode=mixed
KillSignal=SIGTERM
"""
_TIMER = """\
# /etc/systemd/system/{label}.timer; systemctl enable --now {label}.timer
# systemd leaves out a time that the clock leaps over.
# Missed times ({missed}): {told}.
[Unit]
Description=tallybook: {name} at {cron} {zone}

[Timer]
{calendars}
Persistent={persistent}
AccuracySec=1s

[Install]
WantedBy=timers.target
"""


def files(plan: Sequence[Planned], where: Where) -> list[File]:
    """Two files an entry."""
    require_apart(plan)
    return [file for one in plan for file in (_service(one, where), _timer(one))]


def _service(one: Planned, where: Where) -> File:
    entry, name = one.entry, label(one)
    text = _SERVICE.format(
        label=name,
        name=_line(entry.name),
        runbook=_line(entry.runbook),
        folder=_escaped(str(where.folder)),
        command=" ".join(_quoted(part) for part in where.command(one)),
        timeout=entry.deadline_s + 60,
    )
    return File(f"{name}.service", text)


def _timer(one: Planned) -> File:
    entry, name = one.entry, label(one)
    late = entry.missed != "skip"
    text = _TIMER.format(
        label=name,
        name=_line(entry.name),
        cron=_line(entry.cron),
        zone=entry.zone,
        missed=entry.missed,
        told="one run makes up for all" if late else "they are left out",
        calendars="\n".join(f"OnCalendar={text}" for text in calendars(one)),
        persistent=str(late).lower(),
    )
    return File(f"{name}.timer", text)


def calendars(one: Planned) -> list[str]:
    """The times as calendar events of systemd; two where day of month or day of week makes it due.

    Raises BadInput for a day that systemd cannot say.
    """
    sim = CronSim(one.entry.cron, WALL)
    _require_days(one, sim)
    months, days = _listed(sim.months, 12), _listed(sim.days, 31)
    hours, minutes = _listed(sim.hours, 24, 2), _listed(sim.minutes, 60, 2)
    last = CronSim.LAST in sim.days
    date = f"*-{months}~01" if last else f"*-{months}-{days}"
    at = f"{hours}:{minutes}:00 {one.entry.zone}"
    week = _week(sim)
    if not week or sim.day_and:
        return [f"{week} {date} {at}".strip()]
    return [f"{date} {at}", f"{week} *-{months}-* {at}"]


def _require_days(one: Planned, sim: CronSim) -> None:
    days = {day for day in sim.days if not isinstance(day, int) or day < 1}
    is_last_alone = sim.days == {CronSim.LAST}
    if (days and not is_last_alone) or any(isinstance(day, tuple) for day in sim.weekdays):
        raise BadInput(
            f"entry {one.entry.name}: cron {one.entry.cron!r}: systemd can say L alone as the day "
            "of month, and no LW, # or 5L"
        )


def _week(sim: CronSim) -> str:
    """The days of the week, Monday first as systemd has them; empty for every day."""
    days = {day % 7 for day in sim.weekdays if isinstance(day, int)}
    return (
        "" if len(days) == 7 else ",".join(_DAYS[day % 7] for day in range(1, 8) if day % 7 in days)
    )


def _listed(values: Iterable[int], whole: int, width: int = 2) -> str:
    known = sorted(values)
    return "*" if len(known) == whole else ",".join(f"{value:0{width}d}" for value in known)


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


def _quoted(text: str) -> str:
    """``text`` as one word of ExecStart."""
    for plain, code in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%"), ("$", "$$"), ("\n", "\\n")):
        text = text.replace(plain, code)
    return f'"{text}"'


def _line(text: str) -> str:
    return _escaped(" ".join(text.split()))
