"""Whether a plan is stuck: all that is left of it has failed for good, or reads what has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.engine.automatic.scan_memory import DONE, FAILED
from backfill_assets.engine.automatic.scanned_environment import for_scanning, scanned_by_plan
from backfill_assets.models.cells_by_model import CellsByModel

if TYPE_CHECKING:
    from collections.abc import Collection

    from backfill_assets.engine.automatic.scanned_environment import ScannedModel
    from backfill_assets.engine.project.project import Project
    from backfill_assets.planning.plan.plan import Plan


def stuck_cells(project: Project, plan: Plan) -> CellsByModel:
    """Give what is left of a plan, by model, if all of it has failed for good, or reads what has; else nothing.

    Args:
        project: where the plan is; only recorded state is read.
        plan: one that is being applied.
    """
    stuck = CellsByModel()
    for where in scanned_by_plan(for_scanning(project), plan):
        for scanned in where.scanned(where.names):
            if scanned.end == DONE:
                continue
            if not _is_stuck(scanned, stuck):
                return CellsByModel()
            stuck |= CellsByModel({scanned.model.name: scanned.left})
    return stuck


def _is_stuck(scanned: ScannedModel, stuck: Collection[str]) -> bool:
    """Whether a model is stuck; its upstreams were asked before it."""
    reads_stuck = any(scanned.work.blocked.get(name) for name in stuck)
    return scanned.unchanging and not scanned.waits and (scanned.end == FAILED or reads_stuck)
