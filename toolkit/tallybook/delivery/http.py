"""``post``: one attempt over HTTP, told in the words of the queue."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from string import ascii_letters, digits, punctuation
from typing import Any, NoReturn
from urllib.parse import SplitResult, quote, urlsplit

from tallybook.delivery.wire import Garbled, Late, Lost, Received, Unreached, exchange
from tallybook.errors import NotReached, Permanent, Retry
from tallybook.job import Job

ANSWER_LIMIT = 1024 * 1024
LONGEST_DELAY_S = 7 * 24 * 3600.0
_MAY_PASS_LATER = frozenset({408, 425, 429})
_PRINTABLE = "".join(set(ascii_letters + digits + punctuation) - {"%"})
_TOKEN = frozenset(ascii_letters + digits + "!#$%&'*+-.^_`|~")
_OURS = frozenset({"host", "content-length", "connection", "transfer-encoding", "idempotency-key"})


@dataclass(frozen=True, slots=True)
class Answer:
    """A 2xx answer. ``replayed``: the server had done this job before. Names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    replayed: bool
    endpoint: str

    def json(self) -> Any:
        """The body as JSON; raises ValueError when it is none."""
        return json.loads(self.body)


def post(
    url: str,
    job: Job,
    *,
    body: Any = None,
    timeout_s: float = 2.0,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Send ``body`` (bytes, or what JSON can say; the payload by default) and return the answer.

    ``timeout_s`` bounds the whole exchange. ``headers`` are sent too and never logged.
    Raises Retry, NotReached or Permanent as the package says; follows no redirect, uses no proxy.
    """
    parts, endpoint = _address(url)
    content = _content(job.payload if body is None else body)
    sent = _names(job) | _checked(headers or {})
    try:
        received = exchange(parts, "POST", sent, content, timeout_s, ANSWER_LIMIT)
    except Unreached as error:
        raise NotReached(f"{endpoint}: not reached: {error}", endpoint=endpoint) from None
    except Lost as error:
        raise Retry(f"{endpoint}: {error}", error_type="AnswerLost", endpoint=endpoint) from None
    except Late as error:
        message = f"{endpoint}: {error} ({timeout_s:g} s)"
        raise Retry(message, error_type="TimedOut", endpoint=endpoint) from None
    except Garbled as error:
        raise Retry(f"{endpoint}: {error}", error_type="BadAnswer", endpoint=endpoint) from None
    return _judge(received, endpoint)


def retry_after_s(value: str | None, now: datetime) -> float | None:
    """Seconds that a ``Retry-After`` asks for (RFC 9110, 10.2.3): a number or an HTTP date.

    None when it is absent or unreadable; never negative, at most a week.
    """
    text = (value or "").strip()
    if text.isascii() and text.isdigit():
        return float(min(int(text[:9]), LONGEST_DELAY_S))
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    wait_s = (until.replace(tzinfo=until.tzinfo or UTC) - now).total_seconds()
    return min(max(wait_s, 0.0), LONGEST_DELAY_S)


def _address(url: str) -> tuple[SplitResult, str]:
    """The parts of a URL, and the endpoint that may stand in a log: no host, query or secret."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
        usable = usable and (parts.port is None or parts.port > 0) and url.isascii()
        usable = usable and parts.username is None and not any(c <= " " for c in url)
    except ValueError:
        usable = False
    if not usable:
        raise Permanent(
            "cannot deliver: write the address as http(s)://HOST[:PORT]/PATH, percent-encoded, "
            "credentials in a header",
            error_type="BadAddress",
        )
    return parts, f"POST {parts.path or '/'}"


def _content(body: Any) -> bytes:
    if isinstance(body, bytes):
        return body
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def _names(job: Job) -> dict[str, str]:
    names = {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "Idempotency-Key": _printable(job.idempotency_key or job.job_id),
        "Tallybook-Lease-Token": str(job.lease_token),
        "Tallybook-Attempt": str(job.attempt_count + 1),
    }
    if job.correlation_id:
        names["Tallybook-Correlation-Id"] = _printable(job.correlation_id)
    return names


def _printable(text: str) -> str:
    """Any text as one header value; two texts never become one (percent-encoded UTF-8)."""
    return quote(text, safe=_PRINTABLE)


def _checked(headers: Mapping[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not name or not set(name) <= _TOKEN or name.lower() in _OURS:
            raise ValueError(f"header {name!r}: not a name that a caller may set")
        if not value.isascii() or not value.isprintable():
            raise ValueError(f"header {name!r}: its value must be printable ASCII")
    return {name.title(): value for name, value in headers.items()}


def _judge(received: Received, endpoint: str) -> Answer:
    status = received.status
    replayed = received.headers.get("Idempotency-Replayed", "").strip().lower() == "true"
    if 200 <= status < 300:
        headers = {name.lower(): value for name, value in received.headers.items()}
        return Answer(status, headers, received.body, replayed, endpoint)
    if status in _MAY_PASS_LATER or status >= 500 or status < 200:
        _retry(received, endpoint, replayed)
    hint = "; redirects are not followed" if status < 400 else ""
    raise Permanent(
        f"{endpoint}: refused with HTTP {status}{hint}",
        error_type=f"HTTP {status}",
        http_status=status,
        endpoint=endpoint,
        replayed=replayed,
    )


def _retry(received: Received, endpoint: str, replayed: bool) -> NoReturn:
    raise Retry(
        f"{endpoint}: HTTP {received.status}",
        after=retry_after_s(received.headers.get("Retry-After"), datetime.now(UTC)),
        error_type=f"HTTP {received.status}",
        http_status=received.status,
        endpoint=endpoint,
        replayed=replayed,
    )
