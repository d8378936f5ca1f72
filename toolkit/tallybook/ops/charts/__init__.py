"""Charts: counted in DuckDB, drawn by Altair, shown with no network.

Each function takes the warehouse (or a reconciliation) and gives an Altair chart of at most some
thousand marks, at ten jobs as at a hundred million. Axes carry units, the time axis names its
zone, colours are told apart by colour-blind eyes, and no data is said, not drawn empty.
``show(chart)`` draws it as SVG wherever it is displayed: JupyterLab, papermill, a report.

Altair loads at the first chart.
"""

from tallybook.ops.charts.caches import cache_compared, cache_history
from tallybook.ops.charts.drawing import Drawing, show
from tallybook.ops.charts.failures import dead_letters, outcomes, retries_by_reason
from tallybook.ops.charts.lanes import lease_lanes
from tallybook.ops.charts.latencies import before_after, latency_bands, latency_heatmap
from tallybook.ops.charts.rates import by_day, depth, growth, throughput
from tallybook.ops.charts.reconciled import (
    reconcile_causes,
    reconcile_columns,
    reconcile_runs,
    reconcile_status,
)
from tallybook.ops.charts.reviewed import settings

__all__ = [
    "Drawing",
    "before_after",
    "by_day",
    "cache_compared",
    "cache_history",
    "dead_letters",
    "depth",
    "growth",
    "latency_bands",
    "latency_heatmap",
    "lease_lanes",
    "outcomes",
    "reconcile_causes",
    "reconcile_columns",
    "reconcile_runs",
    "reconcile_status",
    "retries_by_reason",
    "settings",
    "show",
    "throughput",
]
