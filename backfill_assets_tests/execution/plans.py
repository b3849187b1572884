"""Plans in the small world: made, applied, promoted as a command would, each by a run of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from backfill_assets.execution.apply import apply_plan
from backfill_assets.execution.promotion import promote_plan
from backfill_assets.planning.request import PlanRequest
from backfill_assets.snapshots.environment import PROD
from backfill_assets_tests.making import plan_made

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.execution.apply import Applied
    from backfill_assets.execution.events import Event
    from backfill_assets.execution.operation import Means
    from backfill_assets.execution.promotion import Promoted
    from backfill_assets.models.graph import Graph
    from backfill_assets.planning.plan import Plan
    from backfill_assets_tests.execution.world import World


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

    def apply(self, graph: Graph, plan: Plan, **given: Any) -> Applied:  # noqa: ANN401
        means: Any = {**self.means(), **given}
        return apply_plan(self.world.store, graph, plan, **means)

    def promote(self, graph: Graph, plan: Plan) -> Promoted:
        return promote_plan(self.world.store, graph, plan, **self.means())

    def published(self, graph: Graph, environment: str = PROD, **asked: Any) -> Plan:  # noqa: ANN401
        """Make, apply and promote."""
        plan = self.make(graph, environment, **asked)
        assert self.apply(graph, plan).left == {}
        if plan.protected:
            self.promote(graph, plan)
        return plan

    def means(self) -> Means:
        self.world.runs += 1
        means: Means = {
            "spark": lambda: self.world.spark,
            "data_root": str(self.world.root),
            "clock": self.world.clock,
            "run_id": f"op-{self.world.runs}",
            "who": "ana",
            "listener": self.told.append,
            "batches_at_once": 2,
            "effects": self.world.effects,
        }
        return cast("Means", {**means, **self.given})
