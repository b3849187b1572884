"""Build the cells of a plan with the one write path: gaps where readers are, the rest in its workspace."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING

from backfill_assets.engine.fill.fill import fill_cells
from backfill_assets.engine.project.at_work import Phase
from backfill_assets.engine.project.events import Committed, Failed, events_of
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.planning.plan.stages import BuildCanaries, BuildCells, FillGaps
from backfill_assets.render.plan_words import ranges_by_model
from backfill_assets.snapshots.batch import EMPTY
from backfill_assets.snapshots.stored_plan import PlanEventKind, PlanStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.engine.plans.operation import Operation
    from backfill_assets.engine.plans.outcome import Outcome
    from backfill_assets.engine.project.events import Event
    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.state.store import Store


def fill_gaps(op: Operation, stage: FillGaps, so_far: Outcome) -> Outcome:
    """Fill the plan's gaps; what was filled before is left alone."""
    run = run_for_stage(op, stage)
    events, figures = _filled(op, run, stage.cells)
    view = run.view()
    remaining = CellsByModel(
        {name: cells - view.ready(name) for name, cells in stage.cells.items()}
    )
    event = PlanEventKind.INCOMPLETE if remaining else PlanEventKind.FILLED
    op.tell(event, **figures)
    status = PlanStatus.APPLYING if remaining else so_far.status
    return replace(so_far, status=status, events={**so_far.events, **events}, left=remaining)


def build_cells(op: Operation, stage: BuildCells, so_far: Outcome) -> Outcome:
    """Build the plan's cells in its workspace; what was built before is left alone.

    Raises:
        RequestError: a model was edited meanwhile.
    """
    run = run_for_stage(op, stage)
    events, figures = _filled(op, run, stage.cells)
    with op.at_work.at(Phase.CHECKING, "what was built"):
        if run.frozen is not None:
            run.frozen.check()
        remaining = run.left_of(op.plan)
        spared = {} if remaining else _spared(run, op.plan)
    if remaining or figures["batches"] or not _is_told(op):
        kind = PlanEventKind.INCOMPLETE if remaining else PlanEventKind.BUILT
        op.tell(kind, **figures, spared=spared)
    status = PlanStatus.APPLYING if remaining else so_far.status
    events = {**so_far.events, **events}
    return replace(so_far, status=status, events=events, left=remaining, spared=spared)


def _is_told(op: Operation) -> bool:
    """Whether a plan's history says that it is built, and nothing since that cells are left."""
    kinds = {PlanEventKind.BUILT, PlanEventKind.INCOMPLETE}
    told = [event.event for event in op.store.plans.events(op.plan_id) if event.event in kinds]
    return told[-1:] == [PlanEventKind.BUILT]


def build_canaries(op: Operation, stage: BuildCanaries, so_far: Outcome) -> Outcome:
    """Build the plan's canaries in its workspace; where all are built and were compared, nothing happens.

    Those that a process has built which died before it compared them are compared now.

    Raises:
        RequestError: a model was edited meanwhile.
    """
    run = run_for_stage(op, stage)
    todo = run.left_of(op.plan) & stage.cells
    if not todo and were_compared(op):
        return so_far
    events, figures = _filled(op, run, todo)
    with op.at_work.at(Phase.CHECKING, "what was built"):
        if run.frozen is not None:
            run.frozen.check()
        remaining = run.left_of(op.plan)
    cells = ranges_by_model(run.graph, todo - remaining)
    op.tell(PlanEventKind.CANARIES, **figures, cells=cells)
    return replace(
        so_far,
        status=PlanStatus.APPLYING,
        events={**so_far.events, **events},
        left=remaining,
        canaries=todo if remaining & stage.cells else stage.cells,
    )


def were_compared(op: Operation) -> bool:
    """Whether the canaries of a plan were compared, once they were built."""
    events = op.store.plans.events(op.plan_id)
    return any(event.event == PlanEventKind.CANARIES_COMPARED for event in events)


def run_for_stage(op: Operation, stage: FillGaps | BuildCanaries | BuildCells) -> RunContext:
    """Open a run where a stage builds: in the environment, or in the plan's workspace."""
    run = op.environment() if isinstance(stage, FillGaps) else op.workspace()
    fills = EMPTY if op.plan.request.empty else run.fills
    return replace(run, fills=fills)


def _filled(
    op: Operation, run: RunContext, cells: Mapping[str, IntervalSet]
) -> tuple[dict[str, tuple[Event, ...]], dict[str, object]]:
    """Fill cells, and count what was built, to be held against the estimate."""
    began = monotonic()
    events = fill_cells(run, cells, op.project.listener)
    seconds = monotonic() - began
    done = events_of(Committed, events)
    figures = {
        "batches": len(done),
        "failed": len(events_of(Failed, events)),
        "rows": sum(event.rows for event in done),
        "batch_seconds": sum(event.timing.total for event in done),
        "seconds": seconds,
    }
    return events, figures


def _spared(run: RunContext, plan: Plan) -> dict[str, int]:
    """Count the planned cells that need not be built: what they read came out as it was, by model."""
    view = run.view()
    spared = {
        planned.model: run.graph.model(planned.model).cadence.count(
            planned.cells - view.own(planned.model)
        )
        for planned in plan.models
        if planned.built_apart
    }
    return {name: count for name, count in spared.items() if count}


def built_in(store: Store, plan: Plan, environment: str | None = None) -> CellsByModel:
    """Give every cell that a plan's batches committed, by model: those carried over into it as well.

    Args:
        store: the state.
        plan: whose batches.
        environment: which the batches were in; None for any.
    """
    built: defaultdict[str, IntervalSet] = defaultdict(IntervalSet.empty)
    for row in store.batches.of_plan(plan.plan_id):
        if row.is_committed and environment in {None, row.environment}:
            built[row.model] |= row.stretches
    return CellsByModel(built)
