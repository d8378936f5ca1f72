"""What the log keeps of payloads: all, a digest, nothing, or all but some names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from core_steps import claim, events, job_of, outcome

from tallybook import Book
from tallybook.errors import BadInput, KeyConflict
from tallybook.ids import payload_digest
from tallybook.testing import FakeClock
from tallybook.worker.metrics import Counters
from tallybook.worker.run import run

SECRET = {"id": 7, "card": {"number": "4111", "name": "Ada"}, "cards": [{"number": "5500"}]}


def opened(root: Path, settings: str) -> Book:
    """A book with these settings."""
    root.mkdir(exist_ok=True)
    (root / "book.toml").write_text(settings)
    return Book.open(root, clock=FakeClock())


def enqueued(root: Path) -> dict[str, Any]:
    """The line of the only enqueue."""
    return next(line for line in events(root) if line["event"] == "job.enqueued")


@pytest.mark.parametrize(
    ("policy", "left_out"),
    [("full", []), ("digest", ["payload"]), ("none", ["payload", "payload_digest"])],
)
def test_a_policy_decides_what_of_a_payload_reaches_the_log_and_the_handler_gets_all(
    tmp_path: Path, policy: str, left_out: list[str]
) -> None:
    with opened(tmp_path / "b", f'[log]\npayload = "{policy}"\n') as book:
        receipt = book.enqueue("a", SECRET)
        assert job_of(book, receipt.job_id).payload == SECRET
        assert claim(book).payload == SECRET
    line = enqueued(tmp_path / "b")
    assert line.get("redacted", []) == left_out
    assert [name for name in ("payload", "payload_digest") if name not in line] == left_out
    text = b"".join(path.read_bytes() for path in (tmp_path / "b" / "log").glob("*.ndjson"))
    assert (b"4111" in text) == (policy == "full")


def test_redacted_names_are_null_in_the_log_at_any_depth_also_in_the_result(
    tmp_path: Path,
) -> None:
    with opened(tmp_path / "b", '[topics.a]\nredact = ["number"]\n') as book:
        job = book.enqueue("a", SECRET)
        book.enqueue("other", SECRET)
        assert job_of(book, job.job_id).payload == SECRET
        book.settle(outcome(book, claim(book), result={"number": 1, "ok": True}))
        assert json.loads(job_of(book, job.job_id).result_json or "") == {"number": 1, "ok": True}
    lines = events(tmp_path / "b")
    kept, whole = [line for line in lines if line["event"] == "job.enqueued"]
    card = {"number": None, "name": "Ada"}
    assert kept["payload"] == {"id": 7, "card": card, "cards": [{"number": None}]}
    assert kept["redacted"] == ["payload.card.number", "payload.cards[0].number"]
    assert kept["payload_digest"] == payload_digest(SECRET)
    assert (whole["payload"], "redacted" in whole) == (SECRET, False)
    (done,) = [line for line in lines if line["event"] == "job.done"]
    assert (done["result"], done["redacted"]) == ({"number": None, "ok": True}, ["result.number"])


@pytest.mark.parametrize(
    "settings", ['[log]\npayload = "digest"\n', '[topics.a]\nredact = ["card"]\n']
)
def test_a_job_whose_payload_was_lost_with_the_state_is_never_run_on_half_of_it(
    tmp_path: Path, settings: str
) -> None:
    root = tmp_path / "b"
    with opened(root, settings) as book:
        book.enqueue("a", SECRET, idempotency_key="k")
    for path in root.glob("state.db*"):
        path.unlink()
    with opened(root, settings) as book:
        job = claim(book)
        assert job.payload_is_lost
        ended, _ = run(lambda _: pytest.fail("it ran"), job, book, Counters())
        assert (ended.settle, ended.error_type) == ("dead", "PayloadLost")


def test_without_a_digest_a_lost_state_lets_a_key_find_its_job_whatever_the_payload(
    tmp_path: Path,
) -> None:
    root, settings = tmp_path / "b", '[topics.a]\npayload = "none"\n'
    with opened(root, settings) as book:
        first = book.enqueue("a", SECRET, idempotency_key="k")
        with pytest.raises(KeyConflict):
            book.enqueue("a", "another", idempotency_key="k")
        book.settle(outcome(book, claim(book)))
    for path in root.glob("state.db*"):
        path.unlink()
    with opened(root, settings) as book:
        assert book.enqueue("a", "another", idempotency_key="k").job_id == first.job_id


@pytest.mark.parametrize("ends", [False, True])
def test_a_job_that_can_never_run_gives_its_key_to_whoever_brings_the_payload_anew(
    tmp_path: Path, ends: bool
) -> None:
    root, settings = tmp_path / "b", '[log]\npayload = "digest"\n'
    with opened(root, settings) as book:
        lost = book.enqueue("a", SECRET, idempotency_key="k").job_id
    for path in root.glob("state.db*"):
        path.unlink()
    with opened(root, settings) as book:
        if ends:
            ended, _ = run(lambda _: None, claim(book), book, Counters())
            book.settle(ended)
        again = book.enqueue("a", SECRET, idempotency_key="k")
        assert again.is_new and again.job_id != lost
        assert book.enqueue("a", SECRET, idempotency_key="k").job_id == again.job_id
        assert job_of(book, again.job_id).payload == SECRET


def test_a_payload_of_null_is_known_also_where_only_digests_are_kept(tmp_path: Path) -> None:
    root, settings = tmp_path / "b", '[log]\npayload = "none"\n'
    with opened(root, settings) as book:
        book.enqueue("a", None)
    for path in root.glob("state.db*"):
        path.unlink()
    with opened(root, settings) as book:
        assert not claim(book).payload_is_lost


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ('[log]\npayload = "some"\n', r"\[log\] payload: 'some' is none of full, digest, none"),
        ('[log]\ndurability = "later"\n', "'later' is none of full, interval"),
        ('[topics.a]\nredact = "number"\n', "write a list of names"),
        ("[topics.a]\nredact = [1]\n", "write a list of names"),
    ],
)
def test_a_policy_that_is_none_is_refused_with_its_place(
    tmp_path: Path, settings: str, words: str
) -> None:
    with pytest.raises(BadInput, match=words):
        opened(tmp_path / "b", settings)
