from __future__ import annotations

import json
import socket
import time
from datetime import UTC, datetime

import pytest

from tallybook.delivery import post
from tallybook.delivery.http import ANSWER_LIMIT, retry_after_s
from tallybook.errors import NotReached, Permanent, Retry


def answer(status: str, *headers: str, body: bytes = b"{}") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def test_an_answer_comes_back_with_its_body_and_names(serve, job):
    got = post(serve(answer("201 Created", "ETag: x", body=b'{"id":7}')).url, job)
    assert (got.status, got.json(), got.headers["etag"], got.replayed) == (
        201,
        {"id": 7},
        "x",
        False,
    )
    assert got.endpoint == "POST /rows"


def test_the_request_names_key_lease_attempt_and_correlation(serve, job):
    server = serve(answer("200 OK"))
    post(server.url, job, headers={"Authorization": "Bearer t"})
    head, _, body = server.received[0].partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /rows?secret=7 HTTP/1.1"
    wanted = {
        "Idempotency-Key: row-007",
        "Tallybook-Lease-Token: 5",
        "Tallybook-Attempt: 3",
        "Tallybook-Correlation-Id: c-1",
        "Authorization: Bearer t",
        "Content-Type: application/json",
    }
    assert wanted <= set(lines)
    assert json.loads(body) == {"id": "007"}


@pytest.mark.parametrize("key", ["a b", "ä", "x\r\nEvil: 1", "50%25", "\N{AIRPLANE}", " "])
def test_any_text_is_a_key_and_none_breaks_out_of_its_header(serve, job, key):
    server = serve(answer("200 OK"))
    post(server.url, job._replace(idempotency_key=key))
    lines = server.received[0].partition(b"\r\n\r\n")[0].decode("ascii").split("\r\n")
    sent = [line.removeprefix("Idempotency-Key: ") for line in lines if "Idempotency" in line]
    assert len(sent) == 1
    assert "Evil: 1" not in lines
    from urllib.parse import unquote

    assert unquote(sent[0]) == key


def test_a_replayed_answer_says_so(serve, job):
    assert post(serve(answer("200 OK", "Idempotency-Replayed: true")).url, job).replayed


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_what_may_pass_later_is_a_retry_with_its_status(serve, job, status):
    with pytest.raises(Retry) as caught:
        post(serve(answer(f"{status} No", "Retry-After: 3")).url, job)
    error = caught.value
    assert (error.error_type, error.http_status, error.after_s) == (f"HTTP {status}", status, 3.0)
    assert error.endpoint == "POST /rows"
    assert not isinstance(error, NotReached)


@pytest.mark.parametrize("status", [301, 307, 400, 401, 404, 409, 412, 413, 422])
def test_what_cannot_pass_is_permanent(serve, job, status):
    server = serve(answer(f"{status} No", "Location: http://127.0.0.1:1/"))
    with pytest.raises(Permanent) as caught:
        post(server.url, job)
    assert (caught.value.error_type, caught.value.http_status) == (f"HTTP {status}", status)
    assert len(server.received) == 1


def test_a_replayed_refusal_says_so(serve, job):
    with pytest.raises(Permanent) as caught:
        post(serve(answer("422 No", "Idempotency-Replayed: true")).url, job)
    assert caught.value.replayed


@pytest.mark.parametrize(
    "script",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    ],
)
def test_a_connection_that_ends_before_a_whole_answer_is_an_answer_lost(serve, job, script):
    with pytest.raises(Retry) as caught:
        post(serve(script).url, job)
    assert caught.value.error_type == "AnswerLost"
    assert not isinstance(caught.value, NotReached)


def test_a_reset_after_sending_is_an_answer_lost(serve, job):
    def reset(connection: socket.socket) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    with pytest.raises(Retry) as caught:
        post(serve(reset).url, job)
    assert caught.value.error_type == "AnswerLost"


def test_an_early_refusal_of_a_large_body_is_read(job):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        from threading import Thread

        def refuse() -> None:
            connection, _ = listener.accept()
            connection.sendall(answer("413 Too Large"))
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass
            connection.close()

        Thread(target=refuse, daemon=True).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        with pytest.raises(Permanent) as caught:
            post(url, job, body=b"x" * 5_000_000)
    assert caught.value.http_status == 413


def test_the_deadline_bounds_the_whole_exchange_and_not_each_read(serve, job):
    def drip(connection: socket.socket) -> None:
        for byte in answer("200 OK", body=b"x" * 400):
            connection.sendall(bytes([byte]))
            if server.over.wait(0.05):
                return

    server = serve(drip)
    began = time.monotonic()
    with pytest.raises(Retry) as caught:
        post(server.url, job, timeout_s=0.3)
    assert caught.value.error_type == "TimedOut"
    assert time.monotonic() - began < 1.5


def test_a_silent_server_is_timed_out(serve, job):
    def wait(_connection: socket.socket) -> None:
        server.over.wait(5)

    server = serve(wait)
    with pytest.raises(Retry) as caught:
        post(server.url, job, timeout_s=0.1)
    assert caught.value.error_type == "TimedOut"


def test_what_was_never_reached_is_not_reached(job):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(NotReached) as caught:
        post(f"http://127.0.0.1:{port}/rows", job)
    assert caught.value.endpoint == "POST /rows"


def test_a_failed_tls_handshake_is_not_reached(serve, job):
    server = serve(answer("200 OK"))
    with pytest.raises(NotReached):
        post(server.url.replace("http:", "https:"), job, timeout_s=1.0)


def test_a_name_that_cannot_be_looked_up_is_not_reached(job):
    with pytest.raises(NotReached):
        post(f"http://{'a' * 70}.invalid/", job)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://h/",
        "/rows",
        "http://",
        "http://u:p@h/",
        "http://h:x/",
        "http://h/a b",
        "http://h/\r\nX: 1",
    ],
)
def test_an_unusable_address_is_permanent_and_the_message_keeps_its_secrets(job, url):
    with pytest.raises(Permanent) as caught:
        post(url, job)
    assert caught.value.error_type == "BadAddress"
    assert "u:p" not in str(caught.value)


def test_an_endless_answer_is_cut_off(serve, job):
    def flood(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(2 * ANSWER_LIMIT // 65536):
            connection.sendall(b"x" * 65536)

    with pytest.raises(Retry) as caught:
        post(serve(flood).url, job)
    assert caught.value.error_type == "BadAnswer"


def test_an_answer_that_is_no_http_is_a_retry(serve, job):
    with pytest.raises(Retry) as caught:
        post(serve(b"SSH-2.0-OpenSSH\r\n\r\n").url, job)
    assert caught.value.error_type == "BadAnswer"


@pytest.mark.parametrize("name", ["Host", "X\r\nY", "", "Idempotency-Key", "Content-length"])
def test_a_header_that_would_change_the_exchange_is_refused(job, name):
    with pytest.raises(ValueError, match="header"):
        post("http://127.0.0.1:1/", job, headers={name: "1"})


NOW = datetime(2026, 11, 29, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("", None),
        ("7", 7.0),
        (" 0 ", 0.0),
        ("-1", None),
        ("1.5", None),
        ("soon", None),
        ("9" * 400, 604800.0),
        ("Sun, 29 Nov 2026 12:00:30 GMT", 30.0),
        ("Sun, 29 Nov 2026 11:00:00 GMT", 0.0),
        ("Sun, 29 Nov 9999 11:00:00 GMT", 604800.0),
        ("Sun, 99 Nov 2026 11:00:00 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str | None, seconds: float | None):
    assert retry_after_s(value, NOW) == seconds
