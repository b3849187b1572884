"""A plan under review: the one that the state keeps, whatever file or memory it was named by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.engine.project.project import InProject
from backfill_assets.errors import RequestError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.retyped import as_another_type
from backfill_assets.planning.plan.plan_json import read_plan
from backfill_assets.planning.review.touched import ROWS, ChangedModel
from backfill_assets.snapshots.environment import workspace_name
from backfill_assets.snapshots.stored_plan import PlanStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from backfill_assets.engine.project.gate import Gate
    from backfill_assets.engine.project.project import Project
    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.content import Content
    from backfill_assets.planning.plan.plan import ModelPlan, Plan
    from backfill_assets.snapshots.ready import ReadyRecord
    from backfill_assets.snapshots.stored_plan import StoredPlan
    from backfill_assets.state.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltPlan(InProject):
    """A plan beside what readers read now.

    Attributes:
        plan: as the state keeps it.
    """

    plan: Plan

    def under(self, gate: Gate) -> Reviewed:
        """Give the same plan, held against a policy."""
        return Reviewed(project=self.project, plan=self.plan, gate=gate)

    @property
    def workspace(self) -> str:
        """The environment in which the plan is built."""
        return workspace_name(self.plan.plan_id)

    def built(self, planned: ModelPlan) -> list[ReadyRecord]:
        """Give the records of the cells that the plan itself has built of a model, in the order of time.

        Those that a new table held before are among them; those that a promotion carries over are not.
        """
        cells = planned.published
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
        view = self.store.views.of(self.plan.environment, only={planned.model})
        if planned.model not in view.models:
            return {}
        ready = view.ready(planned.model)
        return self.store.views.content_at_pin(self.plan.environment, planned.model, ready)

    def differing(
        self, planned: ModelPlan
    ) -> dict[Interval, tuple[Content | None, Content | None]]:
        """Give the cells that readers read otherwise afterwards: with what they hold before and after."""
        if not planned.built_apart:
            return {}
        before = comparable(self.store, planned, self.published(planned))
        after = {record.cell: record.content for record in self.in_workspace(planned)}
        gone = before.keys() - after.keys() if planned.old_version != planned.version else ()
        return {
            cell: (before.get(cell), after.get(cell))
            for cell in sorted((*after, *gone))
            if before.get(cell) != after.get(cell)
        }

    def changing(self, planned: ModelPlan) -> ChangedModel | None:
        """Say in which published cells which columns differ afterwards; None where all are equal."""
        pairs = {cell: (old, new) for cell, (old, new) in self.differing(planned).items() if old}
        return ChangedModel(IntervalSet.of(pairs), _columns(pairs)) if pairs else None

    @property
    def is_automatic(self) -> bool:
        """Whether it is published without a person: late data, or a launch that changes nothing."""
        request = self.plan.request
        return bool(request.late) or (bool(request.launch) and not self._differs)

    @property
    def _differs(self) -> bool:
        """Whether a reader could tell that the plan was published."""
        return bool(self.plan.removed) or any(
            planned.fingerprint != planned.old_fingerprint or self.differing(planned)
            for planned in self.plan.models
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewed(BuiltPlan):
    """A plan under review.

    Attributes:
        gate: the policy that it is held against.
    """

    gate: Gate


def built_plan(project: Project, plan_id: str) -> BuiltPlan:
    """Read a plan from the state.

    Raises:
        UnknownPlanError: there is none.
        PlanFormatError: it was edited in the state.
    """
    return BuiltPlan(project=project, plan=read_plan(project.store.plans.get(plan_id).content))


def reviewed(project: Project, plan_id: str, gate: Gate) -> Reviewed:
    """Read a plan from the state, to be held against a policy.

    Raises:
        UnknownPlanError: there is none.
        PlanFormatError: it was edited in the state.
    """
    return built_plan(project, plan_id).under(gate)


def comparable(
    store: Store, planned: ModelPlan, published: Mapping[Interval, Content]
) -> Mapping[Interval, Content]:
    """Give what readers read of a model now, to be compared with what a plan's own table of it holds."""
    if not published or planned.old_version == planned.version:
        return published
    old, new = map(store.snapshots.model, (planned.old_fingerprint, planned.fingerprint))
    return as_another_type(published, old, new)


def refuse_unbuilt(plan: StoredPlan) -> None:
    """Refuse a plan that is not built, or is promoted already: what it changes is not known, or done.

    Raises:
        RequestError: it has another status.
    """
    if plan.status is not PlanStatus.BUILT:
        raise RequestError(
            found=f"plan {plan.plan_id} is {plan.status.value}",
            expected="a built plan that is not promoted",
            do=f"see `backfill show {plan.plan_id}`",
        )


def _columns(
    pairs: Mapping[Interval, tuple[Content | None, Content | None]],
) -> dict[str, IntervalSet]:
    cells: dict[str, list[Interval]] = {}
    for cell, (before, after) in pairs.items():
        for name in _differing(before, after):
            cells.setdefault(name, []).append(cell)
    return {name: IntervalSet.of(column_cells) for name, column_cells in cells.items()}


def _differing(before: Content | None, after: Content | None) -> Iterable[str]:
    """Name the columns that differ in a cell; `ROWS` where rows came or went."""
    if before is None or after is None or (before.rows, before.key) != (after.rows, after.key):
        return (ROWS,)
    names = before.columns.keys() | after.columns.keys()
    return [name for name in names if before.columns.get(name) != after.columns.get(name)]
