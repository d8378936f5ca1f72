"""The throughput to brush, and all that follows the brush."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ipywidgets
import polars

from tallybook.errors import TallybookError
from tallybook.lab import offline, pages
from tallybook.ops.charts import incident as charts
from tallybook.ops.incident import Slice

if TYPE_CHECKING:
    from tallybook.lab.view import View

_EVERY, _ALL = "every lease", 0  # the ids of names begin with 1
_NAMED = 60
_SHOWN = ("idempotency_key", "topic", "worker", "how", "error", "endpoint", "payload_size",
          "took_s", "total_s", "ended_at", "job_id")  # fmt: skip
_WHOLE = "this is the whole span: brush a window, and what differs in it from the rest stands here"
_NONE = "no lease ended here"
_ALIKE = "nothing differs from the rest of the span beyond chance"


class Linked:
    """Widgets of the selection: the overview sets it, the rest follows it."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._said = ipywidgets.HTML()
        self._found, self._table = ipywidgets.HTML(), ipywidgets.HTML()
        self._of = ipywidgets.Dropdown(
            options=[(_EVERY, _ALL)],
            description="leases of",
            layout=ipywidgets.Layout(width="420px"),
        )
        self._again = ipywidgets.Button(
            description="Read the log again",
            icon="refresh",
            layout=ipywidgets.Layout(width="180px"),
        )
        self._again.on_click(lambda _: self._refresh())
        self._overview = offline.widget(charts.brushed_throughput(view.incident))
        self._panels = offline.widget(None)
        self._offered = False
        self._of.observe(lambda _: self._kept_to(), "value")
        self._listen()
        self.follow()
        self.shown = ipywidgets.VBox(
            [ipywidgets.HBox([self._again, self._said]), self._overview, self._found, self._panels,
             self._of, self._table]
        )  # fmt: skip
        self.shown.add_class("tallybook-incident")

    def brush(self, part: Slice) -> None:
        """Select ``part`` from code: the overview shows it as its brush."""
        self._view.selection = part
        begun = None if part == self._view.incident.whole else part
        self._overview.chart = charts.brushed_throughput(self._view.incident, begun)
        self._listen()
        self.follow()

    def renew(self, part: Slice) -> None:
        """Show a log that was read again."""
        self.brush(part)

    @property
    def leases(self) -> polars.DataFrame:
        """The leases of the table."""
        return self._view.incident.worst(self._view.selection, self._of.value or None)

    def follow(self) -> None:
        """Show what is selected."""
        part, incident = self._view.selection, self._view.incident
        whole = part == incident.whole
        self._tell()
        found = incident.differences(part)
        self._found.value = pages.differences(found, none=_WHOLE if whole else _ALIKE)
        self._offer(incident.names(part))
        self._tell_leases()
        self._panels.chart = charts.slice_panels(incident, part)

    def _listen(self) -> None:
        """A new chart has new selections."""
        self._overview.selections.observe(self._brushed, charts.BRUSH)

    def _brushed(self, change: Any) -> None:
        incident = self._view.incident
        reached = charts.brushed(change.new.value, incident.grains.zone)
        part = incident.slice(*reached) if reached else incident.whole
        if part != self._view.selection:
            self._view.selection = part
            self.follow()

    def _tell(self) -> None:
        part = self._view.selection
        told = self._view.incident.summary(part).filter(polars.col("inside")).to_dicts()
        n, failed, busy = (told[0][name] for name in ("n", "failed", "busy_s"))
        style = "%Y-%m-%d %H:%M:%S.%f"
        since, until = (f"{moment:{style}}"[:-3] for moment in (part.since, part.until))
        self._said.value = pages.line(
            (f"{since} to {until[11:] if until[:10] == since[:10] else until} {part.zone}",
             f"{n:,} leases ended, {failed:,} of them failed, {busy:,.1f} s of work",
             self._view.news)
        )  # fmt: skip

    def _offer(self, names: polars.DataFrame) -> None:
        """The values that the table of leases can be kept to; the one chosen stays if it can."""
        kept = self._of.value
        rows = names.sort("n", descending=True).head(_NAMED).sort("dimension", maintain_order=True)
        options = [(_EVERY, _ALL)] + [
            (f"{row['dimension']}: {row['name']} ({row['n']:,})", row["id"])
            for row in rows.iter_rows(named=True)
        ]
        self._offered = False
        self._of.options = options
        self._of.value = kept if kept in {id for _, id in options} else _ALL
        self._offered = True

    def _kept_to(self) -> None:
        """What the dropdown does, where a person chose and not a new offer."""
        if self._offered:
            self._tell_leases()

    def _tell_leases(self) -> None:
        found = self.leases
        ids = found["job_id"].drop_nulls().unique(maintain_order=True).to_list()
        self._view.offer_jobs(ids)
        self._table.value = pages.table(
            found.select(_SHOWN), none=self._view.silence("leases", _NONE)
        )

    def _refresh(self) -> None:
        """What the button does: a log that cannot be read is told beside it."""
        self._again.disabled = True
        try:
            self._view.refresh()
        except TallybookError as error:
            self._said.value = pages.line([str(error)])
        finally:
            self._again.disabled = False
