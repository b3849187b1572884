"""A plan under review: the one that the state keeps, whatever file or memory it was named by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.engine.project.project import InProject
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.planning.plan.plan import Build
from backfill_assets.planning.plan.plan_json import read_plan
from backfill_assets.snapshots.environment import workspace_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.engine.project.gate import Gate
    from backfill_assets.engine.project.project import Project
    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.content import Content
    from backfill_assets.planning.plan.plan import ModelPlan, Plan
    from backfill_assets.snapshots.ready import ReadyRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewed(InProject):
    """A plan under review.

    Attributes:
        plan: as the state keeps it.
        gate: the policy that it is held against.
    """

    plan: Plan
    gate: Gate

    @property
    def workspace(self) -> str:
        """The environment in which the plan is built."""
        return workspace_name(self.plan.plan_id)

    def built(self, planned: ModelPlan) -> list[ReadyRecord]:
        """Give the records of the cells that the plan itself has built of a model, in the order of time.

        Those that a new table held before are among them; those that a promotion carries over are not.
        """
        new = planned.build is Build.NEW_VERSION
        cells = planned.cells | planned.kept if new else planned.cells
        return [record for record in self.in_workspace(planned) if record.cell in cells]

    def appended(self, planned: ModelPlan) -> IntervalSet:
        """Give the cells that a promotion carries over beside those of the plan."""
        built = IntervalSet.of(record.cell for record in self.built(planned))
        return IntervalSet.of(record.cell for record in self.in_workspace(planned)) - built

    def in_workspace(self, planned: ModelPlan) -> list[ReadyRecord]:
        """Give the records of every cell that the plan's own table of a model holds."""
        own = self.store.environments.own_pointers(self.workspace).get(planned.model)
        if own is None or not planned.built_apart:
            return []
        records = self.store.versions.ready_records(own.version, own.delta_version)
        return sorted(records, key=lambda record: record.cell)

    def published(self, planned: ModelPlan) -> Mapping[Interval, Content]:
        """Give what readers read of a model now, by cell."""
        view = self.store.views.of(self.plan.environment)
        if planned.model not in view.models:
            return {}
        ready = view.ready(planned.model)
        return self.store.views.content_at_pin(self.plan.environment, planned.model, ready)


def reviewed(project: Project, plan_id: str, gate: Gate) -> Reviewed:
    """Read a plan from the state, to be held against a policy.

    Raises:
        UnknownPlanError: there is none.
        PlanFormatError: it was edited in the state.
    """
    plan = read_plan(project.store.plans.get(plan_id).content)
    return Reviewed(project=project, plan=plan, gate=gate)
