"""What all charts share: colours, axes, the look, and how one is shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import polars

from tallybook.imports import late_grammar
from tallybook.ops import questions, windows
from tallybook.ops.warehouse import Warehouse
from tallybook.ops.windows import Span

if TYPE_CHECKING:
    import altair

WIDTH, HEIGHT = 720, 220
MOST_WINDOWS = 1000
_FEW = 6
_TICKS = 8
_BRIEF = timedelta(seconds=8)
_STEPS_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_FONT = "system-ui, -apple-system, 'Segoe UI', 'Noto Sans', 'DejaVu Sans', sans-serif"

# Okabe and Ito (2008): told apart with any colour vision, and in grey by their lightness.
BLUE, ORANGE, GREEN, RED, PURPLE, SKY, GREY = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#777777",
)  # fmt: skip
# The ends of a window, and what a cell of the lanes says.
WINDOW = ("window_start", "window_end")
HELD = {"worker": "datum.worker", "leases held": "format(datum.held, ',.3~r')"}
PALETTE = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY, GREY)

Chart = Any


def altair_module() -> Any:
    """Altair, loaded late: it costs more than every query before it."""
    with late_grammar():
        import altair

    return altair


def legible(warehouse: Warehouse, span: Span) -> Span:
    """The span in windows that a chart can show: asked for more than a thousand, in about 90."""
    start, end = questions.reach(warehouse, span)
    many = bool(span.every) and end - start > MOST_WINDOWS * windows.length(span.every, end - start)
    return replace(span, every=windows.AUTO) if many else span


def packed(frame: polars.DataFrame) -> Any:
    """The rows of a frame as ``rows`` has them, in one text.

    A chart is copied with all its rows at each change, and each row is held against the schema; a
    text is neither, so a picture that is drawn at every brush takes its rows so.
    """
    local = _local(frame)
    moments = [name for name, kind in local.schema.items() if isinstance(kind, polars.Datetime)]
    told = local.with_columns(polars.col(moments).dt.strftime("%Y-%m-%dT%H:%M:%S%.3fZ"))
    alt = altair_module()
    return alt.InlineData(values=told.write_json(), format=alt.JsonDataFormat(type="json"))


def rows(frame: polars.DataFrame) -> altair.InlineData:
    """The rows of a frame as the data of a chart; times stay on the clock of their zone."""
    return values(_local(frame).iter_rows(named=True))


def values(given: Iterable[Mapping[str, Any]]) -> altair.InlineData:
    """Rows as the data of a chart; a schema that takes any row need not look at each."""
    alt = altair_module()
    with alt.utils.schemapi.debug_mode(False):
        drawn: altair.InlineData = alt.InlineData(values=_listed(given))
    return drawn


def _local(frame: polars.DataFrame) -> polars.DataFrame:
    moments = [name for name, kind in frame.schema.items() if isinstance(kind, polars.Datetime)]
    return frame.with_columns(polars.col(moments).dt.replace_time_zone(None)) if moments else frame


def _listed(given: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{name: _plain(value) for name, value in row.items()} for row in given]


def _plain(value: Any) -> Any:
    """Times as if they were UTC: the axis then shows the clock of the zone that its title names."""
    return value.isoformat(timespec="milliseconds") + "Z" if isinstance(value, datetime) else value


def time_axis(frame: polars.DataFrame, name: str, zone: str, *, quiet: bool = False) -> Any:
    """The x axis of time over the whole of ``frame``, on a clock of 24 hours.

    Its title names the zone, and the day where there is one. A quiet axis has ticks only, for a
    panel that stands above another with the same axis.
    """
    alt = altair_module()
    first, last = _reach(frame, name)
    if not isinstance(first, datetime) or not isinstance(last, datetime):
        raise TypeError(f"{name} is no time")
    one_day = first.date() == last.date()
    title = f"{first:%Y-%m-%d}, time in {zone}" if one_day else f"time in {zone}"
    axis = alt.Axis(
        labelOverlap="parity",
        labelFlush=False,  # a first label that is pushed inwards drops the next one
        labelSeparation=12,
        format=_clock(last - first),
        labels=not quiet,
        **_ticks(first.replace(tzinfo=None), last.replace(tzinfo=None)),
    )
    if quiet:
        axis.title = None
    reach = [_plain(first.replace(tzinfo=None)), _plain(last.replace(tzinfo=None))]
    scale = alt.Scale(type="utc", padding=0, domain=reach)
    return alt.X(f"{name}:T", title=title, scale=scale, axis=axis)


def told(chart: Chart, ends: tuple[str, str], zone: str, words: Mapping[str, str]) -> Chart:
    """The chart whose marks say from when to when they reach, then ``words`` ({name: expression
    of Vega}), to a pointer and to a screen reader. Vega itself gives the end as a day."""
    clock = "replace(utcFormat(toDate(datum.{}), '%Y-%m-%d %H:%M:%S.%L'), '.000', '')"
    times = " + ' to ' + ".join(clock.format(end) for end in ends)
    more = "".join(f" + '; {name}: ' + {value}" for name, value in words.items())
    said = chart.transform_calculate(told=f"{times} + ' {zone}'{more}")
    return said.encode(description="told:N", tooltip="told:N")


def between(low: str, high: str) -> str:
    """From one field to another as an expression of Vega, to three digits."""
    return f"format(datum.{low}, ',.3~r') + ' to ' + format(datum.{high}, ',.3~r')"


def _reach(frame: polars.DataFrame, name: str) -> tuple[object, object]:
    """From the first window to the end of the last one; without windows, of the times named."""
    ends = [column for column in frame.columns if column in ("window_start", "window_end")]
    times = [frame[column] for column in ends or [name]]
    return times[0].min(), times[-1].max()


def _ticks(first: datetime, last: datetime) -> dict[str, Any]:
    """How an axis is divided. Vega keeps one tick of each second where it is left to itself, as it
    tells ticks apart by their time in words; numbers are told apart."""
    if last - first >= _BRIEF:
        return {"tickCount": _TICKS}
    start, end = (
        round((at - datetime(1970, 1, 1)) / timedelta(milliseconds=1)) for at in (first, last)
    )
    step = next(one for one in _STEPS_MS if (end - start) / one <= _TICKS)
    at = range(-(-start // step) * step, end + 1, step)
    return {"values": altair_module().ExprRef(str(list(at)))}


def _clock(span: timedelta) -> str:
    if span < _BRIEF:
        return "%H:%M:%S.%L"
    if span < timedelta(minutes=8):
        return "%H:%M:%S"
    if span < timedelta(days=1):
        return "%H:%M"
    return "%m-%d %H:%M" if span < timedelta(days=8) else "%Y-%m-%d"


def count_axis(counts: Iterable[int]) -> Any:
    """An axis of whole numbers for ``counts``: without halves between few, with room for many."""
    alt, most = altair_module(), max(counts, default=0)
    if most <= _FEW:
        return alt.Axis(values=list(range(most + 1)), format="d")
    return alt.Axis(tickMinStep=1, tickCount=8, labelOverlap=True, labelSeparation=8)


def colours(names: Iterable[str], palette: Iterable[str] = PALETTE) -> Any:
    """A colour each, always the same one for the same place in ``names``."""
    named = list(names)
    return altair_module().Scale(domain=named, range=list(palette)[: len(named)])


def dashes(names: Iterable[str]) -> Any:
    """A line pattern each, so that lines differ without their colour too."""
    named = list(names)
    patterns = [[1, 0], [6, 3], [2, 2]][: len(named)]
    return altair_module().Scale(domain=named, range=patterns)


def empty(title: str, why: str) -> Chart:
    """A chart that says that there is nothing to draw."""
    alt = altair_module()
    said = alt.Chart(values([{"why": why}])).mark_text(fontSize=14, color=GREY)
    return dressed(said.encode(text="why:N").properties(width=WIDTH, height=60), title)


def dressed(chart: Chart, title: str, subtitle: str | list[str] = "") -> Chart:
    """The chart with its title and the look that all share."""
    alt = altair_module()
    head = alt.TitleParams(title, subtitle=subtitle) if subtitle else alt.TitleParams(title)
    return (
        chart.properties(title=head, background="white", padding=8)
        .configure(font=_FONT)
        .configure_view(stroke=None)
        .configure_title(anchor="start", fontSize=15, fontWeight=600, subtitleColor="#555555",
                         subtitleFontSize=12, offset=10)
        .configure_axis(labelFontSize=11, titleFontSize=12, titleFontWeight="normal",
                        gridColor="#e6e6e6", domainColor="#888888", tickColor="#888888",
                        labelLimit=260)
        .configure_legend(labelFontSize=12, titleFontSize=12, titleFontWeight="normal",
                          orient="top", direction="horizontal", symbolSize=120, labelLimit=260,
                          offset=6, columns=6)
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart as SVG, and as words where no picture can be shown."""

    svg: str
    words: str

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"image/svg+xml": self.svg, "text/plain": self.words}


def show(chart: Chart) -> Drawing:
    """The chart drawn as SVG, without a browser and without a network."""
    import vl_convert

    spec = chart.to_dict(validate=False)  # what is wrong with it, the drawing below says
    title = spec.get("title", {})
    words = title.get("text", "chart") if isinstance(title, dict) else str(title)
    return Drawing(vl_convert.vegalite_to_svg(spec), f"[chart] {words}")
