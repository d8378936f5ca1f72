"""One job or correlation id, from enqueue to cloud."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ipywidgets
import polars

from tallybook.lab import offline, pages
from tallybook.ops import questions
from tallybook.ops.charts import incident as charts

if TYPE_CHECKING:
    from tallybook.lab.view import View

_SHOWN = ("at_s", "occurred_at", "event", "worker", "lease_token", "what", "job_id")
_NONE = "nothing in the log has this id"


class Traced:
    """Widgets of one id; the box offers the jobs of the table of leases."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._box = ipywidgets.Combobox(
            description="id",
            placeholder="job id, correlation id, idempotency key or cache key",
            continuous_update=False,
            layout=ipywidgets.Layout(width="560px"),
        )
        self._chart = offline.widget(None)
        self._table = ipywidgets.HTML()
        self._box.observe(lambda change: self._show(change.new), "value")
        self.shown = ipywidgets.VBox([self._box, self._chart, self._table])
        self.shown.add_class("tallybook-trace")

    def offer(self, ids: list[str]) -> None:
        """Offer these ids in the box."""
        self._box.options = ids

    def follow(self, id: str) -> polars.DataFrame:
        """Show the trace of ``id``, and give it."""
        self._box.value = id
        return questions.trace(self._view.warehouse, id)

    def _show(self, id: str) -> None:
        zone = self._view.incident.grains.zone
        found = questions.trace(self._view.warehouse, id.strip())
        moved = found.with_columns(polars.col("occurred_at").dt.convert_time_zone(zone))
        self._chart.chart = charts.job_lanes(moved, zone) if id.strip() else None
        self._table.value = pages.table(moved.select(_SHOWN), none=_NONE) if id.strip() else ""
