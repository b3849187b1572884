"""Carry over: what an environment published meanwhile, computed with the logic of a workspace.

Before a promotion that is what was published after the plan was made, with the new logic; before an undo
what was published after the promotion, with the old logic. Cells that the plan had built before, and
whose published ones have read newer inputs since, are built again: nothing is ever published with older
inputs than it was published with before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from backfill_assets.engine.batch.commit_turn import reconcile_tables
from backfill_assets.engine.fill.fill import fill_cells
from backfill_assets.engine.plans.back_steps import changed_by_undo
from backfill_assets.engine.plans.building import built_in
from backfill_assets.engine.plans.promotion_steps import tables_to_lock
from backfill_assets.engine.plans.refusals import refuse_unfinished
from backfill_assets.engine.project.events import Failed, Waiting, events_of
from backfill_assets.errors import RequestError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.planning.plan.plan import Build
from backfill_assets.planning.plan.stages import Logic
from backfill_assets.planning.rule.lost_inputs import cells_reading_any
from backfill_assets.render.plan_words import ranges_by_model
from backfill_assets.snapshots.environment import workspace_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.engine.plans.operation import Operation
    from backfill_assets.engine.plans.outcome import Outcome
    from backfill_assets.engine.project.events import Event
    from backfill_assets.planning.plan.plan import ModelPlan
    from backfill_assets.planning.plan.stages import CarryOver
    from backfill_assets.snapshots.state_view import StateView


def not_carried_over(
    plan_id: str, cells: Mapping[str, str], errors: tuple[str, ...]
) -> RequestError:
    """List the cells that were published after a plan was made and lack in its workspace."""
    return RequestError(
        found=f"cells were published after plan {plan_id} was made, and can't be carried over: "
        f"{_listed(cells, errors)}. Nothing was published",
        do="see `backfill batches`, then promote again",
    )


def not_carried_back(
    plan_id: str, cells: Mapping[str, str], errors: tuple[str, ...]
) -> RequestError:
    """List the cells that were published after a plan was promoted and lack in the tables before it."""
    return RequestError(
        found=f"cells were published after plan {plan_id} was promoted, and can't be computed with the "
        f"logic before it: {_listed(cells, errors)}. Nothing was changed",
        do=f"see `backfill batches`, then undo again; `backfill rollback {plan_id}` takes these cells back too",
    )


def _listed(cells: Mapping[str, str], errors: tuple[str, ...]) -> str:
    listed = "; ".join(f"{model}: {ranges}" for model, ranges in cells.items())
    return f"{listed} ({errors[0]})" if errors else listed


def carry_over(op: Operation, stage: CarryOver, so_far: Outcome) -> Outcome:
    """Compute what was published meanwhile.

    Raises:
        RequestError: some of it can't be computed, or fails its audits; or the plan was never built to its
            end.
    """
    if stage.logic is Logic.OLD:
        carried = _carried_back(op)
    else:
        carried = _carried_over(op)
        refuse_unfinished(op)
    return replace(so_far, carried=so_far.carried | carried)


def _carried_over(op: Operation) -> CellsByModel:
    """Compute in the plan's workspace what was published meanwhile, and give what was computed.

    Planned cells that read these are built again as well, where the rule says so, and so are cells that were
    carried over before; no other cell that is built is touched, so late rows of its source do not come in unseen.
    """
    reconcile_tables(op.environment(), tables_to_lock(op))
    cells = remaining = cells_to_carry_over(op)
    if not cells:
        return cells
    run = op.workspace()
    unbuilt = run.left_of(op.plan)  # what was never built is not carried over
    carried = CellsByModel()
    events: dict[str, tuple[Event, ...]] = {}
    while cells:
        new_events = fill_cells(run, cells, op.project.listener)
        events = {
            name: (*events.get(name, ()), *new_events.get(name, ())) for name in events | new_events
        }
        carried |= cells
        remaining = cells_to_carry_over(op)
        cells = (run.left_of(op.plan) - unbuilt | remaining) - carried
    if remaining:
        raise not_carried_over(
            op.plan_id, ranges_by_model(run.graph, remaining), what_lacked(events)
        )
    return carried


def _carried_back(op: Operation) -> CellsByModel:
    """Compute in the tables that were read before the plan what was published since.

    Returns:
        All that was carried back, also for an undo that was refused.
    """
    if cells := cells_to_carry_back(op):
        run = op.old_workspace()
        events = fill_cells(run, cells, op.project.listener)
        if remaining := cells_to_carry_back(op):
            raise not_carried_back(
                op.plan_id, ranges_by_model(run.graph, remaining), what_lacked(events)
            )
    return built_in(op.store, op.plan, workspace_name(op.undo_id))


def carried_into(op: Operation) -> CellsByModel:
    """Give all that was carried over into a plan's workspace, also before a promotion that was refused."""
    planned = CellsByModel({each.model: each.cells for each in op.plan.models})
    return built_in(op.store, op.plan, workspace_name(op.plan_id)) - planned


def what_lacked(events: Mapping[str, tuple[Event, ...]]) -> tuple[str, ...]:
    """Say why cells were not built: what failed first, then what they wait for."""
    failed = [event.error for event in events_of(Failed, events)]
    waits = [f"{event.model} waits for {event.waits_for}" for event in events_of(Waiting, events)]
    return (*failed, *dict.fromkeys(waits))


def cells_to_carry_over(op: Operation) -> CellsByModel:
    """Give the cells that the environment published meanwhile and that need work, by model.

    A planned cell is among them when the published one has read newer inputs than the workspace's. Of the
    others, what is late or owed where the environment answers for it is no work of this plan.
    """
    run = op.workspace()
    view, published = run.view(), op.store.views.of(op.plan.environment)
    lacking = CellsByModel()
    for planned in op.plan.models:
        if not planned.built_apart:
            continue
        model = run.graph.model(planned.model)
        since = model.cadence.snap_out(_published(published, planned, op.plan.seen))
        work = run.work(planned.model, view)
        left = work.gaps | work.stale_by_models | (work.owed & view.own(planned.model))
        cells = ((left & since) - planned.cells) | work.older
        lacking |= {planned.model: cells}
    return lacking


def cells_to_carry_back(op: Operation) -> CellsByModel:
    """Give the cells that are published now and that the old tables lack, by model.

    What reads cells that the undo takes away, or whose rows it brings back, is left out: it would follow from what is
    published no more. It is a gap afterwards, which a run fills.
    """
    name = workspace_name(op.undo_id)
    if not op.store.environments.exists(name):
        return CellsByModel()
    run, published = op.old_workspace(), op.store.views.of(op.plan.environment)
    view, own = run.view(), op.store.environments.own_pointers(name)
    carried, left_out = CellsByModel(), changed_by_undo(op)
    for name in (each for each in run.graph.order if each in own):
        model = run.graph.models[name]
        gaps = run.work(name, view).gaps & model.cadence.snap_out(published.ready(name))
        while more := (cells_reading_any(run.graph, model, left_out) & gaps) - left_out[name]:
            left_out |= {name: more}  # and so on, where a model reads its own earlier cells
        carried |= {name: gaps - left_out[name]}
    return carried


def _published(view: StateView, planned: ModelPlan, seen: int) -> IntervalSet:
    """Give what the readers must find too: of a new table all that a protected environment has.

    Else what was built since; a plan of another one may be about a window alone.
    """
    if planned.build is Build.NEW_VERSION and view.environment.protected:
        return view.ready(planned.model)
    state = view.models.get(planned.model)
    return IntervalSet.of(
        run.interval for run in (state.runs if state else ()) if run.built_at > seen
    )
