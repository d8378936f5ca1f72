"""What the schedule knows from one life to the next: one file, written whole, synced, renamed in.

``diary.json`` says of each entry up to when its times were looked at, which are waiting, which run
is under way and how the last one ended. A run is written down before it begins; so a run that a
kill left without an end is known, and what becomes of it is a rule and no accident.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from tallybook import clock
from tallybook.errors import BadInput
from tallybook.layout import FILE_MODE
from tallybook.runbook import folder

FILE = "diary.json"


@dataclass(frozen=True, slots=True)
class Running:
    """A run that was begun: for which time it was due, when, as which process, how often tried."""

    due_at: datetime
    begun_at: datetime
    tries: int = 1
    pid: int = 0


@dataclass(frozen=True, slots=True)
class Ended:
    """How the last run ended; ``report`` is the path of its page, empty where it left none."""

    due_at: datetime
    ended_at: datetime
    status: str
    exit_code: int
    report: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """What is known of one entry; ``when`` is its expression and zone, as they were then."""

    when: str
    seen_until: datetime
    waiting: tuple[datetime, ...] = ()
    tries: int = 0
    running: Running | None = None
    last: Ended | None = None


@dataclass(frozen=True, slots=True)
class Diary:
    """All pages, by the name of the entry; ``holder`` is the process that keeps it."""

    pages: Mapping[str, Page] = field(default_factory=dict)
    holder: Mapping[str, Any] = field(default_factory=dict)

    def with_page(self, name: str, page: Page) -> Diary:
        """This diary with ``page`` as that of the entry ``name``."""
        return replace(self, pages={**self.pages, name: page})


def read(path: Path) -> Diary:
    """The diary at ``path``, empty where there is none; raises BadInput where it is damaged."""
    try:
        raw = json.loads(path.read_bytes())
        pages = {name: _page(page) for name, page in raw["pages"].items()}
        return Diary(pages, raw["holder"])
    except FileNotFoundError:
        return Diary()
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BadInput(
            f"{path}: not readable; remove it and the schedule begins anew, with nothing missed"
        ) from None


def write(path: Path, diary: Diary) -> None:
    """Put ``diary`` at ``path``: after this it is there whole, whatever stops the machine."""
    folder.private_folder(path.parent)
    text = json.dumps({"v": 1, **_plain(asdict(diary))}, ensure_ascii=False, indent=1) + "\n"
    put(path, text.encode("utf-8", "surrogateescape"))


def put(path: Path, content: bytes) -> None:
    """Replace the file ``path`` by ``content``: written aside, synced, renamed in."""
    aside = path.with_name(f".{path.name}.partial")
    fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, FILE_MODE)
    with os.fdopen(fd, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    aside.rename(path)
    place = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(place)
    finally:
        os.close(place)


def _plain(value: Any) -> Any:
    match value:
        case datetime():
            return clock.to_text(value)
        case Mapping():
            return {name: _plain(one) for name, one in value.items()}
        case list() | tuple():
            return [_plain(one) for one in value]
    return value


def _page(raw: Mapping[str, Any]) -> Page:
    running, last = raw["running"], raw["last"]
    return Page(
        raw["when"],
        clock.from_text(raw["seen_until"]),
        tuple(clock.from_text(one) for one in raw["waiting"]),
        int(raw["tries"]),
        Running(**_timed(running, "due_at", "begun_at")) if running else None,
        Ended(**_timed(last, "due_at", "ended_at")) if last else None,
    )


def _timed(raw: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {**raw, **{name: clock.from_text(raw[name]) for name in names}}
