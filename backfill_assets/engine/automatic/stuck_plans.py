"""Whether a plan is stuck: nothing of it can be built before somebody changes the code or an input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.engine.automatic.looker import looking, plan_scenes
from backfill_assets.engine.automatic.settled import DONE, FAILED

if TYPE_CHECKING:
    from backfill_assets.engine.automatic.scenes import Looked
    from backfill_assets.engine.project.project import Project
    from backfill_assets.planning.plan.plan import Plan


def is_stuck(project: Project, plan: Plan) -> bool:
    """Whether all that is left of a plan has failed for good, or reads what has.

    Args:
        project: where the plan is; only recorded state is read.
        plan: one that is being applied.
    """
    stuck: set[str] = set()
    for scene in plan_scenes(looking(project), plan):
        for one in scene.looks(scene.names):
            if one.end == DONE and one.settled:
                continue
            if not _is_stuck(one, stuck):
                return False
            stuck.add(one.model.name)
    return bool(stuck)


def _is_stuck(one: Looked, stuck: set[str]) -> bool:
    """Whether a model is; its upstreams were asked before it."""
    reads_stuck = any(one.work.blocked.get(name) for name in stuck)
    return one.settled and not one.waits and (one.end == FAILED or reads_stuck)
