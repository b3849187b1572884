"""Operations on plans in the name of a principal, where a policy asks for one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from backfill_assets.engine.review.acting import acting, gate_in
from backfill_assets.engine.review.appointments import appointed_principal
from backfill_assets.engine.review.reviewed import built_plan
from backfill_assets.planning.review.approval import Act

if TYPE_CHECKING:
    from backfill_assets.engine.plans.operation import Operation


def signed_for(op: Operation, act: Act) -> Operation:
    """Give an operation in the name of the principal who signs for it; as it was where none is asked for.

    Raises:
        UnsignedActError: the policy names who may, and there is no way to sign here.
        SignatureError: the signature is not that of an allowed signer.
        NotEntitledError: the policy names others.
    """
    principal = acting(op.project, act, op.plan_id, op.plan.environment)
    return op if principal is None else replace(op, project=replace(op.project, who=principal))


def promoting(op: Operation) -> Operation:
    """Give a promotion in the name of its principal: who signs now, or has signed for an appointment.

    What is published without a person has none.

    Raises:
        UnsignedActError: the policy names who may, and there is no way to sign here.
        SignatureError: the signature is not that of an allowed signer.
        NotEntitledError: the policy names others.
    """
    gate = gate_in(op.project, op.plan.environment)
    if gate is None or built_plan(op.project, op.plan_id).is_automatic:
        return op
    principal = appointed_principal(op.project, op.plan_id, gate)
    if principal is not None:
        return replace(op, project=replace(op.project, who=principal))
    return signed_for(op, Act.PROMOTE)
