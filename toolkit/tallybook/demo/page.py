"""The page of a demo: planted | found, and the way to the four reports. One file, no network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any
from urllib.parse import quote

from tallybook.demo.folder import Folder
from tallybook.demo.tally import Row
from tallybook.runbook.answers import tallied

MEANING = {
    "answer_lost": "the cloud did the job and its answer never came",
    "retried": "an attempt failed and another one was made",
    "dead": "the cloud refused the record for good",
    "stuck_lease": "a worker was killed or stopped while it held the job",
    "late_settle_refused": "a stopped worker woke up and its result came too late",
    "delivered_twice": "the cloud saw the job again and answered from its key",
    "changed": "a row of the cloud was changed behind the system's back",
    "missing": "a row of the cloud was deleted behind the system's back",
    "extra": "a row was added to the cloud behind the system's back",
    "rebuilt": "a cache entry was lost with state.db and rebuilt from the log",
}
_NAMED = 12


def write(place: Folder, rows: Sequence[Row], answers: Iterable[Mapping[str, Any]]) -> None:
    """Write the page whole, by rename."""
    template = Template(files("tallybook.demo").joinpath("page.html").read_text("utf-8"))
    holds = all(row.holds for row in rows)
    page = template.substitute(
        status="holds" if holds else "differs",
        verdict="All that was planted was found, and nothing else."
        if holds
        else "Planted and found differ.",
        rows="\n".join(map(_row, rows)),
        reports="\n".join(_link(place.root, answer) for answer in answers),
    )
    partial = place.report.with_suffix(".partial")
    partial.write_text(page, "utf-8")
    partial.rename(place.report)


def _row(row: Row) -> str:
    more = len(row.planted) - _NAMED
    named = ", ".join(row.planted[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")
    difference = f'<p class="differs">{escape(row.difference())}</p>' if not row.holds else ""
    return (
        f'<tr><th scope="row">{escape(row.kind)}<p>{escape(MEANING[row.kind])}</p></th>'
        f'<td class="count">{len(row.planted):,}</td><td class="count">{len(row.found):,}</td>'
        f'<td class="records">{escape(named)}{difference}</td></tr>'
    )


def _link(root: Path, answer: Mapping[str, Any]) -> str:
    path = Path(str(answer["report"])).relative_to(root)
    told = tallied(answer["findings"]) or "nothing told"
    return (
        f'<li><a href="{escape(quote(str(path)), quote=True)}">{escape(str(answer["runbook"]))}</a>'
        f" {told}</li>"
    )
