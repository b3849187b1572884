"""Restore what an environment read before a plan: all of it, or the plan's cells alone.

Rolling back brings every model of the plan to where it was; undoing brings back the plan's cells and
keeps the days that were written since. Both are publications: one transaction, locks, history. What
was built on the data that goes is stale afterwards, by the one rule.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from backfill_assets.engine.batch.commit_turn import reconcile_tables
from backfill_assets.engine.plans.back_steps import is_dropped, steps_back
from backfill_assets.engine.plans.carrying_over import cells_to_carry_back
from backfill_assets.engine.plans.moving import ConcurrentPublicationError, move_pointers
from backfill_assets.engine.plans.publishing import Prepared
from backfill_assets.engine.plans.rollback_checks import (
    moves_to_take_back,
    nothing_to_take_back,
    refuse_after_promise,
    refuse_expired,
    refuse_later,
)
from backfill_assets.render.plan_words import ranges_by_model
from backfill_assets.snapshots.environment import plan_of
from backfill_assets.snapshots.publication import PublicationKind
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets.warehouse.spark.spark_errors import PinGoneError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backfill_assets.engine.plans.operation import Operation
    from backfill_assets.engine.plans.outcome import Outcome
    from backfill_assets.models.cells_by_model import CellsByModel
    from backfill_assets.planning.plan.stages import Restore
    from backfill_assets.snapshots.publication import PointerMove

_ENDS = {
    PublicationKind.ROLLBACK: PlanStatus.ROLLED_BACK,
    PublicationKind.UNDO: PlanStatus.UNDONE,
}


def restore(op: Operation, stage: Restore, so_far: Outcome) -> Outcome:
    """Publish again what was published before a plan.

    Raises:
        RequestError: the plan is not promoted.
        RequestError: others have changed the same since.
        RequestError: what was published before is not kept any more.
        ConcurrentPublicationError: the environment has published more meanwhile.
    """
    moves = moves_to_take_back(op, stage.kind)
    named = {at.version for move in moves for at in (move.old, move.new) if at is not None}
    versions = [version for version in named if _is_ours(op, version)]
    reconcile_tables(op.environment(), versions)
    try:
        number = move_pointers(
            op, stage.kind, versions, lambda _: _decided(op, moves, stage.kind, so_far.carried)
        )
    except PinGoneError:
        refuse_expired(op, moves, "files that hold the old cells were deleted")
    return replace(so_far, status=_ENDS[stage.kind], number=number)


def _is_ours(op: Operation, version: str) -> bool:
    owner = op.store.versions.owner(version)
    return owner in (None, op.plan.environment) or plan_of(owner) is not None


def _decided(
    op: Operation, moves: Sequence[PointerMove], kind: PublicationKind, carried: CellsByModel
) -> Prepared:
    """Look again under the locks, and decide what moves."""
    refuse_after_promise(op, moves)
    status = op.store.plans.get(op.plan_id).status
    if status is not PlanStatus.PROMOTED:
        raise nothing_to_take_back(op.plan_id, status)
    only_cells = kind is PublicationKind.UNDO
    refuse_later(op, moves, cells_only=only_cells)
    if only_cells and cells_to_carry_back(op):
        raise ConcurrentPublicationError(op.plan_id, op.plan.environment)
    steps = steps_back(op, moves, only_cells=only_cells)
    environment, followed = op.plan.environment, op.followed_pointers()
    gone = tuple(move.model for move in moves if is_dropped(environment, move, followed))
    cells = ranges_by_model(op.old_workspace().graph, carried) if carried else {}
    return Prepared(steps, gone, carried=cells)
