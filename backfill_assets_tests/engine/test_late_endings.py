"""How a refresh of late data says that it must come again; without any Spark."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from backfill_assets.engine.automatic.late_plan import Refreshed, refresh_late
from backfill_assets.engine.plans.moving import ConcurrentPublicationError
from backfill_assets.engine.plans.operation import Operation
from backfill_assets.engine.plans.outcome import Outcome
from backfill_assets.engine.plans.plan_verbs import queue_plan, start_applying
from backfill_assets.engine.project.events import Failed
from backfill_assets.engine.project.plan_age import waits_until
from backfill_assets.engine.review.evidence import EvidenceNotWrittenError
from backfill_assets.errors import BackfillAssetsError
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.planning.plan.plan_json import read_plan
from backfill_assets.snapshots.failure import FailureKind
from backfill_assets.snapshots.queued_plan import Control
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets.state.database import StateBusyError
from backfill_assets_tests.builders import day, days
from backfill_assets_tests.engine.queue_world import QueueWorld
from backfill_assets_tests.engine.test_looked_again import SUMS, VISITS, filled, land

if TYPE_CHECKING:
    from pathlib import Path

    from backfill_assets.engine.project.project import Project
    from backfill_assets.planning.plan.plan import Plan

_APPLIED = "backfill_assets.engine.automatic.automatic_plan.apply_plan"
LEFT = CellsByModel({"web.visits": days(9)})


@pytest.fixture
def world(tmp_path: Path) -> QueueWorld:
    world = QueueWorld.of(tmp_path, VISITS, SUMS)
    land(world, *range(1, 11))
    filled(world)
    land(world, 9)
    return world


def refreshed(world: QueueWorld, *besides: str) -> Refreshed:
    return refresh_late(world.run(), besides)


def test_late_data_whose_plans_were_all_given_up_is_not_published(
    world: QueueWorld, monkeypatch: pytest.MonkeyPatch
):
    def fails(*_: object) -> Outcome:
        raise BackfillAssetsError("somebody holds the table")

    monkeypatch.setattr(_APPLIED, fails)
    done = refreshed(world)

    assert done.held == {"web.visits": days(9)}
    assert not done.promoted
    assert not done.ended


@pytest.mark.parametrize(
    "error",
    [
        StateBusyError("state.db", 30),
        EvidenceNotWrittenError("p1", "evidence", OSError(28, "No space left on device"), "then"),
        ConcurrentPublicationError("p1", "prod"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_late_plan_that_is_held_up_for_a_reason_that_may_pass_is_left_to_the_next_refresh(
    world: QueueWorld, monkeypatch: pytest.MonkeyPatch, error: BackfillAssetsError
):
    def begins(project: Project, plan: Plan, _: str) -> Outcome:
        start_applying(Operation(project=project, plan=plan))
        raise error

    def fails(*_: object) -> Outcome:
        raise error

    monkeypatch.setattr(_APPLIED, begins)
    first = refreshed(world)
    monkeypatch.setattr(_APPLIED, fails)
    again = refreshed(world)

    assert again.plan_id == first.plan_id
    for done in (first, again):
        assert not done.ended
        [note] = done.notes
        assert "the next refresh continues it" in note
    assert [plan.status for plan in world.store.plans.latest()] == [PlanStatus.APPLYING]


@pytest.mark.parametrize(
    ("kind", "ended"), [(FailureKind.AUDIT, True), (FailureKind.TRANSIENT, False)]
)
def test_what_fails_for_good_need_not_come_again_and_what_may_pass_does(
    world: QueueWorld, monkeypatch: pytest.MonkeyPatch, kind: FailureKind, *, ended: bool
):
    def fails(*_: object) -> Outcome:
        failed = Failed("web.visits", "b1", days(9), "no", kind=kind)
        events = {"web.visits": (failed,)}
        return Outcome(PlanStatus.APPLYING, events, LEFT)

    monkeypatch.setattr(_APPLIED, fails)

    assert refreshed(world).ended is ended


def test_what_is_not_done_by_itself_keeps_all_that_would_reach_it(
    world: QueueWorld, monkeypatch: pytest.MonkeyPatch
):
    begun: list[str] = []

    def counts(_: Project, plan: Plan, __: str) -> Outcome:
        begun.append(plan.plan_id)
        raise BackfillAssetsError("no more than begun")

    monkeypatch.setattr(_APPLIED, counts)
    done = refreshed(world, "web.sums")
    assert not begun
    assert done.ended
    assert done.held == {"web.visits": days(9)}

    refreshed(world)
    assert begun


@pytest.mark.parametrize("control", [Control.PAUSED, Control.STOPPED, Control.CANCELLED])
def test_a_late_plan_that_somebody_holds_is_no_reason_to_come_again(
    world: QueueWorld, monkeypatch: pytest.MonkeyPatch, control: Control
):
    def begins(project: Project, plan: Plan, _: str) -> Outcome:
        queue_plan(Operation(project=project, plan=plan))
        world.store.queue.control_plan(plan.plan_id, control, "ann")
        return Outcome(PlanStatus.APPLYING, {}, LEFT)

    monkeypatch.setattr(_APPLIED, begins)
    meanwhile = refreshed(world)
    monkeypatch.setattr(_APPLIED, None)  # nobody asks it again
    again = refreshed(world)

    for done in (meanwhile, again):
        assert done.ended
        [note] = done.notes
        assert f"plan {done.plan_id} is {control.words}" in note


def begun(world: QueueWorld, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let a refresh begin a plan, and leave it; give its id."""

    def begins(project: Project, plan: Plan, _: str) -> Outcome:
        queue_plan(Operation(project=project, plan=plan))
        return Outcome(PlanStatus.APPLYING, {}, LEFT)

    monkeypatch.setattr(_APPLIED, begins)
    plan_id = refreshed(world).plan_id
    assert plan_id is not None
    return plan_id


def test_a_late_plan_that_was_paused_for_too_long_is_given_up_and_another_one_is_made(
    world: QueueWorld, monkeypatch: pytest.MonkeyPatch
):
    paused = begun(world, monkeypatch)
    world.store.queue.control_plan(paused, Control.PAUSED, "ann")
    world.now = waits_until(world.store, world.store.plans.get(paused))

    again = refreshed(world)

    assert world.store.plans.get(paused).status is PlanStatus.ABANDONED
    assert again.plan_id not in {None, paused}
    assert f"plan {paused} has waited for too long, and was abandoned" in again.notes


def test_a_late_plan_that_can_not_be_given_up_now_is_left_to_the_next_refresh(
    world: QueueWorld, monkeypatch: pytest.MonkeyPatch
):
    plan_id = begun(world, monkeypatch)
    stored = world.store.plans.get(plan_id)
    world.now = waits_until(world.store, stored) + timedelta(minutes=1)
    world.open("web.visits", day(9), plan=read_plan(stored.content))

    done = refreshed(world)

    assert not done.ended
    assert done.held == {"web.visits": days(9)}
    world.pass_by(minutes=2)  # the batch has died
    refreshed(world)
    assert world.store.plans.get(plan_id).status is PlanStatus.ABANDONED


def test_late_data_is_asked_for_once_while_its_plan_is_paused_and_again_when_it_goes_on(
    world: QueueWorld, monkeypatch: pytest.MonkeyPatch
):
    plan = begun(world, monkeypatch)

    marks = [world.late_mark()]
    for _ in range(2):
        world.pass_by(minutes=1)
        world.store.queue.control_plan(plan, Control.PAUSED, "ann")
        marks.append(world.late_mark())
        assert f"its plan {plan} is paused" in " ".join(world.look().notes)
        assert world.late_mark() == marks[-1]

        world.pass_by(minutes=1)
        world.store.queue.control_plan(plan, Control.RUNNING, "ann")
        marks.append(world.late_mark())

    # A run that met the pause has ended well, so its mark is done: what goes on needs another one.
    assert len(set(marks)) == len(marks)
