"""The stages of a plan: what each verb does with it, one after the other; the lists stand below.

`promote` does more than its list. Before it: a plan that was edited is refused, the publication of a process
that died is finished, a plan is refused that has waited for too long, is not built to the end, or lacks
approvals or answers, and the act is signed where a policy asks for that. After it: the evidence is written,
and consumers are told.

`Check` does not raise what it refuses: it puts the refusal into the outcome. `apply` tells it, `Publish` raises it.

The queue, late data and launches by hand run the same stages. Each stage does only its remaining work, so
a list that was interrupted is begun again. `Publish` and `Restore` are different once they have stored their
decision:

    intent -> locks -> look again -> decision stored -> evidence -> copies -> one transaction

When the lease of a process that died is over, the next process that needs one of its tables (a batch, a
publication, `promote` itself) finishes that decision without a new check; if a copy fails or a pointer has
moved, it takes the copies back, and the plan stays built. Before the decision is stored nothing is published:
only the intent is left, and the next process withdraws it.

`planning.plan.build_plan` says which cells a plan may touch: an upper bound. `engine.plans.plan_verbs` runs the lists.
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
    """Fill cells that were never published, in the environment's own tables: readers see them at once.

    Attributes:
        cells: by model; a model without any is named all the same.
    """

    cells: Mapping[str, IntervalSet]


@dataclass(frozen=True, slots=True)
class OpenWorkspace:
    """Open the plan's own environment, which no reader sees.

    The environment owes the plan's restated cells of a table that stays until the plan is published or
    abandoned; in the workspace they are gaps until they are built.

    Its tables hold only what the plan builds; other cells are read from the environment that it follows. A new
    version has a table of its own.
    """

    logic: Logic = Logic.NEW


@dataclass(frozen=True, slots=True)
class BuildCells:
    """Compute, audit and commit cells in the plan's workspace.

    Attributes:
        cells: by model; a model without any is named all the same.
    """

    cells: Mapping[str, IntervalSet]


@dataclass(frozen=True, slots=True)
class BuildCanaries:
    """Build a few telling cells in the plan's workspace first, and check them. If any had to be built, stop.

    So a person can compare them before the next `apply` builds the others. Where the policy lets a plan go on,
    nothing stops that is as the plan expects.

    Attributes:
        cells: by model.
    """

    cells: CellsByModel


@dataclass(frozen=True, slots=True)
class AuditKept:
    """Audit published cells that the plan keeps, with the audits that it changes; the plan is built afterwards."""


@dataclass(frozen=True, slots=True)
class CarryOver:
    """Compute in the workspace what the environment has published since the plan was made.

    For an undo: since it was promoted.
    """

    logic: Logic = Logic.NEW


@dataclass(frozen=True, slots=True)
class Check:
    """Compare what is built with what the plan saw, and check what its strategies promise.

    A refusal is put into the outcome, for `Publish` to raise.
    """


@dataclass(frozen=True, slots=True)
class Publish:
    """Publish what is built: copy differing cells into tables that stay, then move all pointers at once.

    One transaction moves them, and ends the plan and its workspace; no reader sees a copy before it. A
    model with a new table (`Build.NEW_VERSION`) is published by its pointer alone.
    """


@dataclass(frozen=True, slots=True)
class Restore:
    """Bring back what was published before the plan, in one transaction.

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
    """Give what `apply` does before anything of the plan's workspace is published."""
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
    """Give what publishes a plan that is built."""
    return (CarryOver(), Check(), AuditKept(), Publish())


def rollback_stages() -> tuple[Stage, ...]:
    """Give what brings every model of a promoted plan back to where it was."""
    return (Restore(PublicationKind.ROLLBACK), Close(PlanStatus.ROLLED_BACK))


def undo_stages() -> tuple[Stage, ...]:
    """Give what brings a promoted plan's cells back, and keeps what was written since."""
    return (
        OpenWorkspace(Logic.OLD),
        CarryOver(Logic.OLD),
        Restore(PublicationKind.UNDO),
        Close(PlanStatus.UNDONE),
    )


def abandon_stages() -> tuple[Stage, ...]:
    """Give what ends a plan that is not published."""
    return (Close(PlanStatus.ABANDONED),)


def queue_stages(plan: Plan) -> tuple[Stage, ...]:
    """Give what is done with a plan before the queue releases its cells."""
    return tuple(stage for stage in apply_stages(plan) if isinstance(stage, OpenWorkspace))


def served_stage(planned: ModelPlan, cells: IntervalSet) -> FillGaps | BuildCells:
    """Give the stage that builds cells of one model, limited to the cells of one run of the queue."""
    own = {planned.model: cells & planned.cells}
    return BuildCells(own) if planned.moves else FillGaps(own)
