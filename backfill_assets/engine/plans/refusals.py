"""Reasons to refuse `apply` or `promote`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.engine.plans.workspace import planned_snapshots
from backfill_assets.engine.project.frozen_code import FrozenCode
from backfill_assets.engine.project.gate import gate_in
from backfill_assets.engine.project.plan_age import open_plans, stands, waits_until
from backfill_assets.engine.review.acting import verdicts
from backfill_assets.engine.review.answers import refuse_unanswered
from backfill_assets.engine.review.approvals import refuse_unapproved
from backfill_assets.engine.review.preflight import checklist_of, refuse_lost_history
from backfill_assets.errors import BackfillAssetsError, RequestError
from backfill_assets.intervals.instants import minute_text
from backfill_assets.intervals.text import ranges_text
from backfill_assets.planning.plan.in_flight import in_flight
from backfill_assets.planning.plan.plan import Build
from backfill_assets.planning.plan.plan_json import content_hash
from backfill_assets.planning.plan.plan_state import PlanState
from backfill_assets.planning.plan.stale_inputs import StaleInput, moved_inputs
from backfill_assets.render.plan_words import ranges_by_model
from backfill_assets.snapshots.stored_plan import NOT_ENDED, PlanStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.engine.plans.operation import Operation
    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.models.graph import Graph
    from backfill_assets.planning.plan.plan import InFlight, Plan
    from backfill_assets.planning.review.checklist import Item


_NEXT = {
    PlanStatus.PROPOSED: "`backfill apply {}` builds it first",
    PlanStatus.BUILT: "`backfill promote {}` publishes it",
}


def wrong_status(plan_id: str, status: PlanStatus) -> RequestError:
    """Refuse what a plan's status does not allow, and name what it allows instead."""
    return RequestError(
        found=f"plan {plan_id} is {status.value} already, nothing was written"
        if status not in _NEXT
        else f"plan {plan_id} is {status.value}, nothing was written",
        do=_NEXT.get(status, "make a new plan for the remaining work").format(plan_id),
    )


class StalePlanError(BackfillAssetsError):
    """What a plan reads or rewrites is not what it saw when it was made."""

    def __init__(self, plan_id: str, found: tuple[StaleInput, ...]) -> None:
        self.plan_id, self.moved = plan_id, found
        listed = "; ".join(
            f"{stale_input.of} {stale_input.what}"
            + (f" (read by {stale_input.model})" if stale_input.of != stale_input.model else "")
            for stale_input in found
        )
        super().__init__(
            f"plan {plan_id} is stale, nothing was published: {listed}. Run `backfill plan` "
            "again; the new plan reflects the current data"
        )


class PlanConflictError(BackfillAssetsError):
    """Another plan is at work on the same cells, or on the same new table."""

    def __init__(self, plan_id: str, conflicts: tuple[InFlight, ...], graph: Graph) -> None:
        self.plan_id, self.conflicts = plan_id, conflicts
        self.listed = "; ".join(
            f"{conflict.model} {ranges_text(graph.model(conflict.model).cadence, conflict.cells) if conflict.cells else 'its table'} "
            f"by {conflict.who}"
            for conflict in conflicts
        )
        super().__init__(
            f"plan {plan_id} overlaps with other work, nothing was written: {self.listed}. Promote "
            "or abandon the other plan first, then run `backfill plan` again"
        )


class UnmetInventoryError(BackfillAssetsError):
    """A policy lets nothing be computed for a plan while an item of its inventory is not met."""

    def __init__(self, plan_id: str, items: tuple[Item, ...]) -> None:
        self.plan_id, self.items = plan_id, items
        listed = "; ".join(f"{item.name}: {', '.join(item.texts)} ({item.todo})" for item in items)
        super().__init__(
            f"plan {plan_id} lacks what the policy asks for before anything is computed, nothing was written: "
            f"{listed}. `backfill checklist {plan_id}` shows every item"
        )


def refuse(op: Operation) -> None:
    """Refuse a plan that is not the one that was shown, or whose inputs have moved.

    Raises:
        RequestError: it is too old.
        RequestError: it was applied, and then waited for too long.
        RequestError: it is not the plan that the state keeps under its id.
        RequestError: it is promoted, abandoned or taken back already.
        RequestError: a model was edited since.
        StalePlanError: cells, columns or snapshots that it reads or rewrites have moved.
        PlanConflictError: another plan is at work on the same cells.
        LostSourceHistoryError: published rows would be replaced by nothing.
        UnmetInventoryError: the policy asks for an inventory that the plan does not have.
    """
    refuse_edited(op)
    plan, stored = op.plan, op.store.plans.get(op.plan_id)
    if stored.status not in NOT_ENDED:
        raise wrong_status(plan.plan_id, stored.status)
    refuse_other_code(op)
    if stored.status is PlanStatus.PROPOSED:
        if stored.has_expired(op.clock()):
            raise RequestError(
                found=f"plan {plan.plan_id} expired at {minute_text(plan.expires_at)}, "
                "nothing was written",
                do="Run `backfill plan` again; the new plan reflects the current data",
            )
        _refuse_conflicts(op)
        refuse_stale(op)
        refuse_lost_history(op.project, op.plan)
        refuse_unmet_inventory(op)
    else:
        refuse_outwaited(op)


def refuse_unmet_inventory(op: Operation) -> None:
    """Refuse a plan while an item of its inventory is not met, where the policy asks for all of them.

    An automatic plan for late data is not asked, as no policy asks for its approval.

    Raises:
        UnmetInventoryError: it lists the items, with what to do.
        PolicyError: the policy can't be used.
        PolicyMissingError: the environment was under a policy before, and this process has none.
    """
    gate = gate_in(op.project, op.plan.environment)
    if gate is None or op.plan.request.late or not gate.policy.needs_inventory(op.plan.environment):
        return
    if stopping := tuple(item for item in checklist_of(op.project, op.plan) if item.stops):
        raise UnmetInventoryError(op.plan_id, stopping)


def refuse_edited(op: Operation) -> None:
    """Refuse a plan that is not the one that the state keeps under its id.

    Raises:
        RequestError: its content is another.
    """
    if op.store.plans.get(op.plan_id).content_hash != content_hash(op.plan):
        raise RequestError(
            found=f"plan {op.plan_id} differs from the plan saved under this id: its file was edited. "
            "Nothing was written",
            do="A plan can't be edited, make a new one",
        )


def refuse_outwaited(op: Operation) -> None:
    """Refuse a plan that was applied, and then waited for too long.

    Raises:
        RequestError: late data does not wait for it any more.
    """
    until = waits_until(op.store, op.plan)
    if until <= op.clock():
        raise RequestError(
            found=f"plan {op.plan_id} was not continued before {minute_text(until)}, "
            "nothing was written. It no longer blocks late data, and its results are outdated",
            do=f"Run `backfill abandon {op.plan_id}`, then `backfill plan` again; BACKFILL_PLAN_DAYS "
            "sets how long a plan may wait",
        )


def refuse_stale(op: Operation) -> None:
    """Refuse a plan when something that it reads or rewrites is not as it saw it.

    Raises:
        StalePlanError: it lists what.
    """
    environment = op.environment()
    stale_inputs = [
        *moved_inputs(op.plan, environment.graph, op.store.views.of(op.plan.environment)),
        *_snapshots_moved(op, environment),
    ]
    if stale_inputs:
        raise StalePlanError(op.plan_id, tuple(stale_inputs))


def building_command(op: Operation) -> str:
    """Name the command that builds the cells of a plan: one that a person holds has to be resumed first."""
    held = op.store.queue.control_of(op.plan_id).holds
    return (
        f"{f'`backfill resume {op.plan_id}`, then ' if held else ''}`backfill apply {op.plan_id}`"
    )


def refuse_unfinished(op: Operation) -> None:
    """Refuse a plan when the rule still finds something to build in it.

    Raises:
        RequestError: it lists what.
    """
    run = op.workspace()
    if remaining := ranges_by_model(run.graph, run.left_of(op.plan)):
        listed = "; ".join(f"{model}: {cells}" for model, cells in remaining.items())
        raise RequestError(
            found=f"plan {op.plan_id} is not completely built, nothing was published",
            do=f"Cells still to build: {listed}. {building_command(op)} builds them",
        )


def refuse_unreviewed(op: Operation) -> dict[str, str]:
    """Refuse a plan that people have not agreed to: those whom the policy names, and consumers.

    Returns:
        Why each of its approvals and answers does not count, by the SHA-256 of its text; empty where it does.

    Raises:
        UnapprovedError: it lacks approvals.
        UnansweredError: a consumer has to acknowledge it, or objects, or its notice period is not over.
        PolicyError: the policy can't be used.
        PolicyMissingError: the environment was under a policy before, and this process has none.
    """
    approvals = refuse_unapproved(op.project, op.plan_id)
    return verdicts((*approvals, *refuse_unanswered(op.project, op.plan_id)))


def refuse_other_code(op: Operation) -> None:
    """Refuse a plan whose models were edited since it was made.

    Raises:
        RequestError: some were; it names them.
    """
    FrozenCode.of(op.plan, lambda: op.project.loaded.fingerprints).check()
    if op.project.code is not None:
        FrozenCode.of(op.plan, op.project.code).check()


def _refuse_conflicts(op: Operation) -> None:
    others = tuple(
        plan
        for plan in open_plans(op.store)
        if plan.plan_id != op.plan_id
        and (stands(op.store, plan, op.clock()) or _shares_table(op.plan, plan))
    )
    state = PlanState(op.environment().view(), open_plans=others)
    conflicts = [conflict for conflict in in_flight(op.plan.models, state) if conflict.blocks]
    if conflicts:
        raise PlanConflictError(op.plan_id, tuple(conflicts), op.environment().graph)


def _shares_table(plan: Plan, other: Plan) -> bool:
    """Whether two plans build the same new table, which belongs to one of them until that ends."""
    new = {planned.version for planned in plan.models if planned.build is Build.NEW_VERSION}
    return any(model.version in new for model in other.models if model.build is Build.NEW_VERSION)


def _snapshots_moved(op: Operation, environment: RunContext) -> Iterator[StaleInput]:
    """Find models whose snapshot would be another one: what they read has been changed since."""
    snapshots = planned_snapshots(op, environment)
    for planned in op.plan.models:
        snapshot = snapshots.get(planned.model)
        if snapshot is not None and snapshot.fingerprint.id != planned.fingerprint:
            what = f"'{op.plan.environment}' now runs other snapshots of what it reads"
            yield StaleInput(planned.model, planned.model, what)
