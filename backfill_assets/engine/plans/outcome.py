"""The outcome of the stages of a plan: how far it has come, and what was found on the way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from backfill_assets.engine.project.events import Failed, events_of
from backfill_assets.models.cells_by_model import CellsByModel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.engine.project.events import Event
    from backfill_assets.errors import BackfillAssetsError
    from backfill_assets.models.audit_result import AuditResult
    from backfill_assets.snapshots.stored_plan import PlanStatus


@dataclass(frozen=True, slots=True)
class Outcome:
    """How far a plan has come.

    Attributes:
        status: ``applying`` while something is left to build, else what its last stage has made of it.
        events: what happened to cells, by model.
        left: the planned cells that still need work, by model.
        canaries: cells that were built, or tried, just now to be compared before the others, by model:
            no further stage is run.
        spared: how many planned cells were not built, since what they read came out as it was, by model.
        audited: what audits that the plan changes found in cells that it keeps, by model;
            while a blocking one fails, the plan is not promoted.
        checked: the delta_versions of the workspace's tables, by version, at which `Check` looked at them.
        refusal: why the plan can't be promoted; None where nothing was found, or nothing was checked yet.
        carried: cells that the environment had published since, and that were computed with the
            workspace's logic, by model.
        number: of the publication, on the state's counter; None where pointers were not moved.
        removed: models that the environment does not run any more.
    """

    status: PlanStatus
    events: Mapping[str, tuple[Event, ...]] = field(default_factory=dict[str, "tuple[Event, ...]"])
    left: CellsByModel = field(default_factory=CellsByModel)
    canaries: CellsByModel = field(default_factory=CellsByModel)
    spared: Mapping[str, int] = field(default_factory=dict[str, int])
    audited: Mapping[str, tuple[AuditResult, ...]] = field(
        default_factory=dict[str, "tuple[AuditResult, ...]"]
    )
    checked: Mapping[str, int] = field(default_factory=dict[str, int])
    refusal: BackfillAssetsError | None = None
    carried: CellsByModel = field(default_factory=CellsByModel)
    number: int | None = None
    removed: tuple[str, ...] = ()

    @property
    def failed(self) -> tuple[Failed, ...]:
        """Every batch that failed."""
        return events_of(Failed, self.events)

    @property
    def refused(self) -> str:
        """Why the plan can't be promoted, in words; empty where nothing was found."""
        return "" if self.refusal is None else str(self.refusal)
