"""A plan that no person is asked about: late data makes it, or a launch by hand over published cells.

take the lease -> finish the plan that was begun, or make one -> apply it -> promote it where it may be
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.engine.plans.plan_verbs import apply_plan, promote_plan
from backfill_assets.snapshots.stored_plan import PlanStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from backfill_assets.engine.plans.operation import Operation
    from backfill_assets.engine.plans.outcome import Outcome


def carried_out(op: Operation, reason: Callable[[Operation], str | None]) -> Outcome:
    """Apply a plan, and promote it where it is built and may be published without a person.

    Args:
        op: the plan, and who works on it.
        reason: asked once it is built: why it may be promoted, in words; None where a person decides.

    Raises:
        BackfillAssetsError: it can't be applied or promoted; see `apply_plan` and `promote_plan`.
    """
    done = apply_plan(op.project, op.plan, op.why)
    why = None if done.left or done.status is not PlanStatus.BUILT else reason(op)
    return done if why is None else promote_plan(op.project, op.plan, why, done)
