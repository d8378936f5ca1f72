"""cron: one file, a line an entry."""

from __future__ import annotations

from collections.abc import Sequence

from tallybook.errors import BadInput
from tallybook.runbook.schedule.definitions.written import File, Where, plain_cron
from tallybook.runbook.schedule.plan import Planned

_HEAD = """\
# crontab -e, or crontab FILE
# CRON_TZ is read by cronie. Debian's cron does not know it: its times are on the machine's clock.
# cron runs nothing that was missed; its rules for changes of the clock are its own.
"""


def files(plan: Sequence[Planned], where: Where) -> list[File]:
    """One crontab."""
    return [File("crontab", _HEAD + "".join(_lines(one, where) for one in plan))]


def _lines(one: Planned, where: Where) -> str:
    command = where.shell(one)
    if "\n" in command:
        raise BadInput(f"entry {one.entry.name}: cron takes no line end in a name or path")
    asked = plain_cron(one, "cron")
    escaped = command.replace("%", "\\%")
    return f"\nCRON_TZ={one.entry.zone}\n{asked} {escaped}\n"
