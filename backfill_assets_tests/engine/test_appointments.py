"""A plan is promoted at the time that a person has asked for, and everything is checked again then."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import dagster as dg
import pytest

from backfill_assets.engine.plans.operation import Operation
from backfill_assets.engine.plans.plan_verbs import promoting
from backfill_assets.engine.review.acting import NotEntitledError, UnsignedActError
from backfill_assets.engine.review.appointments import (
    appoint,
    appoint_at,
    appointments_due,
    end_appointment,
)
from backfill_assets.errors import RequestError
from backfill_assets.orchestration.follow_ups import promotions_due
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.planning.review.appointment import appointment_of
from backfill_assets.snapshots.stored_plan import PlanEventKind, PlanStatus
from backfill_assets_tests.builders import a_source
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.test_plans import OLD, ROWS, VISITS, changed
from backfill_assets_tests.engine.world import row
from backfill_assets_tests.signing import quick_gate, quick_sign

if TYPE_CHECKING:
    from backfill_assets.engine.project.project import Project
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets_tests.engine.world import World

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
CY, EVE = "cy@shop", "eve@shop"
TEXT = f"[[environments]]\nname = 'prod'\npromote = ['{CY}']\n"
GATE = quick_gate(TEXT, CY, EVE)


@pytest.fixture
def plans(world: World) -> Plans:
    world.begin(OLD, *ROWS)
    return Plans(world)


@pytest.fixture
def plan(world: World, plans: Plans) -> Plan:
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    plan = plans.make(OLD, restate=(Restatement(VISITS, "2024-01-08", "2024-01-08"),))
    assert plans.apply(OLD, plan).status is PlanStatus.BUILT
    return plan


def signed_by(plans: Plans, who: str | None) -> Project:
    signing: dict[str, Any] = {"gate": lambda: GATE, "sign": quick_sign(who) if who else None}
    return plans.project(OLD, **signing)


def test_the_sensor_asks_for_the_promotion_once_its_time_has_come(
    world: World, plans: Plans, plan: Plan
):
    appoint_at(plans.project(OLD), plan.plan_id, "03:00", "at night")
    world.clock.now += 2 * HOUR
    appoint_at(plans.project(OLD), plan.plan_id, "04:00", "later")
    at = {hour: world.clock.now.replace(hour=hour) for hour in (3, 4)}
    instance = dg.DagsterInstance.ephemeral()

    def requested(hour: int) -> list[dg.RunRequest]:
        return [*promotions_due(instance, world.store, at[hour])]

    assert requested(3) == []
    (request,) = requested(4)
    assert request.job_name == "promote"
    assert [*request.run_config["ops"].values()] == [
        {"config": {"plan": plan.plan_id, "who": "sensor"}}
    ]
    assert appointments_due(world.store, at[4])[plan.plan_id].why == "later"
    plans.promote(OLD, plan)
    assert requested(4) == []


def test_an_appointment_that_is_taken_back_or_could_not_be_kept_is_over(
    world: World, plans: Plans, plan: Plan
):
    project = plans.project(OLD)
    for end in (
        lambda: appoint_at(project, plan.plan_id, "never", ""),
        lambda: end_appointment(project, plan.plan_id, "an audit failed"),
    ):
        appoint(project, plan.plan_id, world.clock.now + HOUR, "")
        end()
        assert appointments_due(world.store, world.clock.now + DAY) == {}
        assert appointment_of(world.store.plans.events(plan.plan_id)) is None


def test_only_a_built_plan_has_an_appointment_and_no_later_one_than_it_may_wait(
    world: World, plans: Plans, plan: Plan
):
    project = plans.project(OLD)
    with pytest.raises(RequestError, match=r"may wait until 2024-01-18 .*BACKFILL_PLAN_DAYS"):
        appoint(project, plan.plan_id, world.clock.now + 8 * DAY, "")
    plans.promote(OLD, plan)
    with pytest.raises(RequestError, match="is promoted; expected a built plan"):
        appoint(project, plan.plan_id, world.clock.now + HOUR, "")


def test_who_may_promote_signs_for_the_time_and_nothing_is_signed_then(
    world: World, plans: Plans, plan: Plan
):
    at = world.clock.now + HOUR
    with pytest.raises(UnsignedActError):
        appoint(signed_by(plans, None), plan.plan_id, at, "")
    with pytest.raises(NotEntitledError, match="eve@shop may not promote"):
        appoint(signed_by(plans, EVE), plan.plan_id, at, "")
    appoint(signed_by(plans, CY), plan.plan_id, at, "")

    world.clock.now = at - timedelta(seconds=1)
    plans.given = {"gate": lambda: GATE}
    with pytest.raises(UnsignedActError):
        plans.promote(OLD, plan)
    world.clock.now = at
    plans.promote(OLD, plan)

    (promoted,) = (e for e in world.store.plans.events(plan.plan_id) if e.event == "promoted")
    assert promoted.who == CY


@pytest.mark.parametrize(
    "way", ["taken back", "another policy", "too late", "an earlier time is told"]
)
def test_a_signature_for_a_time_counts_for_nothing_else(
    world: World, plans: Plans, plan: Plan, way: str
):
    at = world.clock.now + HOUR
    appoint(signed_by(plans, CY), plan.plan_id, at, "")
    plans.given = {"gate": lambda: GATE}
    if way == "taken back":
        end_appointment(plans.project(OLD), plan.plan_id, "")
    elif way == "another policy":
        plans.given = {
            "gate": lambda: quick_gate(f"{TEXT}\n[[rules]]\napprovers = ['bob@shop']\n", CY)
        }
    elif way == "too late":
        at += 2 * DAY
    else:
        at = world.clock.now
        detail = {"at": at.isoformat()}
        world.store.plans.tell(plan.plan_id, PlanEventKind.APPOINTED, who="eve", detail=detail)
    world.clock.now = at

    with pytest.raises(UnsignedActError):
        promoting(Operation(project=plans.project(OLD), plan=plan))
