"""Delivery: one attempt of a job as one HTTP request.

    from tallybook.delivery import post

    @handler("orders.sync")
    def sync(job, ctx):
        answer = post("https://cloud.example/orders", job)
        ctx.note(http_status=answer.status, endpoint=answer.endpoint, replayed=answer.replayed)

``post`` sends the payload once and says how it went in the words of the queue:

- an answer 2xx is returned;
- never reached the server (DNS, connect, TLS): ``NotReached``, which counts as no attempt;
- sent, and the connection ended before a whole answer: ``Retry``, error type ``AnswerLost``;
- the deadline passed after something was sent: ``Retry``, error type ``TimedOut``;
- 408, 425, 429 and 5xx: ``Retry``, error type ``HTTP 503``, with what ``Retry-After`` asks for;
- any other status, redirects too: ``Permanent``.

The request carries the names of the attempt, so that the server can do each job once:
``Idempotency-Key`` (the job's key, else its id), ``Tallybook-Lease-Token``,
``Tallybook-Attempt`` (1 for the first) and ``Tallybook-Correlation-Id``.
A server that answers from memory says so with ``Idempotency-Replayed: true``.

A connection serves one request: on a kept one, a server that closes an idle connection
looks the same as an answer that was lost.
The deadline bounds the whole exchange, not each read; only the system's DNS lookup is outside it.
"""

from tallybook.delivery.http import Answer, post

__all__ = ["Answer", "post"]
