"""A plan that no person is asked about: late data makes it, or a launch by hand over published cells.

take the lease -> finish the plan that was begun, or make one -> apply it -> promote it where it may be
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.engine.plans.plan_verbs import abandon_plan, apply_plan, promote_plan
from backfill_assets.planning.plan.outline import plan_or_outline, why_unreadable
from backfill_assets.snapshots.stored_plan import PlanStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from backfill_assets.engine.plans.operation import Operation
    from backfill_assets.engine.plans.outcome import Outcome
    from backfill_assets.engine.project.project import Project
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.planning.plan.request import PlanRequest
    from backfill_assets.snapshots.stored_plan import StoredPlan


def begun(
    project: Project,
    stored_plans: Iterable[StoredPlan],
    is_ours: Callable[[PlanRequest], bool],
    why: str,
) -> list[Plan]:
    """Find the plans that an earlier process has begun; one that was never applied is given up.

    What such a plan reads may have moved since, and it may have expired: a new one is made instead.

    Args:
        project: who goes on with them. Its lease keeps the process away that has only just made one.
        stored_plans: those that may be ours. One that this release can't read is not.
        is_ours: whether a request is one of those that are looked for.
        why: the reason, in words.
    """
    found: list[Plan] = []
    for stored in stored_plans:
        plan = plan_or_outline(stored)
        if why_unreadable(stored) or not is_ours(plan.request):
            continue
        if stored.status is PlanStatus.PROPOSED:
            abandon_plan(project, plan, why)
        else:
            found.append(plan)
    return found


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
