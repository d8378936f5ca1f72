"""The schedule: which runbook runs when, by runbooks.toml, in the foreground of one process.

    times        when an entry is due: cron on the wall clock of a zone, and its changes
    plan         the entries, checked against runbooks, parameters and zones
    rules        what is missed, what runs late, what is left out: pure functions
    diary        what was done, durable: written before it is done
    runs         a run as a process, which a killed schedule's successor finds again
    scheduler    one look at everything; foreground repeats it until a signal
    holding      one schedule a book

Nothing here reads a book or starts a kernel: a run is ``tallybook runbook run`` as a process.
"""

from tallybook.runbook.schedule.diary import Ended
from tallybook.runbook.schedule.foreground import keep, run_once
from tallybook.runbook.schedule.plan import Planned, chosen, planned
from tallybook.runbook.schedule.rules import Missed
from tallybook.runbook.schedule.runs import Outcome
from tallybook.runbook.schedule.scheduler import Listener, Scheduler

__all__ = [
    "Ended",
    "Listener",
    "Missed",
    "Outcome",
    "Planned",
    "Scheduler",
    "chosen",
    "keep",
    "planned",
    "run_once",
]
