"""The stages of a plan, and at the end the list of stages that each verb runs.

`planning.plan.build_plan` says which cells a plan may touch, `engine.plans.plan_verbs` runs the lists, also for the
queue, late data and launches by hand. Each stage does only its remaining work, so an interrupted list is run again
from its beginning.

`promote` does more than its list. Before the list it finishes the publication of a process that died. It refuses
a plan that was edited, has waited for too long, was never built, or lacks approvals or consumers' answers. It has the
promotion signed where a policy asks for that. After the list it completes the evidence and tells the consumers.

`Publish` and `Restore` take these steps, and readers see nothing of them before the last one:

    intent stored -> tables locked -> checked again -> decision stored -> evidence begun (`Publish`)
    -> cells copied -> one transaction

If the process dies, the intent stays. Once its lease is over, the next process that needs one of its tables (a batch,
a publication, or any verb that ends this plan) withdraws it if the decision was not stored. Otherwise that
process finishes the publication without checking again; if a copy fails or a pointer has moved, it takes the
copies back instead, and the plan keeps its status.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from backfill_assets.snapshots.publication import PublicationKind
from backfill_assets.snapshots.stored_plan import PlanStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.cells_by_model import CellsByModel
    from backfill_assets.planning.plan.plan import ModelPlan, Plan


class Logic(StrEnum):
    """The declarations that a workspace builds with."""

    NEW = "new"
    """Those of the plan."""
    OLD = "old"
    """Those that the environment ran before the plan was promoted."""


@dataclass(frozen=True, slots=True)
class FillGaps:
    """Fill cells that were never published, in the environment's own tables: readers see each batch at once.

    Attributes:
        cells: by model, also of models whose cells are none.
    """

    cells: Mapping[str, IntervalSet]


@dataclass(frozen=True, slots=True)
class OpenWorkspace:
    """Open the plan's workspace, an environment of its own that no reader sees.

    The tables of the workspace hold only what the plan builds; all other cells are read from the environment that
    it follows. That environment owes the restated cells from now on, until the plan is published or abandoned.
    """

    logic: Logic = Logic.NEW


@dataclass(frozen=True, slots=True)
class BuildCells:
    """Compute, audit and commit cells in the plan's workspace.

    Attributes:
        cells: by model, also of models whose cells are none.
    """

    cells: Mapping[str, IntervalSet]


@dataclass(frozen=True, slots=True)
class BuildCanaries:
    """Build a few telling cells in the plan's workspace first, check them, and end the list if any was built.

    So a person can compare them before the next `apply` builds the others. The list goes on if the environment's
    policy allows that and the cells are as the plan expects.
    """

    cells: CellsByModel


@dataclass(frozen=True, slots=True)
class AuditKept:
    """Run the audits that the plan changes on the cells that it keeps; then the plan has the status built.

    It keeps published cells, and cells that a new table of it holds already, which were built under other audits.
    """


@dataclass(frozen=True, slots=True)
class CarryOver:
    """Compute in the workspace what the environment published after the plan was made; for an undo, after its promotion."""

    logic: Logic = Logic.NEW


@dataclass(frozen=True, slots=True)
class Check:
    """Check that no input of the plan has moved, and run the checks of its strategies and of its contract.

    A refusal is not raised here but put into the outcome: `apply` reports it, and `Publish` raises it.
    """


@dataclass(frozen=True, slots=True)
class Publish:
    """Publish what is built: copy differing cells into the published tables, then move all pointers at once.

    One transaction moves them, and ends the plan and its workspace; no reader sees a copy before it. A model
    with a new table (`Build.NEW_VERSION`) needs no copy.
    """


@dataclass(frozen=True, slots=True)
class Restore:
    """Publish again what was published before the plan, in one transaction.

    Attributes:
        kind: a rollback brings back all of it, an undo the plan's cells alone.
    """

    kind: PublicationKind


@dataclass(frozen=True, slots=True)
class Close:
    """End the plan, and drop the workspaces that nothing needs any more.

    Attributes:
        status: of the plan afterwards.
    """

    status: PlanStatus


Stage = (
    FillGaps
    | OpenWorkspace
    | BuildCanaries
    | BuildCells
    | AuditKept
    | CarryOver
    | Check
    | Publish
    | Restore
    | Close
)


def apply_stages(plan: Plan) -> tuple[Stage, ...]:
    """Return what `apply` runs; an unprotected environment is promoted right after it."""
    # A model whose pointer does not move only has gaps filled; all others go through the workspace.
    gaps = {planned.model: planned.cells for planned in plan.models if not planned.moves}
    fill = (FillGaps(gaps),) if gaps else ()
    if plan.fills_only:
        return (*fill, Close(PlanStatus.PROMOTED))
    apart = {planned.model: planned.cells for planned in plan.models if planned.built_apart}
    first = (BuildCanaries(plan.canaries),) if plan.canaries else ()
    built = (*fill, OpenWorkspace(), *first, BuildCells(apart), AuditKept())
    carried = (CarryOver(),) if plan.request.dual_run_days else ()
    return (*built, *carried, Check()) if plan.protected else built


def promote_stages() -> tuple[Stage, ...]:
    """Return what publishes a plan that is built."""
    return (CarryOver(), Check(), AuditKept(), Publish())


def rollback_stages() -> tuple[Stage, ...]:
    """Return what takes every model back to what was published before the plan."""
    return (Restore(PublicationKind.ROLLBACK), Close(PlanStatus.ROLLED_BACK))


def undo_stages() -> tuple[Stage, ...]:
    """Return what takes only the plan's cells back, and keeps what was published since."""
    return (
        OpenWorkspace(Logic.OLD),
        CarryOver(Logic.OLD),
        Restore(PublicationKind.UNDO),
        Close(PlanStatus.UNDONE),
    )


def abandon_stages() -> tuple[Stage, ...]:
    """Return what gives up a plan that is not published."""
    return (Close(PlanStatus.ABANDONED),)


def queue_stages(plan: Plan) -> tuple[Stage, ...]:
    """Return what runs before the queue releases the plan's cells; its last run then runs what `apply` does."""
    return () if plan.fills_only else (OpenWorkspace(),)


def served_stage(planned: ModelPlan, cells: IntervalSet) -> FillGaps | BuildCells:
    """Return the stage that one run of the queue works on: planned cells of one model."""
    own = {planned.model: cells & planned.cells}
    return BuildCells(own) if planned.moves else FillGaps(own)
