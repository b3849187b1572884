"""Write the state of plans: propose, open a workspace, publish, abandon, collect.

Each method is one transaction.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from backfill_assets.state import (
    clock_back,
    collecting,
    comparisons,
    environments,
    owed,
    plans,
    promotions,
    publishing,
    timings,
    workspaces,
)
from backfill_assets.state.database import StateBusyError, StateUnavailableError
from backfill_assets.state.reader import StateReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.snapshots.environment import Environment
    from backfill_assets.snapshots.publication import Intent, Publication
    from backfill_assets.snapshots.stored_plan import PlanEvent, PlanStatus, StoredPlan
    from backfill_assets.snapshots.timing import Timing
    from backfill_assets.snapshots.workspace import WorkspaceRequest
    from backfill_assets.state.locks import CommitLock


class PlanStore(StateReader):
    """What plans write; see `Store`."""

    # Environments

    def save_environment(self, environment: Environment) -> None:
        """Create an environment, or change all that is said of it."""
        self._database.write(lambda found: environments.save_environment(found, environment))

    def touch_environment(self, name: str, expires_at: datetime | None) -> None:
        """Let an environment live until then; None for ever.

        Raises:
            UnknownEnvironmentError: there is none of this name.
        """
        self._database.write(lambda found: environments.touch_environment(found, name, expires_at))

    def drop_environment(self, name: str) -> None:
        """Forget an environment and its pointers; its tables stay until they are collected.

        Raises:
            UnknownEnvironmentError: there is none of this name.
            RequestError: it is protected, another one follows it, or it is being
                published to.
        """
        now = self._clock()
        self._database.write(lambda found: environments.drop_environment(found, name, now))

    # Plans

    def save_plan(self, plan: StoredPlan) -> None:
        """Keep a plan; the same one saved again stays as it is, its status too.

        Raises:
            RequestError: another content is kept under its id.
        """
        self._database.write(lambda found: plans.save_plan(found, plan))

    def set_plan_status(
        self, plan_id: str, expected: PlanStatus | Iterable[PlanStatus], new: PlanStatus
    ) -> None:
        """Move a plan's status on, if it still stands where the caller believes.

        Raises:
            UnknownPlanError: there is no such plan.
            RequestError: it stands elsewhere.
        """
        allowed = (expected,) if isinstance(expected, str) else tuple(expected)
        self._database.write(lambda found: plans.set_status(found, plan_id, allowed, new))

    def tell(
        self,
        plan_id: str,
        event: str,
        *,
        who: str,
        why: str = "",
        detail: Mapping[str, Any] | None = None,
    ) -> PlanEvent:
        """Add to the history of a plan.

        Raises:
            UnknownPlanError: there is no such plan.
        """
        told = plans.Told(plan_id, event, who, why, detail or {})
        now = self._clock()
        return self._database.write(lambda found: plans.tell(found, told, now))

    def keep_timing(self, timing: Timing) -> None:
        """Keep what an operation took; only the last thousand stay.

        Estimates alone rest on it, so a state that can't be written now goes without: what the
        operation has done is done.
        """
        now = self._clock()
        with suppress(StateBusyError, StateUnavailableError):
            self._database.write(lambda found: timings.keep_timing(found, timing, now))

    def keep_comparison(self, plan_id: str, key: str, found: str) -> None:
        """Keep what a comparison of a plan has found, under a key of all that it has read.

        A state that can't be written now goes without: the comparison is then made once more.
        """
        now = self._clock()
        with suppress(StateBusyError, StateUnavailableError):
            self._database.write(
                lambda held: comparisons.keep_comparison(held, plan_id, key, found, now)
            )

    # Workspaces and what is owed

    def open_workspace(self, request: WorkspaceRequest) -> Environment:
        """Open a plan's workspace: environment, pointers, owners, owed marks; at once or not at all.

        Opening one that is open already adds what is missing and changes nothing else, so a plan
        that is applied again resumes.

        Raises:
            UnknownEnvironmentError: the environment to follow is not there.
            RequestError: a table that it would write belongs to somebody else.
            VersionCollectingError: one is being deleted.
            RequestError: the plan's life is over.
        """
        now = self._clock()
        models = tuple(replace(one, path=self.place(one.path)) for one in request.models)
        kept = replace(request, models=models)
        return self._database.write(lambda found: workspaces.open_workspace(found, kept, now))

    def drop_workspace(self, plan_id: str) -> None:
        """Forget a plan's workspace, its pointers and what it owed; tables stay for collection.

        Does nothing where there is none.

        Raises:
            CellsClaimedError: a live batch is building in it.
            PromotionPendingError: its promotion has begun; finish it instead.
        """
        now = self._clock()
        self._database.write(
            lambda found: workspaces.drop_workspace(found, plan_id, now, self._lease)
        )

    def mark_owed(
        self,
        version: str,
        cells: IntervalSet,
        reason: str,
        *,
        plan_id: str | None = None,
        environment: str | None = None,
    ) -> None:
        """Remember cells that must be rebuilt, until a batch that begins later has.

        Args:
            version: of which table.
            cells: which.
            reason: in words.
            plan_id: the plan that declares them wrong; they are forgotten if it is abandoned.
            environment: who owes them; None for everyone who reads the table.
        """
        mark = owed.Mark(reason, plan_id, environment)
        self._database.write(lambda found: owed.mark_owed(found, version, cells, mark))

    def mark_owed_everywhere(
        self, model: str, cells: IntervalSet, reason: str, *, plan_id: str | None = None
    ) -> tuple[str, ...]:
        """Remember cells that must be rebuilt in every version of a model, and say in which."""
        mark = owed.Mark(reason, plan_id, None)
        return self._database.write(
            lambda found: owed.mark_owed_everywhere(found, model, cells, mark)
        )

    # Publication

    def begin_promotion(self, intent: Intent) -> Intent:
        """Write the intent to publish, before any lock is taken.

        The same plan's intent of the same kind is taken over when its holder went silent, with the
        steps that it had noted; or given back when the holder is the same.

        Returns:
            The intent with its number.

        Raises:
            TableLockedError: another live intent names one of its tables.
            PromotionPendingError: a dead one does: finish that first.
            UnknownVersionError: no such version.
        """
        now = self._clock()
        # By itself: what is refused is undone.
        self._database.write(lambda found: clock_back.bring_back(found, now, self._lease))
        return self._database.write(lambda found: promotions.begin(found, intent, now, self._lease))

    def note_promotion(self, intent: Intent, steps: Mapping[str, Any]) -> None:
        """Note how far a promotion got, for whoever must finish it.

        Raises:
            PromotionTakenOverError: it is closed, or another run's by now.
        """
        now = self._clock()
        self._database.write(lambda found: promotions.note(found, intent, steps, now))

    def withdraw_promotion(self, intent: Intent) -> None:
        """Close an intent of which nothing was copied; its run's locks are released.

        Raises:
            PromotionTakenOverError: it is closed, or another run's by now.
        """
        self._database.write(lambda found: promotions.withdraw(found, intent))

    def publish(self, publication: Publication, locks: Iterable[CommitLock] = ()) -> int:
        """Move every pointer of a publication at once: before, nobody sees anything of it.

        In the same transaction ready records are restamped (only what really differs from what was
        published has changed), owed marks of what was rebuilt are struck off, the history is
        written, the plan's and the environment's rows say so, a promoted plan's workspace is
        forgotten, the locks are released, the intent is done.

        Args:
            publication: what moves.
            locks: the commit locks that the holder took for it.

        Returns:
            The number of the publication; of the earlier one when it is done already.

        Raises:
            PointerMovedError: a pointer is not where the plan saw it.
            PinMovedError: another environment has published more in a table that this one reads.
            LostLeaseError: a lock was taken over.
            PromotionTakenOverError: the intent is withdrawn, or another run's by now.
            VersionCollectingError: a table is being deleted.
        """
        now, held = self._clock(), tuple(locks)
        return self._database.write(lambda found: publishing.publish(found, publication, held, now))

    # Collection

    def mark_collecting(
        self, version: str, promise: timedelta, grace: timedelta = timedelta(0)
    ) -> None:
        """Mark a version as being deleted: no pointer may move to it any more.

        Args:
            version: which.
            promise: how long after a pointer's move the way back is kept open.
            grace: how long after a pointer left it readers may still be at it.

        Raises:
            UnknownVersionError: there is none.
            VersionNeededError: somebody needs it by now.
        """
        now = self._clock()
        needs = collecting.Needs(now - promise, now - self._lease, now - grace)
        self._database.write(lambda found: collecting.mark_collecting(found, version, needs, now))

    def forget_version(self, version: str) -> None:
        """Forget a version whose table is deleted: its records, owed marks, lock and itself.

        Raises:
            VersionNeededError: it was not marked as collecting.
        """
        self._database.write(lambda found: collecting.forget_version(found, version))
