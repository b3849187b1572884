"""Which stale cells of an environment heal by themselves, and which need a plan: from recorded state alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.execution.plan_state import open_plans
from backfill_assets.intervals.cadence import WHOLE_CELL
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.planning.late_work import late_work
from backfill_assets.planning.plan import Build

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.execution.run_context import RunContext
    from backfill_assets.planning.late_work import LateWork
    from backfill_assets.planning.plan import Plan


def late_work_of(run: RunContext, failed: Mapping[str, IntervalSet] | None = None) -> LateWork:
    """Split the stale cells of a run's environment; from recorded state alone.

    Args:
        run: the environment.
        failed: cells that can't be built now, or are not to be, with all that reaches them.
    """
    return late_work(
        run.graph,
        run.view(),
        now=run.until,
        reads=run.reads,
        held=_held_by_plans(run),
        failed=failed,
    )


def plans_at_work(run: RunContext) -> list[Plan]:
    """Read the open plans of a run's environment that people have made."""
    return [
        one
        for one in open_plans(run.store)
        if one.environment == run.environment.name and not one.request.late
    ]


def _held_by_plans(run: RunContext) -> dict[str, IntervalSet]:
    """Give what open plans of the environment are at work on; one that moves a table has all of it."""
    found: dict[str, IntervalSet] = {}
    for plan in plans_at_work(run):
        for one in plan.models:
            cells = _EVERYTHING if one.build is Build.NEW_VERSION else one.cells
            found[one.model] = found.get(one.model, IntervalSet.empty()) | cells
    return found


_EVERYTHING = IntervalSet.of([WHOLE_CELL])
