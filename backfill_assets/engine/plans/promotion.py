"""Promote a plan: everything that it built becomes what its environment reads, at once.

    carry over what was published meanwhile -> nothing left, nothing moved, checks pass
    -> intent -> locks -> look again -> copy what really differs -> one transaction

The transaction is `Publications.publish`; before it nobody reads anything of the plan. Approvals will stand
in front of all this.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from backfill_assets.engine.batch.commit_turn import settle_tables
from backfill_assets.engine.plans.carrying_over import carried_over, lacking
from backfill_assets.engine.plans.kept_audits import check_kept, unaudited
from backfill_assets.engine.plans.leftover import (
    as_text,
    left_in,
    plan_unfinished,
)
from backfill_assets.engine.plans.operation import Operation
from backfill_assets.engine.plans.promotion_steps import concerned, steps_of
from backfill_assets.engine.plans.publishing import Prepared, finish_publication, publish
from backfill_assets.engine.plans.refusals import (
    plan_ended,
    refuse_outwaited,
    refuse_stale,
)
from backfill_assets.engine.plans.strategy_checks import check_strategies
from backfill_assets.engine.project.at_work import Phase
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.snapshots.publication import Intent, PublicationKind
from backfill_assets.snapshots.stored_plan import OPEN, PlanStatus
from backfill_assets.snapshots.timing import PROMOTE
from backfill_assets.state.publications import PinMovedError

if TYPE_CHECKING:
    from backfill_assets.engine.project.project import Project
    from backfill_assets.planning.plan.plan import Plan

_TRIES = 5


@dataclass(frozen=True, slots=True)
class Promoted:
    """What a promotion has published.

    Attributes:
        plan_id: the plan.
        number: of the publication, on the state's counter.
        appended: cells that the environment published after the plan was made, by model: computed
            with the new logic and appended after approval.
        removed: models that the environment does not run any more.
    """

    plan_id: str
    number: int
    appended: CellsByModel = field(default_factory=CellsByModel)
    removed: tuple[str, ...] = ()


class _NewCellsError(Exception):
    """The environment has published more cells while the locks were taken."""


def promote_plan(project: Project, plan: Plan, why: str = "") -> Promoted:
    """Publish what a plan has built.

    Raises:
        RequestError: it was never applied, or is promoted or abandoned already.
        RequestError: planned cells are not ready; nothing was published.
        RequestError: it waited for too long.
        StalePlanError: cells or columns that it reads or rewrites have moved.
        StrategyCheckError: a strategy's check fails.
        RequestError: an audit that the plan brings fails on cells that it keeps.
        SliceLeakError: rows outside the plan's slice would change.
    """
    return promote(Operation(project=project, plan=plan, why=why))


def promote(op: Operation) -> Promoted:
    """Publish what a plan has built, for somebody; see `promote_plan`."""
    finish_publication(op.environment(), op.plan_id)  # of somebody who died
    status, last = (
        op.store.plans.get(op.plan_id).status,
        op.store.publications.promotion(op.plan_id),
    )
    if status is PlanStatus.PROMOTED and last is not None and last.holder == op.run_id:
        return Promoted(op.plan_id, last.published or 0, removed=op.plan.removed)
    if status not in OPEN:
        raise plan_ended(op.plan_id, status)
    refuse_outwaited(op)
    since = op.at_work.seconds()
    appended = CellsByModel()
    for _ in range(_TRIES):
        settle_tables(op.environment(), concerned(op))
        appended |= carried_over(op)
        with op.at_work.at(Phase.CHECKING, "what was built"):
            _check(op)
            check_strategies(op)
            check_kept(op)
        try:
            number = publish(op.environment(), _intent(op), lambda: _prepared(op))
        except (_NewCellsError, PinMovedError):
            continue
        if appended:
            op.tell("appended", cells=_shown(op, appended), number=number)
        op.timed(PROMOTE, since)
        return Promoted(op.plan_id, number, appended, op.plan.removed)
    raise plan_unfinished(op.plan_id, as_text(op.workspace().graph, lacking(op)))


def _shown(op: Operation, cells: CellsByModel) -> dict[str, str]:
    return as_text(op.environment().graph, cells)


def _check(op: Operation) -> None:
    """Refuse unless the rule finds nothing left, in a world that is as the plan saw it."""
    refuse_stale(op)
    run = op.workspace()
    if left := left_in(run, op.plan):
        raise plan_unfinished(op.plan_id, as_text(run.graph, left))


def _intent(op: Operation) -> Intent:
    return Intent(
        plan_id=op.plan_id,
        environment=op.plan.environment,
        kind=PublicationKind.PROMOTE,
        holder=op.run_id,
        versions=concerned(op),
    )


def _prepared(op: Operation) -> Prepared:
    """Under the locks: look again, and decide what moves."""
    view = op.store.views.of(op.plan.environment)
    with op.at_work.at(Phase.CHECKING, "what came meanwhile"):
        if lacking(op) or unaudited(op):
            raise _NewCellsError
        _check(op)
    pointers = {name: one.pointer for name, one in view.models.items()}
    return Prepared(
        steps_of(op),
        op.plan.removed,
        op.who,
        op.why,
        seen=view.counter,
        pins={name: at.delta_version for name, at in pointers.items()},
        tables={
            layer.version: layer.delta_version
            for one in op.plan.models
            if one.model in pointers
            for layer in pointers[one.model].layers
        },
    )
