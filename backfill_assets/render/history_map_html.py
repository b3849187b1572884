"""Write the map of models over time as one HTML file, without network or JavaScript."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.intervals.instants import day_text, minute_text
from backfill_assets.intervals.interval import instant_of
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.planning.review.history_map import span_of
from backfill_assets.render.history_map import by_text, made_text, model_texts
from backfill_assets.render.templates import templates

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from backfill_assets.planning.review.history_map import MappedModel
    from backfill_assets.render.plan_words import Naming

_COLOURS = ("#1b4f72", "#7d3c08", "#145a32", "#5b2c6f", "#78281f", "#1a5276", "#4d5656", "#6e2c00")
"""Dark enough for white letters."""


def map_html(models: Sequence[MappedModel], naming: Naming, environment: str, at: datetime) -> str:
    """Write the page.

    Args:
        models: the lines.
        naming: how cells are named.
        environment: whose map it is.
        at: when it was drawn.
    """
    span = span_of(models)
    first, last = (day_text(instant_of(at)) for at in span) if span else ("", "")
    rows = [
        (model.model, [*model_texts(model, naming)], [*_marks(model, naming, span or (0, 1))])
        for model in models
    ]
    page = templates().get_template("history_map.html.jinja")
    title = f"What made the history of {environment}"
    return page.render(title=title, at=minute_text(at), first=first, last=last, rows=rows) + "\n"


@dataclass(frozen=True, slots=True)
class _Piece:
    """Cells that are drawn alike."""

    cells: IntervalSet
    kind: str
    text: str
    sign: str = ""
    colour: str = ""


def _pieces(model: MappedModel) -> Iterator[_Piece]:
    for at, made in enumerate(model.made):
        colour = f"background:{_COLOURS[at % len(_COLOURS)]};"
        for by in made.by:
            text = f"{made.letter}, {made_text(made)}; {by_text(by)}"
            yield _Piece(by.cells, "made", text, made.letter, colour)
    yield _Piece(model.stale, "stale", "stale")
    yield _Piece(model.empty, "empty", "recorded as empty", "0")
    yield _Piece(model.missing, "missing", "missing", ".")


@dataclass(frozen=True, slots=True)
class _Mark:
    """One stretch of a line."""

    kind: str
    style: str
    title: str
    sign: str = ""


def _marks(model: MappedModel, naming: Naming, span: tuple[int, int]) -> Iterator[_Mark]:
    for piece in _pieces(model):
        for start, end in piece.cells.pairs():
            left, right = _percent(start, span), _percent(end, span)
            if model.is_whole:
                left, right = 0.0, 100.0
            named = naming.ranges(model.model, IntervalSet((start, end)))
            style = f"{piece.colour}left:{left:.3f}%;width:{right - left:.3f}%"
            yield _Mark(piece.kind, style, f"{named}: {piece.text}", piece.sign)
    if model.cutoff is not None and model.boundary is not None:
        left = _percent(model.boundary, span)
        yield _Mark("cutoff", f"left:{left:.3f}%", f"cutoff: {model.cutoff.words(model.model)}")


def _percent(at: int, span: tuple[int, int]) -> float:
    start, end = span
    return 100 * min(max(at - start, 0), end - start) / (end - start)
