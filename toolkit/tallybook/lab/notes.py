"""Findings, written down as one goes: each is on disk before the next, with what was on the screen.

A note is a line of ``notes.ndjson`` in ``incidents/<name>`` of the ops folder; ``report.html``
beside it is made of all of them, the gravest first, and opens with no network.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ipywidgets

from tallybook import whole
from tallybook.errors import BadInput, TallybookError
from tallybook.lab import offline, pages
from tallybook.layout import FILE_MODE
from tallybook.ops.charts import drawing
from tallybook.ops.charts import incident as charts
from tallybook.runbook import report
from tallybook.runbook.folder import private_folder, safe_name
from tallybook.runbook.page import plain

if TYPE_CHECKING:
    from tallybook.lab.view import View

SEVERITIES = ("problem", "warning", "info")
_DIFFERENCES = 5
_QUESTION = "What happened in this window of time?"


@dataclass(frozen=True, slots=True)
class Note:
    """One finding: what a person wrote, the slice that was selected, and what it showed."""

    written_at: str
    severity: str
    text: str
    since: str
    until: str
    evidence: tuple[str, ...]
    drawings: tuple[str, ...]

    @property
    def title(self) -> str:
        """The first line of the text."""
        return self.text.partition("\n")[0]

    @property
    def rest(self) -> str:
        """The text after its first line."""
        return self.text.partition("\n")[2].strip()

    def finding(self) -> dict[str, Any]:
        """The note as a finding of a report."""
        return {
            "kind": "note",
            "severity": self.severity,
            "title": self.title,
            "ids": [],
            "evidence": " · ".join([f"{self.since} to {self.until}", *filter(None, [self.rest])]),
            "action": "",
        }

    def cells(self) -> list[dict[str, Any]]:
        """The note as cells of a notebook: the text, then what was on the screen."""
        evidence = "".join(f"\n- {plain(line)}" for line in self.evidence)
        shown = [{"output_type": "display_data", "data": {"image/svg+xml": svg}}
                 for svg in self.drawings]  # fmt: skip
        source = f'incident.select("{self.since}", "{self.until}")'
        return [
            {"cell_type": "markdown", "source": f"## {self.title}\n\n{self.rest}\n{evidence}"},
            {"cell_type": "code", "source": source, "outputs": shown},
        ]


class Notes:
    """Widgets to write findings down, and the file they are kept in."""

    def __init__(self, view: View, name: str, out: Path | None) -> None:
        self._view, self.name = view, name
        told = os.environ.get(offline.OUT)
        self.folder = (out or (Path(told) if told else view.warehouse.out)) / "incidents" / name
        self.kept = _read(self._file)
        self._text = ipywidgets.Textarea(
            placeholder="what you found; the first line is its title",
            layout=ipywidgets.Layout(width="640px", height="70px"),
        )
        self._severity = ipywidgets.Dropdown(options=SEVERITIES, value="warning")
        self._write = ipywidgets.Button(description="Write it down", icon="pencil")
        self._export = ipywidgets.Button(description="Make the report", icon="file")
        self._write.on_click(lambda _: self._tried(self._written))
        self._export.on_click(lambda _: self._tried(self.report))
        self._said = ipywidgets.HTML()
        self._list()
        buttons = ipywidgets.HBox([self._severity, self._write, self._export])
        self.shown = ipywidgets.VBox([self._text, buttons, self._said])
        self.shown.add_class("tallybook-notes")

    @property
    def _file(self) -> Path:
        return self.folder / "notes.ndjson"

    def write_down(self, text: str, severity: str) -> None:
        """Keep a finding, on disk before this returns. Raises BadInput where it says nothing."""
        if not text.strip():
            raise BadInput("an empty finding: write what you found")
        if severity not in SEVERITIES:
            raise BadInput(f"no severity {severity!r}; choose {', '.join(SEVERITIES)}")
        note = self._noted(text.strip(), severity)
        private_folder(self.folder)
        _append(self._file, note)
        self.kept.append(note)
        self._list()

    def report(self) -> Path:
        """Write ``report.html`` and give its path. Raises BadInput where nothing was noted."""
        if not self.kept:
            raise BadInput("no finding is written down yet: the report would be empty")
        path = self.folder / "report.html"
        whole.put(path, self._page().encode())
        self._list(f"report: {path.resolve()}")
        return path

    def _tried(self, do: Callable[[], object]) -> None:
        """What a button does: what went wrong is told below it."""
        try:
            do()
        except (TallybookError, OSError) as error:
            self._list(str(error))

    def _written(self) -> None:
        self.write_down(self._text.value, self._severity.value)
        self._text.value = ""

    def _noted(self, text: str, severity: str) -> Note:
        part, incident = self._view.selection, self._view.incident
        differing = incident.differences(part).head(_DIFFERENCES).iter_rows(named=True)
        told = incident.summary(part).row(0, named=True)
        seen = f"{told['n']:,} leases ended, {told['failed']:,} of them failed"
        taken = incident.taken(part)
        holders = ", ".join(taken["worker"].unique().sort())
        lost = [f"{taken.height:,} leases were taken from {holders}"] if holders else []
        shown = (
            charts.brushed_throughput(incident, part, how=""),
            charts.slice_panels(incident, part),
        )
        return Note(
            datetime.now(UTC).isoformat(timespec="seconds"),
            severity,
            text,
            part.since.isoformat(),
            part.until.isoformat(),
            (seen, *lost, *(pages.told(row) for row in differing)),
            tuple(drawing.show(chart).svg for chart in shown),
        )

    def _page(self) -> str:
        grave = any(note.severity != "info" for note in self.kept)
        header = report.Header(
            name=f"Incident {self.name}",
            status="findings" if grave else "clean",
            message="",
            facts=self._facts(),
            parameters=(),
            findings=[note.finding() for note in self.kept],
            provenance=[("written", "in JupyterLab, with tallybook lab")],
        )
        first = {"cell_type": "markdown", "source": f"# Incident {self.name}\n\n{_QUESTION}"}
        return report.render(header, [first, *(c for note in self.kept for c in note.cells())])

    def _facts(self) -> Sequence[tuple[str, str]]:
        view, whole = self._view, self._view.incident.whole
        facts = [("book", str(view.warehouse.book)),
                 ("span", f"{whole.since.isoformat()} to {whole.until.isoformat()}"),
                 ("log", view.news), ("written", self.kept[-1].written_at)]  # fmt: skip
        return facts + [("incomplete", note) for note in view.warehouse.notes]

    def _list(self, told: str = "") -> None:
        rows = [f"{note.severity}: {note.title} ({note.since} to {note.until})"
                for note in self.kept]  # fmt: skip
        said = [told] if told else [f"kept in {self._file}"] if self.kept else []
        self._said.value = "".join(pages.line([one]) for one in (*rows, *said))


def require_name(name: str) -> None:
    """Raise BadInput where ``name`` cannot be the folder of an incident."""
    if safe_name(name) != name or not name:
        raise BadInput(f"no name of an incident: {name!r}; use letters, digits, - . and _")


def _append(path: Path, note: Note) -> None:
    """One line more, on disk."""
    fd = os.open(path, os.O_CREAT | os.O_APPEND | os.O_RDWR | os.O_CLOEXEC, FILE_MODE)
    try:
        whole.append(fd, json.dumps(asdict(note), ensure_ascii=False).encode() + b"\n")
    finally:
        os.close(fd)


def _read(path: Path) -> list[Note]:
    """The notes of a file that is there; raises BadInput that names a line which is none."""
    notes = []
    lines = path.read_bytes().splitlines() if path.exists() else []
    for number, line in enumerate(lines, 1):
        try:
            note = Note(**json.loads(line))
        except (ValueError, TypeError) as error:
            raise BadInput(
                f"{path} line {number} is no note ({error}); take it out, or name another incident"
            ) from None
        notes.append(replace(note, evidence=tuple(note.evidence), drawings=tuple(note.drawings)))
    return notes
