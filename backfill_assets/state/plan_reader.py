"""Read the state of plans: what was proposed, what is being published, what happened."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from backfill_assets.state import (
    collecting,
    comparisons,
    history,
    moves,
    plans,
    promotions,
    timings,
)
from backfill_assets.state.collecting import Needs
from backfill_assets.state.opened import OpenedState

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.snapshots.publication import Intent, PointerMove
    from backfill_assets.snapshots.stored_plan import PlanEvent, PlanStatus, StoredPlan
    from backfill_assets.snapshots.timing import Timing
    from backfill_assets.state.collecting import Collectable
    from backfill_assets.state.history import HistoryEntry


class PlanReader(OpenedState):
    """The questions about plans that a store answers; each is one read transaction."""

    def plan(self, plan_id: str) -> StoredPlan:
        """Read a plan by its id, or by any beginning of it that only one plan has.

        Raises:
            UnknownPlanError: none begins so; the latest are named.
            RequestError: several do.
        """
        return self._database.read(lambda found: plans.plan(found, plan_id))

    def plans(
        self, environment: str | None = None, statuses: Iterable[PlanStatus] | None = None
    ) -> list[StoredPlan]:
        """Read plans, the latest first.

        Args:
            environment: only of this one.
            statuses: only those that stand there.
        """
        wanted = None if statuses is None else tuple(statuses)
        return self._database.read(lambda found: plans.plans(found, environment, wanted))

    def timings(self, plan_id: str | None = None, *, limit: int | None = None) -> list[Timing]:
        """Read what the last runs, applies and promotions took, the latest first.

        Args:
            plan_id: only those of this plan.
            limit: how many at the most.
        """
        return self._database.read(lambda found: timings.timings(found, plan_id, limit))

    def comparison(self, plan_id: str, key: str) -> str | None:
        """Read what a comparison of a plan has found; None where it was not made yet."""
        return self._database.read(lambda found: comparisons.comparison(found, plan_id, key))

    def plan_events(self, plan_id: str) -> list[PlanEvent]:
        """Read what happened to a plan, from the first."""
        return self._database.read(lambda found: plans.plan_events(found, plan_id))

    def plan_touched(self, plan_id: str) -> datetime:
        """Read when something was done for a plan last (UTC): a step of its life, or a batch."""
        return self._database.read(lambda found: plans.touched(found, plan_id))

    def spared(self, since: datetime) -> dict[str, int]:
        """Count, by model, the planned cells that were not built, as what they read came out as it was."""
        return self._database.read(lambda found: plans.spared(found, since))

    def history(self, model: str, cells: IntervalSet | None = None) -> list[HistoryEntry]:
        """Read every plan, batch and pointer move that touched a model, the newest last.

        Args:
            model: which.
            cells: only what touched some of these.
        """
        return self._database.read(lambda found: history.history(found, model, cells))

    def open_promotions(self) -> list[Intent]:
        """Read the intents that were begun, and neither published nor withdrawn."""
        return self._database.read(promotions.open_intents)

    def promotion(self, plan_id: str) -> Intent | None:
        """Read the last intent of a plan, whatever became of it."""
        return self._database.read(lambda found: promotions.last_intent(found, plan_id))

    def moves_of(self, plan_id: str) -> list[PointerMove]:
        """Read the pointer moves of a plan: promotion, rollback, undo; the newest last."""
        return self._database.read(lambda found: moves.moves_of(found, plan_id))

    def moves_in(self, environment: str, after: int = 0) -> list[PointerMove]:
        """Read an environment's pointer moves after a number of the counter, the newest last."""
        return self._database.read(lambda found: moves.moves_in(found, environment, after))

    def last_moves(self, environment: str) -> list[PointerMove]:
        """Read the moves of an environment's last publication; empty when there was none."""
        return self._database.read(lambda found: moves.last_moves(found, environment))

    def collectable_versions(
        self, promise: timedelta, grace: timedelta = timedelta(0)
    ) -> list[Collectable]:
        """Read the versions that no pointer, promise, claim, open intent or reader needs.

        Args:
            promise: how long after a pointer's move the way back is kept open.
            grace: how long after a pointer left it readers may still be at it.
        """
        now = self._clock()
        needs = Needs(now - promise, now - self._lease, now - grace)
        found = self._database.read(lambda found: collecting.collectable_versions(found, needs))
        return [replace(one, path=self.located(one.path)) for one in found]
