"""Everything that a verb about plans works with: the project, its settings, and who asks."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from backfill_assets.cli.project import opened_project, project_looked_at, who_asks
from backfill_assets.engine.plans.making import prepare
from backfill_assets.engine.project.asked import Asked
from backfill_assets.engine.project.batch_policy import batch_policy_of
from backfill_assets.render.actual import actual_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.engine.project.events import Listener
    from backfill_assets.engine.project.project import Project
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.render.actual import Actual


@dataclass(frozen=True, slots=True, kw_only=True)
class Operating(Asked):
    """What a verb about plans works with."""

    def prepare(self, plan: Plan) -> None:
        """Refuse a plan whose reach this person may not change; create the environment that it is for.

        Raises:
            RequestError: it restates what others read, too, and the settings name who may.
        """
        prepare(self.project, plan, self.who, self.settings.operators)

    def taken(self, plan: Plan) -> Actual:
        """Sum up what a plan has taken so far."""
        store, plan_id = self.store, plan.plan_id
        return actual_of(
            store.plans.events(plan_id),
            store.batches.of_plan(plan_id),
            store.plans.timings(plan_id),
        )

    def working(self, listener: Listener = lambda _: None) -> Project:
        """Give the project to an operation on a plan, with the retries and timeouts of the settings.

        Args:
            listener: called with each thing that happens to cells.

        Raises:
            DeclarationError: the off-peak hours can't be read.
        """
        return replace(self.project, batch_policy=batch_policy_of(self.settings), listener=listener)


@contextmanager
def operating() -> Iterator[Operating]:
    """Open all of it, and close state and Spark afterwards."""
    with opened_project() as (settings, project):
        yield Operating(project=project, settings=settings, who=who_asks(settings))


@contextmanager
def looking() -> Iterator[Operating]:
    """Open all of it for a verb that only looks: neither a state nor a data folder is made."""
    with project_looked_at() as (settings, project):
        yield Operating(project=project, settings=settings, who=who_asks(settings))
