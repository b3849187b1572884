"""What lies between a built plan and its publication, and the verbs that bring it nearer."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from backfill_assets.engine.project.gate import PolicyMissingError
from backfill_assets.engine.project.plan_age import waits_until
from backfill_assets.engine.review.answers import Answers, answers
from backfill_assets.engine.review.approvals import approval_state
from backfill_assets.engine.review.dual_runs import dual_run
from backfill_assets.planning.review.acceptance import with_acceptances
from backfill_assets.snapshots.stored_plan import OPEN, PlanStatus

if TYPE_CHECKING:
    from datetime import datetime

    from backfill_assets.engine.project.project import Project
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.snapshots.plan_check import Acceptance, PlanCheck


@dataclass(frozen=True, slots=True)
class BeforePublishing:
    """What a plan's checks have found, and what else its promotion waits for.

    Attributes:
        checks: their results, each with what a person has accepted of it.
        accepted: every acceptance.
        answers: of consumers, and what is awaited; of a plan that is built.
        lacking: approvals that the policy still requires, in words.
        runs: whether both histories of a dual run are still filled.
        is_built: whether all of it is; answers and approvals are for a plan that is.
        held: whether a person has paused or stopped it.
        expired: whether it is a proposal that is too old to be applied.
        outwaited: since when (UTC) it has waited for too long to be continued; None: it has not.
    """

    checks: tuple[PlanCheck, ...] = ()
    accepted: tuple[Acceptance, ...] = ()
    answers: Answers = field(default_factory=Answers)
    lacking: tuple[str, ...] = ()
    runs: bool = False
    is_built: bool = True
    held: bool = False
    expired: bool = False
    outwaited: datetime | None = None

    @property
    def verbs(self) -> tuple[str, ...]:
        """Give the verbs that bring a plan nearer to its publication, with what follows its id; none where none does."""
        if self.outwaited:
            return ("abandon",)
        if stops := next((check for check in self.checks if check.stops), None):
            return (f"accept {stops.model} {shlex.quote(stops.check)} --reason TEXT",)
        if not self.is_built:
            return self._building
        if self.runs:
            return ()
        agreeing = ("approve",) if self.lacking else ()
        if self.answers.unanswered:
            agreeing += (f"acknowledge {shlex.quote(self.answers.unanswered[0])}",)
        return agreeing if agreeing or self.answers.awaits else ("promote",)

    @property
    def _building(self) -> tuple[str, ...]:
        if self.expired:
            return ()
        return ("resume",) if self.held else ("apply",)

    def next_of(self, plan_id: str) -> str:
        """Write the line that names these commands for a plan; empty where there is none."""
        split = (verb.partition(" ") for verb in self.verbs)
        commands = [f"backfill {verb} {plan_id} {more}".rstrip() for verb, _, more in split]
        return f"Next: {', or '.join(commands)}" if commands else ""


def before_publishing(project: Project, plan: Plan) -> BeforePublishing:
    """Tell what a plan still waits for.

    Raises:
        PolicyError: the policy can't be used.
    """
    store, plan_id = project.store, plan.plan_id
    accepted = store.checks.acceptances(plan_id)
    checks = with_acceptances(store.checks.of_plan(plan_id), accepted)
    stored, until = store.plans.get(plan_id), waits_until(store, plan)
    outwaited = until if stored.status in OPEN and until <= project.clock() else None
    if outwaited or stored.status is not PlanStatus.BUILT:
        built = stored.status is PlanStatus.BUILT
        held = store.queue.control_of(plan_id).holds
        expired = stored.has_expired(project.clock())
        return BeforePublishing(
            checks, accepted, is_built=built, held=held, expired=expired, outwaited=outwaited
        )
    dual = dual_run(store, plan)
    runs = dual is not None and dual.lasts(project.clock())
    try:
        replies = answers(project, plan_id)
    except PolicyMissingError as error:
        return BeforePublishing(checks, accepted, Answers(awaits=(str(error),)), runs=runs)
    state = approval_state(project, plan_id)
    return BeforePublishing(checks, accepted, replies, state.lacking if state else (), runs)
