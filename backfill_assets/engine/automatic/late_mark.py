"""The name of late work: what a run that ended well is not asked for again under."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.engine.automatic.needed_plan import is_own_proposal
from backfill_assets.engine.automatic.scan_memory import hashed
from backfill_assets.engine.fill.late_cells import policy_mark
from backfill_assets.engine.project.plan_age import may_go_on
from backfill_assets.models.automation import Automation
from backfill_assets.planning.rule.late_work import ASKED_BY
from backfill_assets.snapshots.environment import PROD
from backfill_assets.snapshots.stored_plan import NOT_ENDED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from backfill_assets.engine.project.project import Project
    from backfill_assets.models.graph import Graph
    from backfill_assets.snapshots.queued_plan import QueuedPlan
    from backfill_assets.snapshots.stored_plan import StoredPlan
    from backfill_assets.state.store import Store


def late_mark(
    project: Project, stale: Mapping[str, str], queued_plans: Sequence[QueuedPlan]
) -> str:
    """Name late work of prod by all that decides what becomes of it.

    That is what is stale, which plans it may wait for, what a person last said of its own and when, what the
    models declare, which of them are not automatic, what is owed, and the policy. A run that was asked for before
    a plan was opened may have met it, and ended well: so the name stays another one after that plan.

    Args:
        project: where it is.
        stale: a name for what is stale, by model.
        queued_plans: plans of late data of which a person has spoken.
    """
    store = project.store
    # With the instant: a run that met the pause has ended well under the name of before it.
    controls = [[plan.plan_id, plan.control.value, str(plan.set_at)] for plan in queued_plans]
    words = {name: at.fingerprint for name, at in store.environments.pointers(PROD).items()}
    decisive = [
        stale,
        sorted(_plans_in_the_way(project)),
        store.plans.opened(PROD, but_for=ASKED_BY),
        controls,
        words,
        sorted(not_automatic_models(project.loaded.graph)),
        store.environments.owed_marks(PROD),
        policy_mark(project),
    ]
    return hashed(decisive)


def late_plans_queued(store: Store, standing: Iterable[StoredPlan]) -> list[QueuedPlan]:
    """Give the plans of late data of which a person has spoken, among open ones that have not waited for too long."""
    late = {plan.plan_id for plan in standing if plan.created_by == ASKED_BY}
    return [queued for queued in store.queue.queued_plans() if queued.plan_id in late]


def not_automatic_models(graph: Graph) -> list[str]:
    """Name the declared models that the sensor does not fill."""
    return [name for name, model in graph.models.items() if model.automated is not Automation.ON]


def _plans_in_the_way(project: Project) -> Iterator[str]:
    """Name the plans that may go on; of the proposals for late data itself those that may not: another has to come."""
    now = project.clock()
    for stored in project.store.plans.latest(PROD, NOT_ENDED):
        if may_go_on(project.store, stored, now) is not is_own_proposal(stored):
            yield stored.plan_id
