"""What a person asks in a project, by a command or by a job of the launchpad."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.engine.project.naming import declared_naming, plan_naming
from backfill_assets.engine.project.opening import look, look_at_published
from backfill_assets.engine.project.operators import refuse_other_users
from backfill_assets.engine.project.project import InProject

if TYPE_CHECKING:
    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.models.graph import Graph
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.render.plan_words import Naming
    from backfill_assets.settings import Settings
    from backfill_assets.snapshots.person import Person


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked(InProject):
    """A project, and the person who asks something of it.

    Attributes:
        settings: what people have set.
        who: the person who asks.
    """

    settings: Settings
    who: Person

    @property
    def graph(self) -> Graph:
        """The models and sources as they are on disk."""
        return self.project.loaded.graph

    @property
    def naming(self) -> Naming:
        """How cells are named."""
        return declared_naming(self.project)

    def naming_of(self, plan: Plan) -> Naming:
        """How a plan's cells are named: as of the models that it runs, whatever has been declared since."""
        return plan_naming(self.project, plan)

    def may_change(self, environment: str) -> None:
        """Refuse those who may not change a protected environment.

        Raises:
            RequestError: the settings name others.
        """
        refuse_other_users(self.project, environment, self.who, self.settings.operators)

    def run(self, environment: str) -> RunContext:
        """Look at what an environment runs; nothing is written."""
        return look(self.project, environment)

    def published(self, environment: str) -> RunContext:
        """Look at all that an environment publishes, whether it is still declared or not; nothing is written."""
        return look_at_published(self.project, environment)
