"""A slider through time: queue, open leases and cache as of then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ipywidgets

from tallybook.lab import offline, pages
from tallybook.ops.charts import incident as charts

if TYPE_CHECKING:
    from tallybook.lab.view import View

_ENTRIES = 8
_WIDE = ipywidgets.Layout(width="860px")


class Moment:
    """Widgets of one instant: the end of a grain of the span."""

    def __init__(self, view: View) -> None:
        self._view = view
        last = view.incident.grains.count - 1
        self._slider = ipywidgets.IntSlider(
            value=last, max=last, readout=False, continuous_update=False, layout=_WIDE
        )
        self._slider.observe(lambda _: self._follow(), "value")
        self._depth = offline.widget(charts.queue_depth(view.incident, last))
        self._said, self._tables = ipywidgets.HTML(), ipywidgets.HTML()
        self._follow()
        self.shown = ipywidgets.VBox([self._depth, self._slider, self._said, self._tables])
        self.shown.add_class("tallybook-moment")

    def turn(self, grain: int) -> None:
        """Show the end of ``grain``."""
        self._slider.value = grain

    def renew(self) -> None:
        """Show a log that was read again, at its end."""
        last = self._view.incident.grains.count - 1
        self._depth.chart = charts.queue_depth(self._view.incident, last)
        self._slider.max = last
        self._slider.value = last
        self._follow()

    def _follow(self) -> None:
        incident, grain, silence = self._view.incident, self._slider.value, self._view.silence
        self._depth.params.now = charts.moment_shown(incident, grain)
        keys, newest = incident.cache(grain, _ENTRIES)
        at = incident.whole.since + (grain + 1) * incident.grains.step
        self._said.value = pages.line((f"as of {at:%Y-%m-%d %H:%M:%S.%f} {incident.grains.zone}",
                                       f"{keys:,} keys in the cache"))  # fmt: skip
        self._tables.value = "".join(
            f"<b>{title}</b>{table}"
            for title, table in (
                ("Queue", pages.table(incident.queue(grain), none="no job yet")),
                (
                    "Open leases",
                    pages.table(incident.leases(grain), none=silence("leases", "no lease is open")),
                ),
                (
                    "Cache, written last",
                    pages.table(newest, none=silence("cache", "no key is cached")),
                ),
            )
        )
