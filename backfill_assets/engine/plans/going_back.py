"""Go back: abandon what was never published, roll a promotion back, or undo a plan's cells alone.

Rolling back brings every model of the plan to where it was; undoing brings back the plan's cells and
keeps the days that were written since. Both are publications: one transaction, locks, history. What
was built on the data that goes is stale afterwards, by the one rule.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from backfill_assets.engine.batch.commit_turn import settle_tables
from backfill_assets.engine.plans.back_steps import is_dropped, steps_back
from backfill_assets.engine.plans.carrying_over import not_carried_over
from backfill_assets.engine.plans.leftover import as_text
from backfill_assets.engine.plans.operation import Operation
from backfill_assets.engine.plans.publishing import Prepared, finish_publication, publish
from backfill_assets.engine.plans.undone_versions import (
    carried_back,
    drop_carried,
    lacking_back,
    open_old_versions,
)
from backfill_assets.engine.plans.way_back import (
    PROMISE,
    moves_to_take_back,
    nothing_to_take_back,
    refuse_after_promise,
    refuse_expired,
    refuse_later,
)
from backfill_assets.errors import RequestError
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.snapshots.publication import Intent, PublicationKind
from backfill_assets.snapshots.stored_plan import OPEN, PlanStatus
from backfill_assets.warehouse.spark.spark_errors import PinGoneError

if TYPE_CHECKING:
    from datetime import timedelta

    from backfill_assets.engine.project.project import Project
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.snapshots.publication import PointerMove


class _NewCellsError(Exception):
    """The environment has published more cells while the locks were taken."""


@dataclass(frozen=True, slots=True)
class WentBack:
    """What going back has published.

    Attributes:
        plan_id: the plan that was taken back.
        number: of the publication.
        carried: cells that were published since, and computed with the old logic, by model.
    """

    plan_id: str
    number: int
    carried: CellsByModel = field(default_factory=CellsByModel)


def abandon_plan(project: Project, plan: Plan, why: str = "") -> None:
    """Give up a plan that is not published; what it built is left for collection.

    Raises:
        RequestError: it is promoted.
        CellsClaimedError: a live batch is building in its workspace.
    """
    op, store = Operation(project=project, plan=plan, why=why), project.store
    finish_publication(op.environment(), plan.plan_id)
    status = store.plans.get(plan.plan_id).status
    if status not in (PlanStatus.PROPOSED, *OPEN, PlanStatus.ABANDONED):
        raise RequestError(
            found=f"plan {plan.plan_id} is {status.value} and can't be abandoned any more",
            do=f"`backfill rollback {plan.plan_id}` brings back what was published before it",
        )
    store.environments.drop_workspace(plan.plan_id)
    if status is PlanStatus.ABANDONED:
        return
    store.plans.set_plan_status(plan.plan_id, (PlanStatus.PROPOSED, *OPEN), PlanStatus.ABANDONED)
    store.environments.drop_workspace(plan.plan_id)  # of somebody who opened it in between
    op.tell("abandoned")


def rollback_plan(
    project: Project, plan: Plan, promise: timedelta = PROMISE, why: str = ""
) -> WentBack:
    """Bring every model of a plan back to where it was before its promotion.

    Days that were published since are missing afterwards; the next run fills them with the old logic.

    Raises:
        RequestError: it is not promoted.
        RequestError: a later plan has moved the same models.
        RequestError: what was published before is not kept any more.
    """
    op = Operation(project=project, plan=plan, why=why)
    moves = moves_to_take_back(op, promise)
    refuse_later(op, moves, cells_only=False)
    number = _publish(op, moves, PublicationKind.ROLLBACK, promise)
    drop_carried(op)  # of an undo that was given up
    return WentBack(op.plan_id, number)


def undo_plan(
    project: Project, plan: Plan, promise: timedelta = PROMISE, why: str = ""
) -> WentBack:
    """Bring only the cells of a plan back; days that were written since are kept.

    Raises:
        RequestError: it is not promoted.
        RequestError: a later plan has touched the same cells.
        RequestError: what was published before is not kept any more.
        RequestError: days written since can't be computed with the old logic.
    """
    op = Operation(project=project, plan=plan, why=why)
    moves = moves_to_take_back(op, promise)
    refuse_later(op, moves, cells_only=True)
    open_old_versions(op, moves)
    carried, number = _undone(op, moves, promise)
    drop_carried(op)
    if carried:
        op.tell("carried back", cells=as_text(op.environment().graph, carried), number=number)
    return WentBack(op.plan_id, number, carried)


def _undone(
    op: Operation, moves: list[PointerMove], promise: timedelta
) -> tuple[CellsByModel, int]:
    """Publish once the old tables hold all that is published, and say what had to be computed."""
    carried = CellsByModel()
    for _ in range(_TRIES):
        carried |= carried_back(op, moves)
        with suppress(_NewCellsError):
            return carried, _publish(op, moves, PublicationKind.UNDO, promise)
    raise not_carried_over(op.plan_id, as_text(op.environment().graph, lacking_back(op, moves)), ())


def _publish(
    op: Operation, moves: list[PointerMove], kind: PublicationKind, promise: timedelta
) -> int:
    named = {at.version for one in moves for at in (one.old, one.new) if at is not None}
    intent = Intent(
        plan_id=op.plan_id,
        environment=op.plan.environment,
        kind=kind,
        holder=op.run_id,
        versions=tuple(sorted(one for one in named if _is_ours(op, one))),
    )
    settle_tables(op.environment(), intent.versions)
    try:
        return publish(op.environment(), intent, lambda: _prepared(op, moves, kind, promise))
    except PinGoneError:
        refuse_expired(op, moves, "files that hold the old cells are gone")


def _is_ours(op: Operation, version: str) -> bool:
    owner = op.store.versions.owner(version)
    return owner in (None, op.plan.environment) or owner.startswith(_WORKSPACE)


def _prepared(
    op: Operation, moves: list[PointerMove], kind: PublicationKind, promise: timedelta
) -> Prepared:
    """Under the locks: look again, and decide what moves."""
    view = op.store.views.of(op.plan.environment)
    refuse_after_promise(op, moves, promise)
    _look_again(op, moves, kind)
    steps = steps_back(op, moves, only_cells=kind is PublicationKind.UNDO)
    gone = tuple(one.model for one in moves if is_dropped(op.plan.environment, one))
    pins = {name: one.pointer.delta_version for name, one in view.models.items()}
    return Prepared(steps, gone, op.who, op.why, view.counter, pins)


def _look_again(op: Operation, moves: list[PointerMove], kind: PublicationKind) -> None:
    """Refuse what others have done while the locks were taken."""
    status = op.store.plans.get(op.plan_id).status
    if status is not PlanStatus.PROMOTED:
        raise nothing_to_take_back(op.plan_id, status)
    refuse_later(op, moves, cells_only=kind is PublicationKind.UNDO)
    if kind is PublicationKind.UNDO and lacking_back(op, moves):
        raise _NewCellsError


_WORKSPACE = "plan:"
_TRIES = 5
