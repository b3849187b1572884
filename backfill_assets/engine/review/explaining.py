"""Explain a published number: what it was at two moments, and which publications made the difference."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.engine.review.cell_numbers import CellNumbers
from backfill_assets.engine.review.change_causes import Causes
from backfill_assets.engine.review.number_history import RecordedCells, steps_of
from backfill_assets.planning.review.number_changes import Explained, HistoryStep, explain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.intervals.interval import Interval
    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.model import Model
    from backfill_assets.planning.review.number_changes import HeldContent
    from backfill_assets.snapshots.state_view import UpstreamChange


@dataclass(frozen=True, slots=True)
class ExplainedNumber:
    """The answer to why a number changed.

    Attributes:
        explained: the number at both moments, and the parts of its difference.
        steps: the publications in between that the parts name by their place.
        unread: cells that can't be read as they were held at some moment, by why.
        is_published: whether some of the cells were published at the first moment, and at the second.
    """

    explained: Explained
    steps: tuple[HistoryStep, ...]
    unread: Mapping[str, IntervalSet]
    is_published: tuple[bool, bool]


def explain_number(
    run: RunContext,
    model: Model,
    cells: IntervalSet,
    column: str,
    between: tuple[datetime | None, datetime | None],
) -> ExplainedNumber:
    """Explain the sum of a column over some cells, or their rows, between two moments.

    Args:
        run: of the environment; nothing is written.
        model: whose cells.
        cells: whole cells.
        column: its name, or ``*`` for the number of rows.
        between: the two moments: what was published last by then counts. None: before everything, or now.

    Raises:
        RequestError: there is no such column, or it has no sum.
    """
    store = run.store.reading()
    recorded = RecordedCells(store, model.name, tuple(model.cadence.cells(cells)))
    every = steps_of(store, run.environment.name, recorded)
    start, end = _place(every, between[0], 0), _place(every, between[1], len(every))
    first: Mapping[Interval, HeldContent] = every[start - 1].held if start else {}
    steps = every[start:end]
    numbers = CellNumbers(run, model, column, recorded)
    numbers.read(
        each for contents in (first, *(step.held for step in steps)) for each in contents.items()
    )
    causes = Causes(store, run.graph, _source_changes(run))
    explained = explain(
        first,
        steps,
        numbers.number,
        lambda step, cell, old, new: causes.of_step(model.name, step, cell, old, new),
    )
    last = steps[-1].held if steps else first
    return ExplainedNumber(explained, steps, numbers.unread, (bool(first), bool(last)))


def _place(steps: Sequence[HistoryStep], moment: datetime | None, otherwise: int) -> int:
    """Give how many steps there were by a moment; clocks may have gone back, so the latest counts."""
    if moment is None:
        return otherwise
    latest = [step.at for step in steps]
    for at in range(1, len(latest)):
        latest[at] = max(latest[at], latest[at - 1])
    return bisect_right(latest, moment)


def _source_changes(run: RunContext) -> dict[str, tuple[UpstreamChange, ...]]:
    return {
        name: state.changes(None)
        for name, state in run.store.views.of(run.environment.name, only=()).sources.items()
    }
