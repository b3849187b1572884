"""Close a plan: say how it ended, and drop the workspaces that nothing needs any more."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from backfill_assets.snapshots.stored_plan import OPEN, PlanEventKind, PlanStatus

if TYPE_CHECKING:
    from backfill_assets.engine.plans.operation import Operation
    from backfill_assets.engine.plans.outcome import Outcome
    from backfill_assets.planning.plan.stages import Close


def close(op: Operation, stage: Close, so_far: Outcome) -> Outcome:
    """End a plan with a status; one that has it already keeps it.

    A publication has set the status itself, and has dropped the plan's workspace. What an abandoned
    plan built is left for collection.

    Raises:
        CellsClaimedError: a live batch is building in the plan's workspace.
    """
    store = op.store
    store.environments.drop_workspace(op.undo_id)
    if stage.status is PlanStatus.ABANDONED:
        store.environments.drop_workspace(op.plan_id)
    if store.plans.get(op.plan_id).status is not stage.status:
        store.plans.set_plan_status(op.plan_id, (PlanStatus.PROPOSED, *OPEN), stage.status)
        if stage.status is PlanStatus.ABANDONED:
            store.environments.drop_workspace(op.plan_id)  # one that was opened in between
            op.tell(PlanEventKind.ABANDONED)
    return replace(so_far, status=stage.status)
