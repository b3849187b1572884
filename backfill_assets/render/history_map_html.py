"""Write the map of models over time as one HTML file, without network or JavaScript."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from backfill_assets.intervals.instants import day_text, minute_text
from backfill_assets.intervals.interval import instant_of
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.planning.review.history_map import span_of
from backfill_assets.render.history_map import by_text, made_text, model_texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from backfill_assets.planning.review.history_map import MappedModel
    from backfill_assets.render.plan_words import Naming

_COLOURS = ("#1b4f72", "#7d3c08", "#145a32", "#5b2c6f", "#78281f", "#1a5276", "#4d5656", "#6e2c00")
"""Dark enough for white letters."""

_STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem;
  color: #1c1c1c; background: #fff; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.05rem; margin-bottom: .2rem; }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; font-weight: 600; padding-right: 1rem; white-space: nowrap; vertical-align: top; }
td.strip { width: 100%; padding: .15rem 0; }
.line { position: relative; height: 1.5rem; background: #f1f1f1; overflow: hidden; }
.line span { position: absolute; top: 0; bottom: 0; min-width: 2px; color: #fff; font-weight: 600;
  overflow: hidden; text-align: center; box-sizing: border-box; border-right: 1px solid #fff; }
.line .missing { background: #fff; color: #8a1c1c; border: 1px dashed #8a1c1c; }
.line .empty { background: #fff; color: #444; border: 1px solid #777; }
.line .stale { background: repeating-linear-gradient(45deg, transparent 0 4px, #fff 4px 7px); opacity: .75; }
.line .cutoff { width: 4px; min-width: 4px; background: #000; border: 0; z-index: 2; }
.axis { display: flex; justify-content: space-between; color: #444; }
dl.signs { display: grid; grid-template-columns: max-content auto; gap: .1rem 1rem; } dd { margin: 0; }
@media print { body { margin: 0; } .line span { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""


def map_html(models: Sequence[MappedModel], naming: Naming, environment: str, at: datetime) -> str:
    """Write the page.

    Args:
        models: the lines.
        naming: how cells are named.
        environment: whose map it is.
        at: when it was drawn.
    """
    title = f"What made the history of {environment}"
    return "\n".join(
        (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>",
            f"<h1>{escape(title)}</h1>",
            f"<p>Each letter is a snapshot of its model, the oldest A. Drawn {minute_text(at)}.</p>",
            *_table(models, naming),
            *_signs(),
            *_details(models, naming),
            "</main>\n</body>\n</html>\n",
        )
    )


def _table(models: Sequence[MappedModel], naming: Naming) -> Iterator[str]:
    span = span_of(models)
    first, last = (day_text(instant_of(at)) for at in span) if span else ("", "")
    yield "<table>\n<caption hidden>One row per model; time from left to right</caption>"
    yield '<thead><tr><th scope="col">model</th><th scope="col">'
    yield f'<div class="axis"><span>{first}</span><span>{last}</span></div></th></tr></thead>\n<tbody>'
    for model in models:
        label = escape(f"{model.model}: {'; '.join(model_texts(model, naming))}", quote=True)
        yield f'<tr><th scope="row">{escape(model.model)}</th><td class="strip">'
        yield f'<div class="line" role="img" aria-label="{label}">'
        yield from _spans(model, naming, span or (0, 1))
        yield "</div></td></tr>"
    yield "</tbody>\n</table>"


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


def _spans(model: MappedModel, naming: Naming, span: tuple[int, int]) -> Iterator[str]:
    for piece in _pieces(model):
        for start, end in piece.cells.pairs():
            left, right = _percent(start, span), _percent(end, span)
            if model.is_whole:
                left, right = 0.0, 100.0
            named = naming.ranges(model.model, IntervalSet((start, end)))
            title = escape(f"{named}: {piece.text}", quote=True)
            style = f"{piece.colour}left:{left:.3f}%;width:{right - left:.3f}%"
            yield f'<span class="{piece.kind}" style="{style}" title="{title}">{piece.sign}</span>'
    if model.cutoff is not None and model.boundary is not None:
        title = escape(f"cutoff: {model.cutoff.words(model.model)}", quote=True)
        left = _percent(model.boundary, span)
        yield f'<span class="cutoff" style="left:{left:.3f}%" title="{title}"></span>'


def _percent(at: int, span: tuple[int, int]) -> float:
    start, end = span
    return 100 * min(max(at - start, 0), end - start) / (end - start)


def _signs() -> Iterator[str]:
    yield '<h2>Signs</h2>\n<dl class="signs">'
    yield "<dt>A B C</dt><dd>the snapshot that made the cells</dd>"
    yield "<dt>stripes</dt><dd>stale cells</dd>"
    yield "<dt>0, framed</dt><dd>recorded as empty, not computed</dd>"
    yield "<dt>., dashed frame</dt><dd>missing cells</dd>"
    yield "<dt>black bar</dt><dd>cutoff: the cells before it keep the old definition</dd>\n</dl>"


def _details(models: Sequence[MappedModel], naming: Naming) -> Iterator[str]:
    for model in models:
        yield f"<h2>{escape(model.model)}</h2>\n<ul>"
        yield from (f"<li>{escape(text)}</li>" for text in model_texts(model, naming))
        yield "</ul>"
