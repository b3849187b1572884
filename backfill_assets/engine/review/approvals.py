"""Approvals of a plan: given, judged again whenever they are relied on, and what is still required."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING

from backfill_assets.engine.project.gate import gate_in
from backfill_assets.engine.project.naming import plan_naming
from backfill_assets.engine.review.acting import sign, verified_statements
from backfill_assets.engine.review.bound_parts import bound_parts
from backfill_assets.engine.review.notices import send_notices
from backfill_assets.engine.review.reviewed import refuse_unbuilt, reviewed
from backfill_assets.errors import BackfillAssetsError, RequestError
from backfill_assets.planning.review.approval import Act
from backfill_assets.planning.review.policy import (
    Approval,
    ModelFacts,
    PlanFacts,
    PolicyError,
    still_required,
    unknown_names,
)
from backfill_assets.snapshots.person import names_in
from backfill_assets.snapshots.stored_plan import PlanEventKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from backfill_assets.engine.project.project import Project
    from backfill_assets.engine.review.acting import Judged
    from backfill_assets.engine.review.reviewed import Reviewed
    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.intervals.interval import Interval
    from backfill_assets.planning.plan.plan import ModelPlan
    from backfill_assets.snapshots.signed_statement import SignedStatement

_HOUR = 3600.0


class UnapprovedError(BackfillAssetsError):
    """A plan lacks what the policy requires before it may be published."""

    def __init__(self, plan_id: str, lacking: tuple[str, ...], void: tuple[str, ...]) -> None:
        self.plan_id, self.lacking, self.void = plan_id, lacking, void
        reasons = f"; approvals that do not count: {'; '.join(void)}" if void else ""
        super().__init__(
            f"plan {plan_id} may not be published yet, nothing was: {'; '.join(lacking)}{reasons}. "
            f"`backfill approve {plan_id}` gives an approval, `backfill approvals {plan_id}` lists them"
        )


@dataclass(frozen=True, slots=True)
class ApprovalState:
    """Where the approvals of a plan stand.

    Attributes:
        of: the plan.
        approvals: each that was given, from the first.
        lacking: what is still required, in words.
        appended: cells that were built beside the plan's since, by model, as ranges: they void nothing.
    """

    of: Reviewed
    approvals: tuple[Judged, ...]
    lacking: tuple[str, ...]
    appended: Mapping[str, str]

    @property
    def parts(self) -> dict[str, str]:
        """The hash of each part that an approval given now would bind."""
        return bound_parts(self.of)


def approval_state(project: Project, plan_id: str) -> ApprovalState | None:
    """Tell where the approvals of a plan stand; None where no policy is set.

    Raises:
        PolicyError: the policy can't be used.
        UnknownPlanError: there is no such plan.
    """
    gate = project.gate()
    return None if gate is None else _standing(reviewed(project, plan_id, gate))


def refuse_unapproved(project: Project, plan_id: str) -> tuple[Judged, ...]:
    """Refuse to publish a plan that lacks what the policy requires.

    Returns:
        Its approvals, judged; none where no policy is set.

    Raises:
        UnapprovedError: it does; every reason is listed.
        PolicyError: the policy can't be used.
        PolicyMissingError: the environment was under a policy before, and this process has none.
    """
    gate = gate_in(project, project.store.plans.get(plan_id).environment)
    if gate is None:
        return ()
    outcome = _standing(reviewed(project, plan_id, gate))
    if outcome.lacking:
        void = tuple(
            f"that of {each.signed.principal} ({each.void})"
            for each in outcome.approvals
            if each.void
        )
        raise UnapprovedError(plan_id, outcome.lacking, void)
    return outcome.approvals


def approve(of: Reviewed, parts: Mapping[str, str], reason: str = "") -> SignedStatement:
    """Sign for the parts of a plan that were shown, and keep the approval.

    Args:
        of: the plan; see `to_approve`.
        parts: the hash of each part, as it was shown: what has changed since voids the approval.
        reason: why, in words.

    Raises:
        UnsignedActError: there is no way to sign here.
        SignatureError: the key is not that of an allowed signer.
        NotEntitledError: the policy does not name its principal.
    """
    days = max(rule.holds_days for rule in of.gate.policy.rules_of(of.plan.environment))
    made = sign(of, Act.APPROVE, of.clock() + timedelta(days=days), parts, reason)
    of.store.plans.tell(
        of.plan.plan_id,
        PlanEventKind.APPROVED,
        who=made.principal,
        why=reason,
        detail={"expires": made.expires},
    )
    send_notices(of)
    return made


def to_approve(project: Project, plan_id: str) -> Reviewed:
    """Give a plan that can be approved now.

    Raises:
        RequestError: no policy asks for it, or the plan is not built, or not checked yet.
        PolicyError: the policy can't be used, or names what is not there.
    """
    gate, stored = project.gate(), project.store.plans.get(plan_id)
    if gate is None or not gate.policy.rules_of(stored.environment):
        raise RequestError(
            found=f"no policy asks for an approval in {stored.environment}",
            do="BACKFILL_POLICY names the policy; nothing was written",
        )
    of = reviewed(project, stored.plan_id, gate)
    models = {*project.loaded.graph.models, *of.plan.removed}
    if wrong := unknown_names(gate.policy, gate.signers.principals(), models):
        raise PolicyError(gate.path, "; ".join(wrong))
    refuse_unbuilt(stored)
    if of.plan.contract and not of.store.checks.of_plan(of.plan.plan_id):
        raise RequestError(
            found=f"the cells of plan {stored.plan_id} are built, and its checks have not run yet",
            expected="a plan whose `apply` has ended: its checks are a part of what is approved",
            do=f"see `backfill show {stored.plan_id} --watch`",
        )
    return of


def _standing(of: Reviewed) -> ApprovalState:
    approvals = tuple(verified_statements(of, Act.APPROVE))
    valid = [Approval(each.signed.principal, each.signed.at) for each in approvals if not each.void]
    lacking = still_required(of.gate.policy, _facts(of), valid, of.clock())
    return ApprovalState(of, approvals, lacking, _appended(of))


def _facts(of: Reviewed) -> PlanFacts:
    """Gather what a policy asks of a plan that is built."""
    plan, estimate = of.plan, of.plan.estimate
    priced = estimate is not None and any(estimate.cost)
    models = tuple(_of_model(of, planned) for planned in plan.models if planned.moves)
    removed = tuple(ModelFacts(name, removed=True) for name in plan.removed)
    return PlanFacts(
        environment=plan.environment,
        authors=names_in(plan.request.asked_by),
        models=(*models, *removed),
        automatic=of.is_automatic,
        cost=estimate.cost[1] if estimate is not None and priced else None,
        hours=estimate.seconds[1] / _HOUR if estimate is not None else None,
    )


def _of_model(of: Reviewed, planned: ModelPlan) -> ModelFacts:
    cells = [cell for cell, (before, _) in of.differing(planned).items() if before is not None]
    if not cells:
        return ModelFacts(planned.model)
    graph = of.project.loaded.graph
    # One that is declared no more is as the plan has built it.
    built = None if planned.model in graph.models else of.store.snapshots.model(planned.fingerprint)
    cadence = (built or graph.model(planned.model)).cadence
    return ModelFacts(planned.model, len(cells), _oldest(cadence, cells), zone=cadence.tz)


def _oldest(cadence: Cadence, cells: Iterable[Interval]) -> date | None:
    """Give the local date of the first of these cells; None for a model without cells in time."""
    if cadence.start is None:
        return None
    return date.fromisoformat(cadence.key(min(cells))[:10])


def _appended(of: Reviewed) -> dict[str, str]:
    naming = plan_naming(of.project, of.plan)
    by_model = {planned.model: of.appended(planned) for planned in of.plan.models}
    return {name: naming.ranges(name, cells, 5) for name, cells in by_model.items() if cells}
