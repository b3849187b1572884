"""Run the stages of a plan, one after the other, for every verb of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from backfill_assets.engine.plans.building import build_canaries, build_cells, fill_gaps
from backfill_assets.engine.plans.carrying_over import carry_over
from backfill_assets.engine.plans.going_back import restore
from backfill_assets.engine.plans.kept_audits import audit_kept
from backfill_assets.engine.plans.moving import ConcurrentPublicationError
from backfill_assets.engine.plans.promotion import publish_built
from backfill_assets.engine.plans.strategy_checks import check_built, check_canaries
from backfill_assets.engine.plans.workspace import close, open_workspace
from backfill_assets.engine.project.iceberg import enter_missing
from backfill_assets.engine.review.evidence import write_owed_evidence
from backfill_assets.planning.plan.stages import (
    AuditKept,
    BuildCanaries,
    BuildCells,
    CarryOver,
    Check,
    Close,
    FillGaps,
    OpenWorkspace,
    Publish,
    Restore,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backfill_assets.engine.plans.operation import Operation
    from backfill_assets.engine.plans.outcome import Outcome
    from backfill_assets.planning.plan.stages import Stage

_TRIES = 5
"""How often a list is begun when the environment publishes more each time."""

_BUILDING = (FillGaps, OpenWorkspace, BuildCanaries, BuildCells)
"""Stages that run while cells are left to build; every other stage needs all of them built."""


def run_stages(op: Operation, stages: Iterable[Stage], so_far: Outcome) -> Outcome:
    """Run stages one after the other, and begin again if the environment has published more meanwhile.

    Each stage does only its remaining work, so beginning again costs only what is new.

    Raises:
        ConcurrentPublicationError: the environment has published more each time.
        BackfillAssetsError: a stage refuses to go on; its message says why.
    """
    todo = tuple(stages)
    enter_missing(op)
    write_owed_evidence(op)  # of plans whose process died
    for tries_left in reversed(range(_TRIES)):
        try:
            for stage in todo:
                if so_far.canaries or (so_far.left and not isinstance(stage, _BUILDING)):
                    break
                so_far = run_stage(op, stage, so_far)
        except ConcurrentPublicationError:
            if not tries_left:
                raise
        else:
            break
    return so_far


def run_stage(  # noqa: C901, PLR0911, PLR0912 - one case for each stage
    op: Operation, stage: Stage, so_far: Outcome
) -> Outcome:
    """Run one stage, and return the outcome that includes it."""
    match stage:
        case FillGaps():
            return fill_gaps(op, stage, so_far)
        case OpenWorkspace():
            return open_workspace(op, stage, so_far)
        case BuildCanaries():
            return check_canaries(op, build_canaries(op, stage, so_far))
        case BuildCells():
            return build_cells(op, stage, so_far)
        case AuditKept():
            return audit_kept(op, so_far)
        case CarryOver():
            return carry_over(op, stage, so_far)
        case Check():
            return check_built(op, so_far)
        case Publish():
            return publish_built(op, so_far)
        case Restore():
            return restore(op, stage, so_far)
        case Close():
            return close(op, stage, so_far)
        case _:
            assert_never(stage)
