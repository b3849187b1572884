"""Publish what a plan has built: everything becomes what its environment reads, at once.

    checks pass -> intent -> locks -> look again -> decision stored -> evidence
    -> copies of what really differs -> one transaction

The transaction is `Publications.publish`; before it no reader sees anything of the plan.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from backfill_assets.engine.plans.carrying_over import carried_into, cells_to_carry_over
from backfill_assets.engine.plans.kept_audits import refuse_failing, unaudited
from backfill_assets.engine.plans.moving import ConcurrentPublicationError, move_pointers
from backfill_assets.engine.plans.promotion_steps import steps_of, tables_to_lock
from backfill_assets.engine.plans.publishing import Prepared
from backfill_assets.engine.plans.refusals import (
    refuse_stale,
    refuse_unfinished,
    refuse_unreviewed,
)
from backfill_assets.engine.project.at_work import Phase
from backfill_assets.render.plan_words import ranges_by_model
from backfill_assets.snapshots.publication import PublicationKind
from backfill_assets.snapshots.stored_plan import PlanStatus

if TYPE_CHECKING:
    from backfill_assets.engine.plans.operation import Operation
    from backfill_assets.engine.plans.outcome import Outcome
    from backfill_assets.models.cells_by_model import CellsByModel
    from backfill_assets.snapshots.state_view import StateView


def publish_built(op: Operation, so_far: Outcome) -> Outcome:
    """Move every pointer of a plan that is built and checked.

    Raises:
        BackfillAssetsError: what its checks have found, or an audit that fails on cells that it keeps.
        ConcurrentPublicationError: the environment has published more meanwhile, or another run has built what
            is not checked.
    """
    if so_far.refusal is not None:
        raise so_far.refusal
    refuse_unreviewed(op)
    refuse_failing(op, so_far.audited)
    decide = partial(_decided, op, so_far)
    number = move_pointers(op, PublicationKind.PROMOTE, tables_to_lock(op), decide)
    return replace(
        so_far,
        status=PlanStatus.PROMOTED,
        carried=_all_carried(op, so_far),
        number=number,
        removed=op.plan.removed,
    )


def _decided(op: Operation, so_far: Outcome, view: StateView) -> Prepared:
    """Look again under the locks, and decide what moves."""
    with op.at_work.at(Phase.CHECKING, "what came meanwhile"):
        if cells_to_carry_over(op) or unaudited(op) or op.built_pins() != so_far.checked:
            raise ConcurrentPublicationError(op.plan_id, op.plan.environment)
        refuse_stale(op)
        refuse_unfinished(op)
        approvals = refuse_unreviewed(op)
    tables = {
        layer.version: layer.delta_version
        for planned in op.plan.models
        if planned.model in view.models
        for layer in view.models[planned.model].pointer.layers
    }
    carried = _all_carried(op, so_far)
    cells = ranges_by_model(op.environment().graph, carried) if carried else {}
    return Prepared(
        steps_of(op, view), op.plan.removed, tables=tables, carried=cells, approvals=approvals
    )


def _all_carried(op: Operation, so_far: Outcome) -> CellsByModel:
    return so_far.carried | carried_into(op)
