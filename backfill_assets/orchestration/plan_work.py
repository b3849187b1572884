"""What a job of the launchpad works with: the project, its op, and who asks."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dagster as dg

from backfill_assets.engine.project.asked import Asked
from backfill_assets.engine.project.events import (
    Event,
    Failed,
    LeftStale,
    SourceNote,
    Waiting,
    event_line,
)
from backfill_assets.engine.review.around import around_plan
from backfill_assets.engine.review.before_publishing import commands_now
from backfill_assets.models.graph import Graph
from backfill_assets.orchestration.catching_up import report_ready
from backfill_assets.orchestration.metadata import report_metadata
from backfill_assets.orchestration.released_runs import ENDED_TAG, FOR_GOOD, PLAN_TAG
from backfill_assets.planning.plan.plan import Plan
from backfill_assets.planning.plan.plan_json import read_plan
from backfill_assets.render.plan_markdown import plan_markdown
from backfill_assets.snapshots.environment import PROD
from backfill_assets.snapshots.loaded import Loaded

if TYPE_CHECKING:
    from backfill_assets.engine.project.events import Listener


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanWork(Asked):
    """What one op works with.

    Attributes:
        context: of the op.
    """

    context: dg.OpExecutionContext

    def plan(self, plan_id: str) -> Plan:
        """Read a plan, and tag the run with it.

        Raises:
            UnknownPlanError: there is none.
        """
        plan = read_plan(self.store.plans.get(plan_id.strip()).content)
        self.tag(plan)
        return plan

    def tag(self, plan: Plan) -> None:
        """Tag the run with a plan, so that all runs of the plan are listed together."""
        self.context.instance.add_run_tags(self.context.run.run_id, {PLAN_TAG: plan.plan_id})

    def end_for_good(self) -> None:
        """Tag the run so that its release is not requested again, although it failed."""
        self.context.instance.add_run_tags(self.context.run.run_id, {ENDED_TAG: FOR_GOOD})

    def show(self, plan: Plan, **metadata: Any) -> None:  # noqa: ANN401 - any metadata
        """Show a plan, and where it stands, on the run's page, and in one line of its log."""
        page = self.page(plan, **metadata)
        self.context.log.info("plan %s is %s; next: %s", plan.plan_id, page["status"], page["next"])
        self.context.add_output_metadata(page)

    def failure(self, plan: Plan, said: str, **metadata: Any) -> dg.Failure:  # noqa: ANN401 - any metadata
        """Give the failure of a run that shows a plan all the same: a failed step has no output to show it at."""
        return dg.Failure(
            description=said, metadata=self.page(plan, **metadata), allow_retries=False
        )

    def page(self, plan: Plan, **metadata: Any) -> dict[str, Any]:  # noqa: ANN401 - any metadata
        """Give what a run's page shows of a plan: its text, where it stands, and what can be done next."""
        status = self.store.plans.get(plan.plan_id).status.value
        return {
            "plan_id": plan.plan_id,
            "status": status,
            "plan": dg.MetadataValue.md(plan_markdown(plan, self.naming, around_plan(self, plan))),
            "next": ", or ".join(commands_now(self.project, plan)) or "nothing",
            **report_metadata(self, plan.plan_id),
            **metadata,
        }

    def report_published(self, environment: str) -> int:
        """Report to Dagster what prod publishes by now; other environments have no assets."""
        if environment != PROD:
            return 0
        return report_ready(self.context.instance, self.run(environment))


def logged(context: dg.OpExecutionContext, graph: Graph) -> "Listener":
    """Write what happens to cells into the run's log, in the words of the command."""

    def listen(event: Event) -> None:
        if line := event_line(graph, event):
            context.log.log(_LEVELS.get(type(event), logging.INFO), line)

    return listen


_LEVELS: dict[type, int] = {
    Failed: logging.ERROR,
    LeftStale: logging.WARNING,
    SourceNote: logging.WARNING,
    Waiting: logging.WARNING,
}

Known = Callable[[], Loaded]
