"""``index.html``: all runs under one folder, newest first, with the trends of each runbook."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, TypeGuard
from urllib.parse import quote

from tallybook import whole
from tallybook.runbook.folder import REPORTS
from tallybook.runbook.keeping import folder_of
from tallybook.runbook.ledger import Ledger
from tallybook.runbook.page import page, text
from tallybook.runbook.report import WORDS

FILE = "index.html"
_SHOWN_RUNS = 200
_SHOWN_POINTS = 60
_WIDTH, _HEIGHT = 200.0, 36.0


def write(out: Path) -> Path:
    """Write the index of the runs under ``out`` aside and put it in place; its path."""
    runs = [run for run in Ledger(out).runs() if run.get("runbook")]
    return whole.put(out / FILE, render(runs, out).encode("utf-8", "backslashreplace"))


def render(runs: Sequence[Mapping[str, Any]], out: Path) -> str:
    """The page of ``runs``, which stand in the order of their begin."""
    name = sorted(runs, key=lambda run: str(run["runbook"]))
    groups = [(one, list(of)) for one, of in groupby(name, key=lambda run: str(run["runbook"]))]
    parts = [_runbook(one, of, out) for one, of in groups]
    numbers = ((len(runs), "run"), (len(groups), "runbook"))
    counted = " of ".join(f"{n:,} {word}{'s' * (n != 1)}" for n, word in numbers)
    return page("Runs", f"<h1>Runs</h1><p>{counted}</p>{''.join(parts) or '<p>None.</p>'}")


def figures(run: Mapping[str, Any]) -> dict[str, float]:
    """What a trend is drawn of: findings by severity, seconds, and what the runbook calls main."""
    counts = run.get("findings") or {}
    told = {f"{name}s": counts.get(name) for name in ("problem", "warning")}
    told |= {"seconds": run.get("duration_s"), **(run.get("figures") or {})}
    return {name: one for name, one in told.items() if _is_number(one)}


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _runbook(name: str, runs: Sequence[Mapping[str, Any]], out: Path) -> str:
    shown = list(reversed(runs))[:_SHOWN_RUNS]
    more = f"<p><small>and {len(runs) - len(shown):,} before</small></p>"
    heads = "".join(f"<th>{one}</th>" for one in _HEADS)
    rows = "".join(_row(run, out) for run in shown)
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    return (
        f"<section><h2>{text(name)}</h2>{_trends(runs[-_SHOWN_POINTS:])}"
        f'<div class="wide">{table}</div>{more if len(runs) > len(shown) else ""}</section>'
    )


_HEADS = ("began", "status", "problems", "warnings", "notes", "seconds", "book", "report")


def _row(run: Mapping[str, Any], out: Path) -> str:
    status, counts = str(run["status"]), run.get("findings") or {}
    numbers = [counts.get(name, "") for name in ("problem", "warning", "info")]
    took = run.get("duration_s")
    cells = [
        text(str(run.get("started_at"))[:19].replace("T", " ")),
        f'<span class="status {text(status)}">{text(WORDS.get(status, status))}</span>',
        *(text(str(number)) for number in numbers),
        f"{took:.1f}" if _is_number(took) else "",
        text(str(run.get("book") or "")),
        _link(str(run["run"]), out),
    ]
    kinds = ["", "", *[' class="number"'] * 4, "", ""]
    return f"<tr>{''.join(f'<td{k}>{c}</td>' for k, c in zip(kinds, cells, strict=True))}</tr>"


def _link(run: str, out: Path) -> str:
    place = folder_of(out, run) if os.sep not in run else None
    if place is None or not (place / "report.html").is_file():
        return "not kept" if place is None else "none"
    where = quote(f"{REPORTS}/{place.name}/report.html")
    return f'<a href="{where}" title="{text(run)}">report</a>'


def _trends(runs: Sequence[Mapping[str, Any]]) -> str:
    """A small drawing of each figure that changed or could have, over the runs that ended."""
    series: dict[str, list[tuple[Mapping[str, Any], float]]] = {}
    for run in runs:
        for name, value in figures(run).items():
            series.setdefault(name, []).append((run, value))
    drawn = "".join(_trend(name, points) for name, points in series.items() if len(points) > 1)
    return f'<div class="trends">{drawn}</div>' if drawn else ""


def _trend(name: str, points: Sequence[tuple[Mapping[str, Any], float]]) -> str:
    values = [value for _, value in points]
    low, high = min(0.0, *values), max(values)
    xs = [_WIDTH * place / (len(values) - 1) for place in range(len(values))]
    ys = [_HEIGHT - _HEIGHT * (value - low) / ((high - low) or 1) for value in values]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True))
    dots = "".join(_dot(x, y, *point) for x, y, point in zip(xs, ys, points, strict=True))
    said = f"{text(name)}: {_shortly(values[-1])}, at most {_shortly(high)}"
    return (
        f'<figure><svg class="trend" viewBox="-4 -4 {_WIDTH + 8:g} {_HEIGHT + 8:g}" role="img" '
        f'aria-label="{said} in {len(values)} runs"><polyline points="{line}"/>{dots}</svg>'
        f"<figcaption>{said}</figcaption></figure>"
    )


def _shortly(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _dot(x: float, y: float, run: Mapping[str, Any], value: float) -> str:
    bad = ' class="bad"' if run["status"] in ("failed", "interrupted") else ""
    told = text(f"{str(run.get('started_at'))[:19]}Z: {value:,g}, {run['status']}")
    return f'<circle{bad} cx="{x:.1f}" cy="{y:.1f}" r="2.5"><title>{told}</title></circle>'
