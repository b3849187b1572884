"""Plans in the small world: made, applied, promoted as a command would, each by a run of its own."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from backfill_assets.engine.plans.plan_verbs import apply_plan, promote_plan
from backfill_assets.engine.project.batch_policy import USUAL_POLICY
from backfill_assets.planning.plan.request import PlanRequest
from backfill_assets.snapshots.environment import PROD
from backfill_assets_tests.making import plan_made

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.engine.plans.outcome import Outcome
    from backfill_assets.engine.project.events import Event
    from backfill_assets.engine.project.project import Project
    from backfill_assets.models.graph import Graph
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets_tests.engine.world import World


@dataclass
class Plans:
    """Who makes and applies plans in a world."""

    world: World
    told: list[Event] = field(default_factory=list)
    given: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def make(self, graph: Graph, environment: str = PROD, **asked: Any) -> Plan:  # noqa: ANN401
        world = self.world
        request = PlanRequest(environment=environment, **asked)
        return plan_made(world.store, graph, request, clock=world.clock, data_root=world.root)

    def apply(self, graph: Graph, plan: Plan, **given: Any) -> Outcome:  # noqa: ANN401
        return apply_plan(self.project(graph, **given), plan)

    def promote(self, graph: Graph, plan: Plan) -> Outcome:
        return promote_plan(self.project(graph), plan)

    def published(self, graph: Graph, environment: str = PROD, **asked: Any) -> Plan:  # noqa: ANN401
        """Make, apply and promote."""
        plan = self.make(graph, environment, **asked)
        assert self.apply(graph, plan).left == {}
        if plan.protected:
            self.promote(graph, plan)
        return plan

    def project(self, graph: Graph, **given: Any) -> Project:  # noqa: ANN401
        """Make the project of one operation on a plan."""
        project = self.world.project(graph)
        usual: dict[str, Any] = {
            "run_id": f"op-{self.world.runs}",
            "who": "ana",
            "listener": self.told.append,
            "batch_policy": USUAL_POLICY,
        }
        return replace(project, **{**usual, **self.given, **given})
