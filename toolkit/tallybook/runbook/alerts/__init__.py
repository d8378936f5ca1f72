"""Alerts of the schedule: a run failed, found something, was missed, is well again.

judging      what is news: each state is told once, and its end once
telling      the words of a message, and the listener that the schedule calls
outbox       messages on disk until their target took them
postman      sends them beside the schedule, so that no run ever waits for a target
targets      addresses by reference, and apprise, which knows the services
"""

from tallybook.runbook.alerts.outbox import Message, Outbox
from tallybook.runbook.alerts.postman import Postman
from tallybook.runbook.alerts.telling import Alerting, require

__all__ = ["Alerting", "Message", "Outbox", "Postman", "require"]
