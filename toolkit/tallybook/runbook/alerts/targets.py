"""Where a message goes: an address of a service that apprise knows, which is a secret.

runbooks.toml has a reference to it, ``env:NAME``, ``file:PATH`` or ``keyring:SERVICE/USER``; what
is there is read when a message is sent and stands in no file, log or error of ours. apprise is
imported late.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tallybook.errors import BadInput
from tallybook.runbook import secrets

_STATUS = re.compile(r"\berror=(\d{3})\b")
_WORDS = "as in mailto://…, json://… or slack://…"


def check(reference: str) -> None:
    """Raise BadInput where ``reference`` leads to no address that apprise knows."""
    apprise = _apprise()
    url = _resolved(reference)
    if "://" not in url:
        raise BadInput(f"what {reference} holds has no scheme; write one, {_WORDS}")
    with _silent():
        known = apprise.Apprise.instantiate(url, suppress_exceptions=True)
    if known is None:
        scheme = re.sub(r"[^A-Za-z0-9+.-].*", "", url.partition("://")[0])[:20]
        raise BadInput(
            f"what {reference} holds is no address that apprise knows: look at its scheme "
            f"({scheme}) and at the parts that this service needs"
        )


def send(reference: str, title: str, body: str) -> str:
    """Send a message; returns why it was not taken, empty where it was. Raises nothing."""
    try:
        apprise, url = _apprise(), _resolved(reference)
        with _silent() as heard:
            post = apprise.Apprise()
            if not post.add(url):
                return "it is no address that apprise knows"
            taken = post.notify(body=body, title=title, body_format=apprise.NotifyFormat.TEXT)
    except BadInput as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - a plugin's error may quote the address
        return f"apprise: {type(error).__name__}"
    return "" if taken else heard.reason()


class _Ear(logging.Handler):
    """Hears what apprise says, which may quote the address, and keeps the status of HTTP."""

    def __init__(self) -> None:
        super().__init__()
        self._status = ""

    def emit(self, record: logging.LogRecord) -> None:
        found = _STATUS.search(record.getMessage())
        self._status = found[1] if found else self._status

    def reason(self) -> str:
        """Why a message was not taken, as far as it can be said."""
        return (
            f"the service answered {self._status}" if self._status else "the service did not answer"
        )


@contextmanager
def _silent() -> Iterator[_Ear]:
    """In this block what apprise and its transports log goes nowhere."""
    ear = _Ear()
    loggers = [logging.getLogger(name) for name in ("apprise", "urllib3", "requests")]
    before = [(one, one.handlers[:], one.propagate) for one in loggers]
    for one in loggers:
        one.handlers[:], one.propagate = [ear], False
    try:
        yield ear
    finally:
        for one, handlers, propagate in before:
            one.handlers[:], one.propagate = handlers, propagate


def _resolved(reference: str) -> str:
    return str(secrets.secret(reference)).strip()


def _apprise() -> Any:
    try:
        import apprise
    except ModuleNotFoundError:
        raise BadInput("alerts need 'apprise'; run: pip install 'tallybook[alerts]'") from None
    return apprise
