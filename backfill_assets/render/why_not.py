"""Explain why a cell is not in a plan, by the part of the request or of the rule that leaves it out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.instants import end_at, minute_text, start_at
from backfill_assets.planning.plan.plan import Build
from backfill_assets.planning.plan.request import Category
from backfill_assets.render.plan_words import reason_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from backfill_assets.intervals.instants import When
    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.planning.plan.plan import ModelPlan, Plan
    from backfill_assets.render.plan_words import Naming


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether a plan builds some cells, and why or why not.

    Attributes:
        cells: keys of the cells, as ranges.
        planned: whether they are in the plan after all.
        text: why, or why not.
    """

    cells: str
    planned: bool
    text: str


def why_not(plan: Plan, naming: Naming, model: str, cells: IntervalSet) -> tuple[Answer, ...]:
    """Explain for each of these cells why a plan does not build it, or state that it does.

    Args:
        plan: the plan.
        naming: how cells are named; it knows the model's cadence.
        model: whose cells.
        cells: whole cells of the model.
    """
    planned = plan.model(model)
    if planned is None:
        return (Answer(naming.ranges(model, cells), planned=False, text=_not_there(plan, model)),)
    parts = [*_planned(planned, cells), *_left_out(plan, naming, planned, cells)]
    return tuple(
        Answer(naming.ranges(model, part), planned=inside, text=text)
        for part, inside, text in parts
        if part
    )


def _not_there(plan: Plan, model: str) -> str:
    untouched = next((reader for reader in plan.untouched if reader.model == model), None)
    if untouched:
        return f"the model is left alone: {untouched.because}"
    if model in plan.removed:
        return "the model is not declared any more: its pointer is removed and nothing is built"
    noted = [note for note in plan.notes if note.startswith(f"{model}: ")]
    if noted:
        return f"the plan does nothing with the model: {'; '.join(noted)}"
    narrowed = (
        f" (only {', '.join(plan.request.select)} was asked for)" if plan.request.select else ""
    )
    return (
        "the plan does nothing with the model: its logic is what the environment runs, no planned "
        f"model that it reads changes a column that it uses, and no cell of it is missing{narrowed}"
    )


def _planned(planned: ModelPlan, cells: IntervalSet) -> Iterator[tuple[IntervalSet, bool, str]]:
    for work in planned.work:
        part = cells & work.cells
        yield part, True, f"it is in the plan: {reason_text(work)}"


def _left_out(
    plan: Plan, naming: Naming, planned: ModelPlan, cells: IntervalSet
) -> Iterator[tuple[IntervalSet, bool, str]]:
    rest = cells - planned.cells
    for part, text in _by_request(plan, naming, planned, rest):
        yield part, False, text
        rest -= part
    yield rest & planned.kept, False, _kept(planned)
    due = f"not due when the plan was made ({minute_text(plan.until)})"
    early = ", or before its source data begins (the plan's notes say where)" * bool(
        plan.request.start
    )
    yield rest - planned.kept, False, f"not required: outside the model's life, or {due}{early}"


def _by_request(
    plan: Plan, naming: Naming, planned: ModelPlan, cells: IntervalSet
) -> Iterator[tuple[IntervalSet, str]]:
    """Cells that the request itself leaves out.

    A new definition counts from the first cell that begins at its date or later; a requested range holds each cell
    that it touches, but for one that reaches past a strict end.
    """
    cadence, request = naming.cadences.get(planned.model), plan.request
    hull = cells.hull()
    if cadence is None or cadence.unit is Unit.WHOLE or hull is None:
        return

    def before(when: When) -> IntervalSet:
        return _cut(cells, hull.start, cadence.ceil(start_at(when, cadence.tz)))

    if request.cutoff:
        why = f" ({request.reason})" if request.reason else ""
        yield (
            before(request.cutoff),
            f"before the cutoff {request.cutoff}: it keeps the old definition{why}",
        )
    if request.effective_from:
        yield before(request.effective_from), f"before the effective date {request.effective_from}"
    if request.start:
        first = cadence.floor(start_at(request.start, cadence.tz))
        words = f"before {request.start}, where the requested range starts"
        yield _cut(cells, hull.start, first), words
    if request.end:
        end = end_at(request.end, cadence.tz)
        last = cadence.floor(end) if request.end_bounded else cadence.ceil(end)
        yield _cut(cells, last, hull.end), f"after {request.end}, where the requested range ends"


def _cut(cells: IntervalSet, start: datetime, end: datetime) -> IntervalSet:
    return cells.within(int(start.timestamp()), int(end.timestamp()))


def _kept(planned: ModelPlan) -> str:
    if planned.category is Category.FORWARD_ONLY:
        return "the change is forward-only: history stays as it was computed"
    if planned.build is Build.POINTER:
        return "only the pointer moves: what the cell holds does not change"
    return "ready, and nothing that it reads changes in this plan"
