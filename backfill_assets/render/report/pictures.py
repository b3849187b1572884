"""The pictures of a report, as SVG inside of the page: cells over time, and sums before and after.

We draw them ourselves, because each needs a text for readers who can't see it, and a page about twelve models
of 540 cells has to stay below two megabytes.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from markupsafe import Markup

from backfill_assets.intervals.instants import day_text
from backfill_assets.intervals.text import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from decimal import Decimal

    from backfill_assets.render.report.content import ModelDifference, Series

_Value = TypeVar("_Value")
_WIDTH, _ROW, _LABEL = 960, 26, 260
_PLOT_WIDTH, _PLOT_HEIGHT = 460, 130
_POINTS = 180
"""How many points or rectangles of one model or column are drawn at most."""

_SHADES = ("#c6dbef", "#6baed6", "#2171b5", "#08306b")
"""The colours of cells, from a few differing rows to all rows."""
_BUILT, _UNCOMPARED = "#e8e8e8", "#fdae6b"


def heatmap(models: Sequence[ModelDifference]) -> Markup:
    """Draw the cells of each model over time: which were built, and what share of their rows differs."""
    spans = [_instants(pair) for model in models for pair in model.found["planned"]]
    if not spans:
        return Markup()
    first, last = min(start for start, _ in spans), max(end for _, end in spans)
    scale = _Scale(first, max(last, first + 1))
    height = _ROW * len(models) + 24
    words = "; ".join(_heat_words(model) for model in models)
    head = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">').format(
        _WIDTH, height, f"Cells over time. {words}"
    )
    rows = [_heat_row(model, at * _ROW, scale) for at, model in enumerate(models)]
    axis = Markup('<text x="{}" y="{}">{}</text><text x="{}" y="{}" text-anchor="end">{}</text>')
    ends = axis.format(_LABEL, height - 6, _day(first), _WIDTH, height - 6, _day(last))
    return head + Markup().join(rows) + ends + Markup("</svg>")


class _Scale:
    """Where an instant lies on the picture."""

    def __init__(self, first: float, last: float) -> None:
        self._first, self._per = first, (_WIDTH - _LABEL) / (last - first)

    def at(self, instant: float) -> float:
        return _LABEL + (instant - self._first) * self._per


def _heat_row(model: ModelDifference, top: int, scale: _Scale) -> Markup:
    label = Markup('<text x="0" y="{}">{}</text>').format(top + 16, model.model)
    rectangle = Markup(
        '<rect x="{:.1f}" y="{}" width="{:.1f}" height="18" fill="{}"><title>{}</title></rect>'
    )
    uncompared = () if model.compared else model.found.get("differ", ())
    drawn = (
        *((*_instants(pair), _BUILT, "built") for pair in model.found["planned"]),
        *((*_instants(pair), _UNCOMPARED, "differs, rows not compared") for pair in uncompared),
        *_shaded(model),
    )
    rectangles = (
        rectangle.format(scale.at(start), top + 3, max(scale.at(end) - scale.at(start), 1), *filled)
        for start, end, *filled in drawn
    )
    return label + Markup().join(rectangles)


def _shaded(model: ModelDifference) -> Iterator[tuple[float, float, str, str]]:
    """Give the stretches that differ, each with a shade and words; of many cells, several share a stretch."""
    if not model.found.get("starts"):
        return
    at = list(
        zip(model.cells, model.found["starts"], model.found["ends"], model.shares, strict=True)
    )
    for together in _together(at, max(1, -(-len(at) // _POINTS))):
        share = max(share for *_, share in together)
        if share:
            named = _first_to_last([name for name, *_ in together])
            start, end = _instants((together[0][1], together[-1][2]))
            shade = _SHADES[min(int(share * len(_SHADES)), len(_SHADES) - 1)]
            yield start, end, shade, f"{named}: {share:.0%} of rows differ"


def _heat_words(model: ModelDifference) -> str:
    differing = (
        [name for name, share in zip(model.cells, model.shares, strict=True) if share]
        if model.compared
        else []
    )
    if not model.compared and model.differs:
        return (
            f"{model.model}: {counted(model.found['differing_cells'], 'cell')} with other checksums"
        )
    if not differing:
        return f"{model.model}: no compared cell differs"
    count = counted(len(differing), "cell")
    return f"{model.model}: {count} with rows that differ: {_first_to_last(differing)}"


def _first_to_last(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"


def plot(model: ModelDifference, series: Series) -> Markup:
    """Draw the sums of a column before and after, cell by cell."""
    size = -(-len(series.old) // _POINTS)
    old, new = (_summed(side, size) for side in (series.old, series.new))
    low, high = min(*old, *new, 0.0), max(*old, *new, 0.0)
    span = (high - low) or 1.0
    label = (
        f"{series.column} of {model.model}, sum per cell from {model.cells[0]} to {model.cells[-1]}: "
        f"{number(sum(series.old))} before, {number(sum(series.new))} after ({series.change})"
    )
    head = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">').format(
        _PLOT_WIDTH, _PLOT_HEIGHT + 22, label
    )
    lines = [_line(values, low, span, name) for values, name in ((old, "before"), (new, "after"))]
    zero = _PLOT_HEIGHT - (0.0 - low) / span * (_PLOT_HEIGHT - 30) - 5
    text = Markup('<text x="{}" y="{}" text-anchor="{}">{}</text>')
    axis = Markup('<line x1="0" x2="{}" y1="{:.1f}" y2="{:.1f}" class="axis"/>').format(
        _PLOT_WIDTH, zero, zero
    )
    under = _PLOT_HEIGHT + 16
    axis += text.format(0, under, "start", model.cells[0])
    axis += text.format(_PLOT_WIDTH, under, "end", model.cells[-1])
    axis += text.format(_PLOT_WIDTH, 12, "end", f"{number(low)} to {number(high)}")
    return head + axis + Markup().join(lines) + Markup("</svg>")


def _summed(values: Sequence[Decimal], size: int) -> list[float]:
    return [float(sum(together)) for together in _together(values, size)]


def _line(values: Sequence[float], low: float, span: float, name: str) -> Markup:
    step = _PLOT_WIDTH / max(len(values) - 1, 1)
    points = [
        (at * step, _PLOT_HEIGHT - (value - low) / span * (_PLOT_HEIGHT - 30) - 5)
        for at, value in enumerate(values)
    ]
    if len(points) == 1:
        dot = Markup('<circle cx="{}" cy="{:.1f}" r="4" class="{}"/>')
        return dot.format(_PLOT_WIDTH // 2 + (4 if name == "after" else -4), points[0][1], name)
    drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return Markup('<polyline points="{}" class="{}"/>').format(drawn, name)


def number(value: Decimal | float) -> str:
    """Write a number for people: with commas, and few digits behind the point."""
    return f"{value:,.2f}".rstrip("0").rstrip(".")


def _instants(pair: Sequence[str]) -> tuple[float, float]:
    start, end = (datetime.fromisoformat(instant).timestamp() for instant in pair)
    return start, end


def _day(instant: float) -> str:
    return day_text(datetime.fromtimestamp(instant, UTC))


def _together(values: Sequence[_Value], size: int) -> Iterator[Sequence[_Value]]:
    return (values[at : at + size] for at in range(0, len(values), size))
