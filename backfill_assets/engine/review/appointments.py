"""Appointments of plans: made by a person who may promote, and kept when the time has come."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from backfill_assets.engine.project.gate import gate_in
from backfill_assets.engine.project.plan_age import waits_until
from backfill_assets.engine.review.acting import sign, verified_statements, who_may
from backfill_assets.engine.review.bound_parts import bound_parts
from backfill_assets.engine.review.dual_runs import refuse_early
from backfill_assets.engine.review.reviewed import built_plan, refuse_unbuilt, reviewed
from backfill_assets.errors import RequestError
from backfill_assets.intervals.instants import minute_text
from backfill_assets.planning.review.appointment import (
    Appointment,
    appointment_of,
    is_never,
    next_time,
)
from backfill_assets.planning.review.approval import Act
from backfill_assets.snapshots.stored_plan import PlanEventKind, PlanStatus

if TYPE_CHECKING:
    from backfill_assets.engine.project.gate import Gate
    from backfill_assets.engine.project.project import Project
    from backfill_assets.state.store import Store

_LATE = timedelta(days=1)
"""How long after its time a signed appointment is still kept."""

_NOT_BEFORE = "not before"
"""Stands among the parts that are signed for the instant of the appointment."""


def appoint_at(project: Project, plan_id: str, text: str, reason: str) -> Appointment | None:
    """Read when a plan is to be promoted, and ask for it; None for `NEVER`, which takes it back.

    Raises:
        RequestError: the text can't be read, or its instant is past; and as `appoint` says.
        UnknownZoneError: it names no time zone.
    """
    if is_never(text):
        end_appointment(project, plan_id, "taken back")
        return None
    return appoint(project, plan_id, next_time(text, project.clock()), reason)


def appoint(project: Project, plan_id: str, at: datetime, reason: str) -> Appointment:
    """Ask for the promotion of a plan at an instant; it replaces an earlier appointment.

    Where the policy names who may promote, the person signs now, for the plan as it is now: if it changes
    until then, the signature does not count.

    Raises:
        RequestError: it is not built, or may not wait for so long, or its dual run is not over by then.
        UnsignedActError: the policy names who may, and there is no way to sign here.
        SignatureError: the signature is not that of an allowed signer.
        NotEntitledError: the policy names others.
    """
    of = built_plan(project, plan_id)
    stored = project.store.plans.get(plan_id)
    refuse_unbuilt(stored)
    until = waits_until(project.store, stored)
    if at >= until:
        raise RequestError(
            found=f"plan {plan_id} may wait until {minute_text(until)}",
            expected=f"an earlier time than {minute_text(at)}",
            do="BACKFILL_PLAN_DAYS sets how long plans may wait",
        )
    refuse_early(project.store, of.plan, at)
    environment, who = of.plan.environment, project.who
    gate = gate_in(project, environment)
    if gate is not None and who_may(gate.policy, Act.PROMOTE, environment):
        review = of.under(gate)
        parts = {**bound_parts(review), _NOT_BEFORE: at.isoformat()}
        who = sign(review, Act.PROMOTE, at + _LATE, parts, reason).principal
    detail = {"at": at.isoformat()}
    event = project.store.plans.tell(
        plan_id, PlanEventKind.APPOINTED, who=who, why=reason, detail=detail
    )
    return Appointment(at, who, reason, event.number)


def refuse_time(plan_id: str, text: str | None) -> None:
    """Refuse to appoint a plan that is promoted already.

    Raises:
        RequestError: a time, or `NEVER`, is given.
    """
    if text is not None:
        raise RequestError(
            found=f"plan {plan_id} is promoted already, so --at {text!r} has no effect",
            do="leave --at out",
        )


def end_appointment(project: Project, plan_id: str, why: str) -> None:
    """Take the appointment of a plan back, if one stands, or say that it could not be kept."""
    if appointment_of(project.store.plans.events(plan_id)) is not None:
        project.store.plans.tell(plan_id, PlanEventKind.APPOINTMENT_ENDED, who=project.who, why=why)


def appointments_due(store: Store, now: datetime) -> dict[str, Appointment]:
    """Read the appointments whose time has come, by plan."""
    plan_ids = store.plans.begun_and_not_ended(
        PlanEventKind.APPOINTED, PlanEventKind.APPOINTMENT_ENDED, PlanStatus.BUILT
    )
    by_plan = {plan_id: appointment_of(store.plans.events(plan_id)) for plan_id in plan_ids}
    return {plan_id: each for plan_id, each in by_plan.items() if each and each.at <= now}


def appointed_principal(project: Project, plan_id: str, gate: Gate) -> str | None:
    """Name who has signed for the promotion of a plan just as it is now, at an instant that has come.

    The appointment must still stand: one that was taken back leaves its signature behind.
    """
    standing = appointment_of(project.store.plans.events(plan_id))
    if standing is None or project.clock() < standing.at:
        return None
    of = reviewed(project, plan_id, gate)
    may = who_may(gate.policy, Act.PROMOTE, of.plan.environment)
    for each in verified_statements(of, Act.PROMOTE, besides=_NOT_BEFORE):
        if each.void or not each.besides or each.signed.principal not in may:
            continue
        if datetime.fromisoformat(each.besides) <= project.clock():
            return each.signed.principal
    return None
