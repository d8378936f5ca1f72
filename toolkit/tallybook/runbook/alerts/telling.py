"""The listener of the schedule that puts messages into the outbox."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from tallybook import clock
from tallybook.alone import alone
from tallybook.clock import Clock
from tallybook.errors import BadInput
from tallybook.payload import visible
from tallybook.runbook import folder
from tallybook.runbook.alerts import judging, targets
from tallybook.runbook.alerts.judging import News, State
from tallybook.runbook.alerts.outbox import Message, Outbox
from tallybook.runbook.schedule import Ended, Missed, Outcome, Planned
from tallybook.runbook.schedule.diary import put
from tallybook.runbook.settings import Alerts

FILE = "told.json"
_SHOWN = 10
_Judged = tuple[State, News | None]


def require(known: Mapping[str, Alerts], path: Path) -> None:
    """Raise BadInput, with the line of ``path``, where a target of these alerts cannot be used."""
    for name, alerts in known.items():
        for reference in alerts.targets:
            try:
                targets.check(reference)
            except BadInput as error:
                place = f"{path} line {alerts.line}: [alerts.{name}] targets"
                raise BadInput(f"{place}: {error}") from None


@dataclass(frozen=True, slots=True)
class Alerting:
    """Puts what is news into ``outbox`` and calls ``wake``; ``place`` keeps what was told."""

    place: Path
    outbox: Outbox
    clock: Clock
    wake: Callable[[], None]

    def opened(self, _plan: Sequence[Planned]) -> None:
        """Send what an earlier schedule left."""
        self.wake()

    def begun(self, _planned: Planned, _due: datetime, _pid: int) -> None:
        """Nobody is told that a run begins."""

    def ended(self, planned: Planned, ended: Ended, outcome: Outcome) -> None:
        """Tell a failure, findings, or that all is well again."""
        self._tell(
            planned,
            lambda state, rules: judging.of_run(state, rules, outcome),
            lambda news: _of_run(planned, ended, news),
        )

    def missed(self, planned: Planned, missed: Missed) -> None:
        """Tell that times were missed."""
        rule = planned.entry.missed
        self._tell(
            planned,
            lambda state, rules: judging.of_missed(state, rules, missed, rule),
            lambda _: _head(planned, missed.times[-1]),
        )

    def _tell(
        self,
        planned: Planned,
        judge: Callable[[State, Alerts], _Judged],
        body: Callable[[News], list[str]],
    ) -> None:
        if not planned.alerts:
            return
        folder.private_folder(self.place)
        with alone(self.place):
            states = _states(self.place / FILE)
            for name, rules in planned.alerts.items():
                key = f"{planned.entry.name}\n{name}"
                states[key], news = judge(states.get(key, State()), rules)
                if news is not None:
                    self._put(planned, rules, news, body(news))
            _keep(self.place / FILE, states)
        self.wake()

    def _put(self, planned: Planned, rules: Alerts, news: News, lines: Sequence[str]) -> None:
        """One message a target; before the state is kept: a crash tells twice, never not."""
        now = clock.to_text(self.clock.moment().now)
        title = f"tallybook on {socket.gethostname()}: {planned.entry.name}: {news.what}"
        body = "\n".join(visible(line) for line in lines)
        for target in rules.targets:
            self.outbox.put(Message(target, visible(title), body, now, now))


def _of_run(planned: Planned, ended: Ended, news: News) -> list[str]:
    said = [f"{found.get('severity')}: {found.get('title')}" for found in news.findings]
    more = [f"and {len(said) - _SHOWN} more"] if len(said) > _SHOWN else []
    lines = [*_head(planned, ended.due_at), f"ended: {_utc(ended.ended_at)}, {ended.status}"]
    lines += [ended.message] if ended.message else []
    lines += [*said[:_SHOWN], *more]
    return [*lines, f"report: {ended.report}"] if ended.report else lines


def _head(planned: Planned, due: datetime) -> list[str]:
    entry = planned.entry
    local = due.astimezone(planned.times.zone).isoformat(timespec="minutes")
    return [f"runbook: {entry.runbook}", f"due: {_utc(due)} ({local} {entry.zone})"]


def _utc(instant: datetime) -> str:
    return clock.to_text(instant)[:19] + "Z"


def _states(path: Path) -> dict[str, State]:
    """What was told; where the file is damaged, nothing: a state is then told again."""
    try:
        return {key: State(**state) for key, state in json.loads(path.read_bytes()).items()}
    except (FileNotFoundError, ValueError, TypeError, AttributeError):
        return {}


def _keep(path: Path, states: Mapping[str, State]) -> None:
    known = {key: asdict(state) for key, state in states.items()}
    put(path, (json.dumps(known, ensure_ascii=False, indent=1) + "\n").encode())
