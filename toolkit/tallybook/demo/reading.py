"""Reading: the four runbooks, two at a time, each in a process of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tallybook.demo.children import Children, wait_for
from tallybook.demo.exports import CSV_NAME
from tallybook.demo.folder import Folder
from tallybook.errors import TallybookError
from tallybook.layout import carried

AT_ONCE = 2
RUN_S = 300.0


def read(
    children: Children, place: Folder, progress: Callable[[str, int, int], None]
) -> list[dict[str, Any]]:
    """What each runbook answered, as ``tallybook runbook run --json`` prints it."""
    waiting = dict(_orders(place))
    under_way: list[str] = []
    answers: list[dict[str, Any]] = []
    total = len(waiting)
    while waiting or under_way:
        progress("read with four runbooks", len(answers), total)
        while waiting and len(under_way) < AT_ONCE:
            name = next(iter(waiting))
            children.start(name, waiting.pop(name), gentle=True)
            under_way.append(name)
        wait_for(lambda: any(map(children.ended, under_way)), "the end of a runbook", RUN_S)
        for name in [name for name in under_way if children.ended(name)]:
            under_way.remove(name)
            answers.append(_answer(children, name))
    progress("read with four runbooks", total, total)
    return sorted(answers, key=lambda answer: str(answer["runbook"]))


def _orders(place: Folder) -> list[tuple[str, list[str]]]:
    given: dict[str, dict[str, str]] = {
        "throughput_latency": {},
        "stuck_leases": {},
        "cache_rebuild": {},
        "reconcile": {"export": str(place.exports / CSV_NAME), "key": "icao"},
    }
    return [(name, _arguments(place, name, parameters)) for name, parameters in given.items()]


def _arguments(place: Folder, name: str, parameters: dict[str, str]) -> list[str]:
    path = carried("runbooks") / f"{name}.ipynb"
    pairs = [part for item in parameters.items() for part in ("-p", "=".join(item))]
    options = ["--book", str(place.book), "--out", str(place.out), "--json", *pairs]
    return ["-m", "tallybook", "runbook", "run", str(path), *options]


def _answer(children: Children, name: str) -> dict[str, Any]:
    """The one JSON object that the process printed; raises where the run failed."""
    printed = children.printed(name)
    try:
        answer: dict[str, Any] = json.loads(printed)
    except ValueError:
        raise TallybookError(f"demo: runbook {name} failed: {children.said(name)}") from None
    if answer["exit_code"] not in (0, 1):
        raise TallybookError(f"demo: {answer['message'] or answer['status']}")
    return answer
