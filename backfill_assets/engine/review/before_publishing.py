"""What lies between a built plan and its publication, and the verbs that bring it nearer."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from backfill_assets.engine.project.gate import PolicyMissingError
from backfill_assets.engine.project.plan_age import waits_until
from backfill_assets.engine.review.answers import Answers, answers
from backfill_assets.engine.review.approvals import approval_state
from backfill_assets.errors import BackfillAssetsError
from backfill_assets.evidence.manifest import EXPIRED
from backfill_assets.planning.review.acceptance import with_acceptances
from backfill_assets.planning.review.dual_run import dual_run_of
from backfill_assets.render.plan_life import commands_of, next_commands, next_line
from backfill_assets.snapshots.stored_plan import OPEN, PlanStatus, dropped_at

if TYPE_CHECKING:
    from datetime import datetime

    from backfill_assets.engine.project.project import Project
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.snapshots.plan_check import Acceptance, PlanCheck
    from backfill_assets.snapshots.queued_plan import Control


@dataclass(frozen=True, slots=True)
class BeforePublishing:
    """What a plan's checks have found, and what else its promotion waits for.

    Attributes:
        plan_id: the plan.
        status: where its life stands.
        control: what a person has said of it.
        checks: their results, each with what a person has accepted of it.
        accepted: every acceptance.
        answers: of consumers, and what is awaited; of a plan that is built.
        lacking: approvals that the policy still requires, in words.
        runs: whether both histories of a dual run are still filled.
        expired: whether it is a proposal that is too old to be applied.
        outwaited: since when (UTC) it has waited for too long to be continued; None: it has not.
        dropped: whether the environment that it had changed was dropped.
    """

    plan_id: str
    status: PlanStatus
    control: Control
    checks: tuple[PlanCheck, ...] = ()
    accepted: tuple[Acceptance, ...] = ()
    answers: Answers = field(default_factory=Answers)
    lacking: tuple[str, ...] = ()
    runs: bool = False
    expired: bool = False
    outwaited: datetime | None = None
    dropped: bool = False

    @property
    def verbs(self) -> tuple[str, ...]:
        """Give the verbs that bring a plan nearer to its publication, with what follows its id; none where none does."""
        if self.outwaited:
            return ("abandon",)
        if stops := next((check for check in self.checks if check.stops), None):
            return (f"accept {stops.model} {shlex.quote(stops.check)} --reason TEXT",)
        if self.expired:
            return ()
        # While both histories of a dual run are filled, `apply` compares them.
        if self.status is not PlanStatus.BUILT or self.runs:
            return (self.control.goes_on_by,)
        agreeing = ("approve",) if self.lacking else ()
        if self.answers.unanswered:
            agreeing += (f"acknowledge {shlex.quote(self.answers.unanswered[0])}",)
        return agreeing if agreeing or self.answers.awaits else ("promote",)

    @property
    def commands(self) -> tuple[str, ...]:
        """Every command that may come next, the likeliest first.

        A plan that has waited for too long can only be given up; nothing can be done about one whose environment was dropped.
        """
        if self.dropped:
            return ()
        if self.outwaited:
            return commands_of(self.plan_id, self.verbs)
        status = EXPIRED if self.expired else self.status.value
        return next_commands(self.plan_id, status, self.control, self.verbs)

    @property
    def next_line(self) -> str:
        """The line that names the commands which bring the plan nearer to its publication; empty where there is none."""
        return next_line(commands_of(self.plan_id, self.verbs))


def before_publishing(project: Project, plan: Plan) -> BeforePublishing:
    """Tell what a plan still waits for.

    Raises:
        PolicyError: the policy can't be used.
    """
    store, plan_id, now = project.store, plan.plan_id, project.clock()
    accepted = store.checks.acceptances(plan_id)
    stored, until = store.plans.get(plan_id), waits_until(store, plan)
    events = store.plans.events(plan_id)
    before = BeforePublishing(
        plan_id,
        stored.status,
        store.queue.control_of(plan_id),
        with_acceptances(store.checks.of_plan(plan_id), accepted),
        accepted,
        expired=stored.has_expired(now),
        outwaited=until if stored.status in OPEN and until <= now else None,
        dropped=dropped_at(events) is not None,
    )
    if before.outwaited or before.status is not PlanStatus.BUILT:
        return before
    dual = dual_run_of(plan.request.dual_run_days, events)
    before = replace(before, runs=dual is not None and dual.lasts(now))
    try:
        replies = answers(project, plan_id)
    except PolicyMissingError as error:
        return replace(before, answers=Answers(awaits=(str(error),)))
    state = approval_state(project, plan_id)
    return replace(before, answers=replies, lacking=state.lacking if state else ())


def commands_now(project: Project, plan: Plan) -> tuple[str, ...]:
    """List the commands that may come next; where its approvals can't be judged, `approvals` says why."""
    try:
        return before_publishing(project, plan).commands
    except BackfillAssetsError:  # the policy or a key can't be used, or `ssh-keygen` is not there
        return commands_of(plan.plan_id, ("approvals",))
