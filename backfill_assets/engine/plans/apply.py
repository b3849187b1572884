"""Apply a plan: build its cells where nobody reads, with the one write path, and say what is left.

    refuse -> fill gaps in the environment -> open the workspace -> fill in it -> built

Applying again goes on with exactly what is left. An unprotected environment is promoted at once; a
protected one waits for `promote`: the place where approvals will stand.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from backfill_assets.engine.fill.fill import fill_cells
from backfill_assets.engine.plans.kept_audits import audit_kept, refuse_failing
from backfill_assets.engine.plans.leftover import BUILT_APART, left_in
from backfill_assets.engine.plans.operation import Operation
from backfill_assets.engine.plans.promotion import promote
from backfill_assets.engine.plans.refusals import refuse
from backfill_assets.engine.plans.strategy_checks import refusal
from backfill_assets.engine.plans.workspace import open_workspace, restated, scope
from backfill_assets.engine.project.at_work import Phase
from backfill_assets.engine.project.events import Committed, Failed
from backfill_assets.engine.project.stopwatch import Stopwatch
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.planning.plan.plan import Build
from backfill_assets.snapshots.batch import EMPTY, GAP
from backfill_assets.snapshots.stored_plan import OPEN, PlanStatus
from backfill_assets.snapshots.timing import APPLY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.engine.plans.promotion import Promoted
    from backfill_assets.engine.project.events import Event
    from backfill_assets.engine.project.project import Project
    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.models.audit_result import AuditResult
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.state.store import Store


@dataclass(frozen=True, slots=True)
class Applied:
    """How far a plan has come.

    Attributes:
        plan_id: the plan.
        status: ``applying`` when something is left, ``built``, or ``promoted``.
        events: what happened, by model.
        left: the planned cells that still need work, by model.
        promoted: what was published; None where that still waits.
        audited: what audits that the plan changes found in published cells that it keeps, by model;
            while a blocking one fails, the plan is not promoted.
        refused: why its strategies' checks would refuse the promotion; empty if they would not, or
            if they were not asked yet.
    """

    plan_id: str
    status: PlanStatus
    events: Mapping[str, tuple[Event, ...]] = field(default_factory=dict[str, "tuple[Event, ...]"])
    left: CellsByModel = field(default_factory=CellsByModel)
    promoted: Promoted | None = None
    audited: Mapping[str, tuple[AuditResult, ...]] = field(
        default_factory=dict[str, "tuple[AuditResult, ...]"]
    )
    refused: str = ""

    @property
    def failed(self) -> tuple[Failed, ...]:
        """Every batch that failed."""
        return tuple(
            one for told in self.events.values() for one in told if isinstance(one, Failed)
        )


def apply_plan(project: Project, plan: Plan, why: str = "") -> Applied:
    """Build what a plan says, and on an unprotected environment publish it.

    Raises:
        RequestError: it is too old.
        RequestError: it was applied, and then waited for too long.
        RequestError: it is not the plan that the state keeps under its id.
        RequestError: it is promoted, abandoned or taken back already.
        RequestError: a model was edited since; also when it is edited meanwhile.
        StalePlanError: cells or columns that it reads or rewrites have moved.
        PlanConflictError: another plan is at work on the same cells.
        RequestError: an unprotected environment keeps cells that fail the plan's new audits.
    """
    return applied(Operation(project=project, plan=plan, why=why))


def applied(op: Operation) -> Applied:
    """Apply a plan for somebody; see `apply_plan`."""
    since = op.at_work.seconds()
    with op.at_work.at(Phase.CHECKING, f"plan {op.plan_id}"):
        begin(op)
    watch, plan = Stopwatch(), op.plan
    events = _fill_gaps(op)
    if publishes_nothing(plan):
        return _filled(op, events, since)
    open_workspace(op, op.environment())
    run = replace(op.workspace(), until=plan.until, fills=_fills(plan))
    events |= _run(
        op, run, {one.model: one.cells for one in plan.models if one.build in BUILT_APART}
    )
    watch.lap("compute")
    with op.at_work.at(Phase.CHECKING, "what was built"):
        if run.frozen is not None:
            run.frozen.check()
        left = left_in(run, plan)
        audited = {} if left else audit_kept(op)
        spared = {} if left else spared_in(op)
    op.tell(
        "built" if not left else "stopped",
        **_figures(events),
        seconds=watch.timing().compute,
        spared=spared,
    )
    op.timed(APPLY, since)
    if left:
        return Applied(plan.plan_id, PlanStatus.APPLYING, events, left)
    op.store.plans.set_plan_status(plan.plan_id, OPEN, PlanStatus.BUILT)
    if plan.protected:
        # While Spark is warm: what is compared here is not compared again by `promote`.
        refused = refusal(op)
        return Applied(plan.plan_id, PlanStatus.BUILT, events, audited=audited, refused=refused)
    refuse_failing(op, audited)
    return Applied(plan.plan_id, PlanStatus.PROMOTED, events, promoted=promote(op), audited=audited)


def begin(op: Operation) -> None:
    """Refuse what can't be applied, and say that the plan is at work; again changes nothing.

    Raises:
        BackfillAssetsError: as `apply_plan` says.
    """
    refuse(op)
    if op.store.plans.get(op.plan_id).status is PlanStatus.PROPOSED:
        _owe_everywhere(op)  # before: whoever resumes a plan that is applied doesn't ask for it
        op.store.plans.set_plan_status(op.plan_id, PlanStatus.PROPOSED, PlanStatus.APPLYING)
        op.tell("applying")


def spared_in(op: Operation) -> dict[str, int]:
    """Count the planned cells that need not be built: what they read came out as it was, by model."""
    run = op.workspace()
    view = run.view()
    spared = {
        one.model: run.graph.model(one.model).cadence.count(one.cells - view.own(one.model))
        for one in op.plan.models
        if one.build in BUILT_APART
    }
    return {name: count for name, count in spared.items() if count}


def built_in(store: Store, plan: Plan) -> CellsByModel:
    """Give every cell that a plan's batches committed, by model: those carried over into it as well."""
    found = {
        one.model: IntervalSet.union_all(
            row.stretches
            for row in store.batches.latest(model=one.model)
            if (row.plan_id, row.status) == (plan.plan_id, "committed")
        )
        for one in plan.models
    }
    return CellsByModel(found)


def publishes_nothing(plan: Plan) -> bool:
    """Whether a plan only fills gaps: it needs no workspace."""
    return not scope(plan.models) and not plan.removed


def _owe_everywhere(op: Operation) -> None:
    """Mark what is restated in every version, if that was asked: other environments owe it too."""
    if not op.plan.request.restate_all_snapshots:
        return
    for one in op.plan.models:
        if cells := restated(one):
            reason = op.plan.request.reason or f"restated by plan {op.plan_id}"
            op.store.environments.mark_owed_everywhere(one.model, cells, reason, plan_id=op.plan_id)


def _fill_gaps(op: Operation) -> dict[str, tuple[Event, ...]]:
    """Fill what nobody has published in the environment's own tables, by the ordinary run."""
    cells = {one.model: one.cells for one in op.plan.models if one.build is Build.GAP_FILL}
    if not cells:
        return {}
    run = replace(op.environment(), until=op.plan.until, fills=_fills(op.plan))
    return _run(op, run, cells)


def _fills(plan: Plan) -> str:
    """Say why gaps are filled: to hold their rows, or to hold none."""
    return EMPTY if plan.request.empty else GAP


def _run(
    op: Operation, run: RunContext, cells: Mapping[str, IntervalSet]
) -> dict[str, tuple[Event, ...]]:
    at_once = op.project.batches_at_once
    return fill_cells(run, cells, op.project.listener, batches_at_once=at_once)


def _filled(
    op: Operation, events: dict[str, tuple[Event, ...]], since: Mapping[str, float]
) -> Applied:
    """End a plan that only fills gaps: they are published as soon as they are committed."""
    plan, view = op.plan, op.environment().view()
    left = CellsByModel({one.model: one.cells - view.ready(one.model) for one in plan.models})
    op.tell("filled" if not left else "stopped", **_figures(events))
    op.timed(APPLY, since)
    if left:
        return Applied(plan.plan_id, PlanStatus.APPLYING, events, left)
    op.store.plans.set_plan_status(plan.plan_id, OPEN, PlanStatus.PROMOTED)
    return Applied(plan.plan_id, PlanStatus.PROMOTED, events)


def _figures(events: Mapping[str, tuple[Event, ...]]) -> dict[str, object]:
    """Count what an apply has done, to be held against the estimate."""
    done = [one for told in events.values() for one in told if isinstance(one, Committed)]
    failed = [one for told in events.values() for one in told if isinstance(one, Failed)]
    return {
        "batches": len(done),
        "failed": len(failed),
        "rows": sum(one.rows for one in done),
        "batch_seconds": sum(one.timing.total for one in done),
    }
