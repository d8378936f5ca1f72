"""``tallybook enqueue``: one job from the command line, or NDJSON from standard input."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tallybook.book.changes import New
from tallybook.cli import output
from tallybook.errors import BadInput, NotNow, QueueFull, TallybookError
from tallybook.layout import find_book
from tallybook.payload import MAX_DEPTH

if TYPE_CHECKING:
    from tallybook.book import Book, Receipt

HELP = "enqueue one job, or many from standard input"
_CHUNK = 1000
_OPTIONS: Mapping[str, tuple[type, ...]] = {
    "idempotency_key": (str,),
    "priority": (int,),
    "delay_s": (int, float),
    "expires_after_s": (int, float),
    "timeout_s": (int, float),
    "correlation_id": (str,),
    "ordering_key": (str,),
    "resource": (str,),
    "keep_latest": (bool,),
}


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("topic", metavar="TOPIC", help="a topic, or - to read NDJSON lines")
    parser.add_argument("payload", metavar="PAYLOAD", nargs="?", help="JSON")
    parser.add_argument("--key", dest="idempotency_key", metavar="K", help="idempotency key")
    parser.add_argument("--priority", type=int, metavar="N", help="higher is claimed first")
    parser.add_argument("--delay", dest="delay_s", type=float, metavar="S", help="seconds")
    parser.add_argument(
        "--expires-after", dest="expires_after_s", type=float, metavar="S",
        help="dead unless done in so many seconds",
    )  # fmt: skip
    parser.add_argument(
        "--timeout", dest="timeout_s", type=float, metavar="S", help="stop a run after so long"
    )
    parser.add_argument("--correlation-id", metavar="ID", help="carried through all events")
    parser.add_argument(
        "--ordering-key", metavar="K", help="jobs of one key and topic run one after the other"
    )
    parser.add_argument("--resource", metavar="R", help="of one resource at most one job runs")
    parser.add_argument(
        "--keep-latest", action="store_true", default=None,
        help="take the place of the pending jobs of the ordering key",
    )  # fmt: skip
    output.add_book(parser)
    output.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Enqueue; 0 once every job is on disk."""
    from tallybook.book import Book

    one = None if args.topic == "-" else _one(args)
    is_new = output.names_new_book(args.book)
    with Book.open(find_book(args.book)) as book:
        receipts = book.enqueue_many([one]) if one else _from_standard_input(book)
    if is_new:
        output.tell_new_book(args.book)
    new = sum(receipt.is_new for receipt in receipts)
    shown = {
        "enqueued": new,
        "deduplicated": len(receipts) - new,
        "job_ids": [receipt.job_id for receipt in receipts],
        "superseded": [job_id for receipt in receipts for job_id in receipt.superseded],
    }
    output.answer(shown, args.json, text=lambda: _told(receipts, new))
    return 0


def _one(args: argparse.Namespace) -> New:
    if args.payload is None:
        raise BadInput(
            "give the payload as JSON after the topic, as in: enqueue TOPIC '{\"id\": 7}'"
        )
    options = {name: getattr(args, name) for name in _OPTIONS}
    given = {name: value for name, value in options.items() if value is not None}
    return New(args.topic, _json(args.payload, "PAYLOAD"), **given)


def _from_standard_input(book: Book) -> list[Receipt]:
    receipts: list[Receipt] = []
    progress = output.Progress("enqueued")
    number = 0
    try:
        while chunk := list(itertools.islice(sys.stdin.buffer, _CHUNK)):
            receipts += _take(book, chunk, number)
            number += len(chunk)
            progress.show(len(receipts))
    except TallybookError as error:
        raise type(error)(
            f"{error}; {output.counted(len(receipts), 'job')} of the lines before are on disk"
        ) from None
    finally:
        progress.close()
    return receipts


def _take(book: Book, chunk: list[bytes], before: int) -> list[Receipt]:
    """Enqueue a chunk of lines with one sync; where a line is bad, none of the chunk is taken."""
    new: dict[int, New] = {}
    for number, raw in enumerate(chunk, before + 1):
        if raw.strip():
            try:
                new[number] = _line(raw)
                new[number].checked(book.settings)
            except BadInput as error:
                raise BadInput(f"standard input line {number}: {error}") from None
    try:
        return book.enqueue_many(list(new.values()))
    except QueueFull as error:
        raise NotNow(f"standard input line {list(new)[error.place]}: {error}") from None


def _line(raw: bytes) -> New:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise BadInput("not UTF-8") from None
    line = _json(text, "the line")
    if (
        not isinstance(line, dict)
        or not isinstance(line.get("topic"), str)
        or "payload" not in line
    ):
        raise BadInput('write {"topic": "…", "payload": …}')
    for name, value in line.items():
        _check_option(name, value)
    return New(**line)


def _check_option(name: str, value: Any) -> None:
    if name in ("topic", "payload"):
        return
    if name not in _OPTIONS:
        raise BadInput(f"no field {name!r}; there are topic, payload, {', '.join(_OPTIONS)}")
    kinds = _OPTIONS[name]
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise BadInput(f"{name}: {value!r} is not {kinds[-1].__name__}")


def _json(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise BadInput(f"{what} is not JSON: {error}") from None
    except RecursionError:
        raise BadInput(f"{what}: nested deeper than {MAX_DEPTH} levels") from None


def _told(receipts: list[Receipt], new: int) -> str:
    if len(receipts) == 1:
        note = "" if new else "  (already there under this key)"
        note += "".join(f"\n{job_id}  (superseded)" for job_id in receipts[0].superseded)
        return f"{receipts[0].job_id}{note}"
    superseded = sum(len(receipt.superseded) for receipt in receipts)
    note = f", {superseded} superseded" if superseded else ""
    return f"{new} enqueued, {len(receipts) - new} already there{note}"
