"""An operation on a plan: in which project, and why."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from backfill_assets.engine.project.frozen_code import FrozenCode
from backfill_assets.engine.project.opening import look_as_pointed
from backfill_assets.engine.project.project import InProject
from backfill_assets.planning.change.kept_rows import unfit
from backfill_assets.planning.plan.overhead import by_rows, planned_cells
from backfill_assets.planning.plan.request import KeptRows
from backfill_assets.snapshots.environment import undo_name, workspace_name
from backfill_assets.snapshots.timing import Timing
from backfill_assets.state.plans import NewEvent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.snapshots.environment import Pointer
    from backfill_assets.snapshots.stored_plan import PlanEventKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(InProject):
    """What is done with a plan, and why.

    Attributes:
        plan: the plan.
        why: the reason, in words.
    """

    plan: Plan
    why: str = ""

    @property
    def plan_id(self) -> str:
        """The plan."""
        return self.plan.plan_id

    @property
    def undo_id(self) -> str:
        """The name of the workspace in which the plan is undone."""
        return undo_name(self.plan_id)

    @property
    def who(self) -> str:
        """Who asks for it, as the history keeps it."""
        return self.project.who

    def environment(self) -> RunContext:
        """Look at the environment whose history the plan changes."""
        return self.run_in(self.plan.environment)

    def workspace(self) -> RunContext:
        """Open a run in the plan's workspace."""
        run, code = self.run_in(workspace_name(self.plan_id)), self.project.code
        frozen = FrozenCode.of(self.plan, code) if code else None
        return replace(run, frozen=frozen, kept_rows=self._kept_rows(run))

    def old_workspace(self) -> RunContext:
        """Open a run in the workspace in which the plan is undone."""
        run, published = self.run_in(workspace_name(self.undo_id)), self.environment().graph.models
        kept = self._kept_rows(run)
        other = (
            name
            for name in kept.keys() & published
            if unfit(published[name], run.graph.model(name))
        )
        return replace(run, kept_rows=kept | dict.fromkeys(other, KeptRows.DROP))

    def _kept_rows(self, run: RunContext) -> dict[str, KeptRows]:
        """Say of the models that keep rows what becomes of those that only the published table has."""
        return {
            planned.model: planned.kept_rows or KeptRows.CARRY
            for planned in self.plan.models
            if planned.model in run.graph.models and run.graph.model(planned.model).keeps_rows
        }

    def followed_pointers(self) -> dict[str, Pointer]:
        """Read where the environment that the plan's one follows reads each model; none where it follows none."""
        follows = self.store.environments.get(self.plan.environment).follows
        return {} if follows is None else self.store.environments.pointers(follows)

    def built_pins(self) -> dict[str, int]:
        """Read what the plan has built until now: the tables of its workspace, each with its delta_version."""
        own = self.store.environments.own_pointers(workspace_name(self.plan_id))
        return {at.version: at.delta_version for at in own.values()}

    def event(self, kind: PlanEventKind, **detail: object) -> NewEvent:
        """Give what the plan's history is to tell, where another step writes it."""
        return NewEvent(self.plan_id, kind, self.who, self.why, detail)

    def tell(self, event: PlanEventKind, **detail: object) -> None:
        """Add to the plan's history."""
        self.store.plans.tell(self.plan_id, event, who=self.who, why=self.why, detail=detail)

    def timed(self, verb: str, since: Mapping[str, float]) -> None:
        """Keep how long the steps of an operation took, for estimates of plans to come.

        Args:
            verb: ``apply`` or ``promote``.
            since: what the steps had taken before it.
        """
        steps, cells = self.at_work.seconds(since), planned_cells(self.plan)
        self.store.plans.keep_timing(Timing(verb, steps, self.plan_id, cells, by_rows(self.plan)))

    def run_in(self, environment: str) -> RunContext:
        """Look at any environment."""
        return replace(
            look_as_pointed(self.project, environment),
            plan_id=self.plan_id,
            root_id=self.plan.request.launch or self.run_id,
            tuning=dict(self.plan.request.spark),
            batch_cells=self.plan.batch_cells,
        )
