"""The words for the stages of a plan: what its verbs will do, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from backfill_assets.intervals.text import counted
from backfill_assets.planning.plan.stages import (
    AuditKept,
    BuildCanaries,
    BuildCells,
    CarryOver,
    Check,
    Close,
    FillGaps,
    Logic,
    OpenWorkspace,
    Publish,
    Restore,
    apply_stages,
    promote_stages,
)
from backfill_assets.snapshots.publication import PublicationKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.planning.plan.stages import Stage
    from backfill_assets.render.plan_words import Naming


def stages_by_verb(plan: Plan, naming: Naming) -> tuple[tuple[str, str], ...]:
    """Say what each verb does with a plan until it is published: (verb, stage in words), in order."""
    applied = [("apply", stage) for stage in apply_stages(plan)]
    verb = "promote" if plan.protected else "apply"
    published = [] if plan.fills_only else [(verb, stage) for stage in promote_stages()]
    return tuple((verb, stage_text(stage, naming)) for verb, stage in [*applied, *published])


def stage_text(  # noqa: C901, PLR0911, PLR0912 - one case for each stage
    stage: Stage, naming: Naming
) -> str:
    """Say what a stage does."""
    match stage:
        case FillGaps(cells):
            return f"fill {_cells(naming, cells)} in the tables that are read"
        case OpenWorkspace(logic):
            return {
                Logic.NEW: "open a workspace, which no reader sees",
                Logic.OLD: "open a workspace on the tables that were read before the plan",
            }[logic]
        case BuildCanaries(cells):
            return f"build {_cells(naming, cells)} first, and wait for the next `apply`"
        case BuildCells(cells):
            return f"build {_cells(naming, cells)} in the workspace"
        case AuditKept():
            return "audit cells that the plan keeps, where it changes their audits"
        case CarryOver(logic):
            return f"compute with the {logic.value} logic the cells that were published in the meantime"
        case Check():
            return "check that no input has changed, and run the checks of strategies and contract"
        case Publish():
            return "publish all models in one transaction"
        case Restore(kind):
            what = "the plan's cells" if kind is PublicationKind.UNDO else "every model"
            return f"bring {what} back in one transaction"
        case Close(status):
            return f"end the plan: {status.value}"
        case _:
            assert_never(stage)


def _cells(naming: Naming, cells: Mapping[str, IntervalSet]) -> str:
    """Count cells, which are an upper bound, and their models."""
    named = {name: own for name, own in cells.items() if own}
    count = sum(naming.count(name, own) for name, own in named.items())
    return (
        f"up to {counted(count, 'cell')} of {counted(len(named), 'model')}" if count else "nothing"
    )
