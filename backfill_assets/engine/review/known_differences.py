"""The known differences of a plan: what its checks have found, and a person has accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.errors import RequestError
from backfill_assets.planning.review.acceptance import check_named, valid_acceptances
from backfill_assets.snapshots.stored_plan import OPEN, PlanEventKind

if TYPE_CHECKING:
    from backfill_assets.snapshots.plan_check import Acceptance
    from backfill_assets.snapshots.stored_plan import StoredPlan
    from backfill_assets.state.store import StateReader, Store


def known_differences(store: Store | StateReader, plan_id: str) -> tuple[Acceptance, ...]:
    """List what is accepted of a plan as it was checked last; an acceptance of other numbers is void."""
    return valid_acceptances(store.checks.of_plan(plan_id), store.checks.acceptances(plan_id))


def accept_difference(
    store: Store, plan: StoredPlan, named: tuple[str, str], *, who: str, reason: str
) -> Acceptance:
    """Accept what a check of a plan has found.

    Args:
        store: the state.
        plan: the plan.
        named: its model, and the check: its name, or a part of it.
        who: accepts it.
        reason: why it is right.

    Raises:
        RequestError: no reason is given, the plan is not open, or the check has not failed.
    """
    if not reason.strip():
        raise RequestError(
            found="a difference can't be accepted without a reason",
            do="state with --reason why it is right",
        )
    if plan.status not in OPEN:
        raise RequestError(
            found=f"plan {plan.plan_id} is {plan.status.value}",
            expected="a plan that is built and not promoted",
        )
    checks = store.checks.of_plan(plan.plan_id)
    if not checks:
        raise RequestError(
            found=f"no check of plan {plan.plan_id} has run yet",
            do=f"`backfill apply {plan.plan_id}` builds it and checks it",
        )
    check = check_named(checks, *named)
    accepted = store.checks.accept(plan.plan_id, check, who=who, reason=reason.strip())
    store.plans.tell(
        plan.plan_id,
        PlanEventKind.ACCEPTED,
        who=who,
        why=reason.strip(),
        detail={"model": check.model, "check": check.check, "found": check.text},
    )
    return accepted
