"""Limits of a topic: how many of its jobs may be leased at once, and how many claimed a second.

The rate is a token bucket on boot time. All that is kept of it is when it is full again; each
``job.leased`` says so, so that a restart does not fill it. After a reboot it is full.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tallybook.book.store import Store
from tallybook.clock import Moment
from tallybook.job import Job, Status
from tallybook.queue.claiming import fitting
from tallybook.settings import TopicSettings

_NO_BOUND = 2**31


class Limits:
    """What the limits of ``topics`` (none: of all) leave to be claimed now."""

    def __init__(
        self,
        store: Store,
        moment: Moment,
        limited: Mapping[str, TopicSettings],
        topics: Sequence[str],
    ) -> None:
        self._moment = moment
        self._rules = {t: limited[t] for t in limited if not topics or t in topics}
        buckets = store.queue.ordering.bucket
        self._full_us = {t: buckets(t) for t, rules in self._rules.items() if rules.rate_per_s}
        self._running = {
            topic: store.queue.ordering.depth(topic, Status.LEASED)[0]
            for topic, rules in self._rules.items()
            if rules.max_running
        }

    def rooms(self, more: int = 0) -> Mapping[str, int]:
        """{topic: how many more of its jobs may be claimed now}, and ``more`` where any may."""
        rooms = {topic: self._room(topic, rules) for topic, rules in self._rules.items()}
        return {topic: room and room + more for topic, room in rooms.items()}

    def fitting(self, jobs: list[Job]) -> list[Job]:
        """Those of ``jobs`` that may be claimed together."""
        return list(fitting(jobs, self.rooms())) if self._rules else jobs

    def take(self, topic: str) -> int | None:
        """Claim a job of ``topic``: when its bucket is full again, in µs of boot time; None where
        it has none."""
        if topic not in self._full_us:
            return None
        full_us = max(self._full_us[topic], self._moment.boot_us)
        self._full_us[topic] = math.ceil(full_us + _interval_us(self._rules[topic]))
        return self._full_us[topic]

    def frees_s(self, counts: Mapping[str, Mapping[str, int]]) -> float | None:
        """Seconds until a bucket has a token again, of the topics where that alone is waited for
        by one of the jobs in ``counts``; None where there is no such."""
        waits = [
            self._token_us(topic) / 1e6
            for topic in self._full_us
            if counts.get(topic, {}).get(Status.PENDING)
            and self._free(topic, self._rules[topic]) > 0
            and self._token_us(topic) > 0
        ]
        return min(waits, default=None)

    def _room(self, topic: str, rules: TopicSettings) -> int:
        return max(min(self._free(topic, rules), self._tokens(topic, rules)), 0)

    def _free(self, topic: str, rules: TopicSettings) -> int:
        return rules.max_running - self._running[topic] if rules.max_running else _NO_BOUND

    def _tokens(self, topic: str, rules: TopicSettings) -> int:
        if not rules.rate_per_s:
            return _NO_BOUND
        owed_us = max(self._full_us[topic] - self._moment.boot_us, 0)
        return math.floor(_burst(rules) - owed_us / _interval_us(rules) + 1e-6)

    def _token_us(self, topic: str) -> float:
        """µs until there is a token."""
        rules = self._rules[topic]
        owed_us = self._full_us[topic] - self._moment.boot_us
        return owed_us - (_burst(rules) - 1) * _interval_us(rules)


def _interval_us(rules: TopicSettings) -> float:
    return 1e6 / rules.rate_per_s


def _burst(rules: TopicSettings) -> int:
    return rules.rate_burst or max(int(rules.rate_per_s), 1)
