"""Write the map of models over time: as lines for a terminal, and as JSON values."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from backfill_assets.intervals.instants import day_text, minute_text
from backfill_assets.intervals.interval import instant_of
from backfill_assets.planning.review.history_map import MANY, SIGNS, line_of, span_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.planning.review.history_map import Made, MadeBy, MappedModel
    from backfill_assets.render.plan_words import Naming

_SHOWN = 8
_NARROWEST = 20


def map_lines(models: Sequence[MappedModel], naming: Naming, width: int) -> Iterator[str]:
    """Yield the axis, a line per model, what the signs mean, and what made the cells.

    Args:
        models: the lines.
        naming: how cells are named.
        width: of the terminal.
    """
    span = span_of(models)
    longest = max((len(model.model) for model in models), default=0)
    room = max(width - longest - 2, _NARROWEST)
    if span is not None:
        first, last = (day_text(instant_of(at)) for at in span)
        yield f"{'':{longest}}  {first}{last:>{room - len(first)}}"
    for model in models:
        line = line_of(model, span or (0, 1), room)
        yield f"{model.model:<{longest}}  {line}".rstrip()
    yield ""
    has_many = any(made.letter == MANY for model in models for made in model.made)
    for sign, meaning in SIGNS:
        if has_many or sign != MANY:
            yield f"{sign:<5}  {meaning}"
    for model in models:
        yield ""
        yield model.model
        yield from (f"  {text}" for text in model_texts(model, naming))


def model_texts(model: MappedModel, naming: Naming) -> Iterator[str]:
    """Yield what made the cells of a model, and which are empty, missing, stale or kept."""
    for made in model.made:
        by = (f"{naming.ranges(model.model, each.cells)} {by_text(each)}" for each in made.by)
        yield f"{made.letter} {made_text(made)}: {'; '.join(by)}"
    for word, cells in _states(model):
        if cells:
            yield f"{word}: {naming.ranges(model.model, cells)}"
    if model.cutoff is not None:
        yield f"cutoff: {model.cutoff.words(model.model)}"
    if model.is_removed:
        yield "removed: it is not declared any more, and nothing fills it"
    if not model.cells:
        yield "nothing is published, and nothing is required yet"


def made_text(made: Made) -> str:
    """Name a snapshot: its id, when it came, and the plan that brought it."""
    since = f", since {minute_text(made.since)}" if made.since else ""
    by = f" by plan {made.plan_id}" if made.plan_id else ""
    return f"snapshot {made.fingerprint[:_SHOWN]}{since}{by}"


def by_text(by: MadeBy) -> str:
    """Say for which plan cells were built."""
    if by.plan_id is None:
        return "filled without a plan"
    return f"built for plan {by.plan_id}" + (f" ({by.reason})" if by.reason else "")


def map_json(models: Sequence[MappedModel], naming: Naming) -> list[dict[str, Any]]:
    """Give the map as JSON values; no range is left out."""

    def ranges(model: MappedModel, cells: IntervalSet) -> list[str]:
        return naming.all_ranges(model.model, cells)

    return [
        {
            "model": model.model,
            "snapshots": [
                {
                    "letter": made.letter,
                    "fingerprint": made.fingerprint,
                    "since": made.since.isoformat() if made.since else None,
                    "plan_id": made.plan_id,
                    "cells": ranges(model, made.cells),
                    "by": [
                        {
                            "plan_id": each.plan_id,
                            "reason": each.reason,
                            "cells": ranges(model, each.cells),
                        }
                        for each in made.by
                    ],
                }
                for made in model.made
            ],
            **{word: ranges(model, cells) for word, cells in _states(model)},
            "removed": model.is_removed,
            "cutoff": None if model.cutoff is None else asdict(model.cutoff),
        }
        for model in models
    ]


def _states(model: MappedModel) -> tuple[tuple[str, IntervalSet], ...]:
    return (("empty", model.empty), ("missing", model.missing), ("stale", model.stale))
