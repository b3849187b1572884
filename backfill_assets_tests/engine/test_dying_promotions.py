"""A promotion that dies is finished by whoever comes next, or was never begun: nobody sees a half."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from backfill_assets.engine.plans import promotion, publishing, stage_run
from backfill_assets.engine.plans.plan_verbs import rollback_plan, undo_plan
from backfill_assets.errors import RequestError
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.snapshots.environment import PROD, Environment
from backfill_assets.snapshots.publication import IntentStatus
from backfill_assets.snapshots.stored_plan import PlanEventKind, PlanStatus
from backfill_assets.state.publications import PointerMovedError
from backfill_assets.state.versions import TableLockedError
from backfill_assets_tests.builders import a_graph, a_source
from backfill_assets_tests.engine.dying import MortalStore, before_call, doomed
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.test_plans import (
    COSTS,
    MORE,
    OLD,
    ROWS,
    VISITS,
    a_correction,
    changed,
    costs,
    visits,
)
from backfill_assets_tests.engine.world import World, on, row, told
from backfill_assets_tests.state.building import FIRST, open_promotions

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from backfill_assets.engine.plans.outcome import Outcome
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.snapshots.publication import Publication


def nth(number: int, real: Callable[..., Any], die: Callable[..., Any]) -> Callable[..., Any]:
    """Do it some times, and die in place of the next one."""
    done = 0

    def stepped(*given: Any, **named: Any) -> Any:  # noqa: ANN401
        nonlocal done
        done += 1
        return die() if done > number else real(*given, **named)

    return stepped


def after_intent(store: MortalStore, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(publishing, "take", store.die)


def before_the_first_copy(store: MortalStore, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(publishing, "rewritten", store.die)


def between_two_copies(store: MortalStore, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(publishing, "rewritten", nth(1, publishing.rewritten, store.die))


def after_the_last_copy(store: MortalStore, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(store.publications, "publish", store.die)


@pytest.mark.parametrize(
    "death", [after_intent, before_the_first_copy, between_two_copies, after_the_last_copy]
)
def test_a_promotion_that_dies_is_seen_as_a_whole_or_not_at_all(
    world: World, monkeypatch: pytest.MonkeyPatch, death: Callable[..., None]
):
    plans = Plans(world)
    plan = a_correction(world, plans)
    old = world.rows(COSTS, "ds", "total"), world.rows(VISITS)
    with doomed(world, death, monkeypatch) as process:
        Plans(process).promote(OLD, plan)
    assert (world.rows(COSTS, "ds", "total"), world.rows(VISITS)) == old
    world.clock.pass_lease()
    world.clock.now = world.clock.now.replace(day=12)
    world.land(a_source(), *changed(row(8, 1, 99.0)), row(11, 1, 11.0))
    world.fill(OLD)
    decided = death is not after_intent
    if not decided:
        assert world.store.plans.get(plan.plan_id).status is PlanStatus.BUILT
        plans.promote(OLD, plan)
    assert world.store.plans.get(plan.plan_id).status is PlanStatus.PROMOTED
    assert open_promotions(world.store) == []
    assert world.rows(COSTS, "ds", "total") == [(on(n), 99 if n == 8 else n) for n in range(7, 12)]
    assert plans.make(OLD).is_empty


def test_a_dead_promotion_that_cannot_be_finished_keeps_no_other_work_from_going_on(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    plans = Plans(world)
    plan = a_correction(world, plans)
    with doomed(world, before_the_first_copy, monkeypatch) as process:
        Plans(process).promote(OLD, plan)
    world.clock.pass_lease()
    world.clock.now = world.clock.now.replace(day=12)
    world.land(a_source(), *changed(row(8, 1, 99.0)), row(11, 1, 11.0))
    with monkeypatch.context() as patch:
        patch.setattr(world.store.publications, "publish", pointers_have_moved)
        world.fill(OLD)
    assert world.rows(COSTS, "ds", "total") == [(on(n), n) for n in range(7, 12)]
    assert open_promotions(world.store) == []
    plans.promote(OLD, plan)
    assert world.rows(COSTS, "ds", "total") == [(on(n), 99 if n == 8 else n) for n in range(7, 12)]


def test_a_dead_promotion_that_a_living_run_could_not_finish_is_finished_by_the_next(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    plans = Plans(world)
    plan = a_correction(world, plans)
    with doomed(world, between_two_copies, monkeypatch) as process:
        Plans(process).promote(OLD, plan)
    world.clock.pass_lease()
    a_day_lands(world)
    with monkeypatch.context() as patch:
        patch.setattr(publishing, "take", nth(1, publishing.take, table_is_locked))
        assert told(world.fill(OLD)[VISITS])[-1] == "failed"

    world.fill(OLD)

    assert world.store.plans.get(plan.plan_id).status is PlanStatus.PROMOTED
    assert open_promotions(world.store) == []


def table_is_locked(*_: object, **__: object) -> None:
    raise TableLockedError("web__visits", "another", FIRST)


def test_a_promotion_goes_on_with_what_another_process_had_decided_before_it_died(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    plans = Plans(world)
    plan = a_correction(world, plans)
    heads: list[int] = []

    def another_dies() -> None:
        _dies_promoting(world, plan, after_the_last_copy, monkeypatch)
        heads.append(world.head(COSTS))

    before_call(promotion, "move_pointers", another_dies, monkeypatch)
    plans.promote(OLD, plan)

    assert [each.status for each in world.store.publications.promotions_of(plan.plan_id)] == [
        IntentStatus.DONE
    ]
    assert [world.pointer(COSTS).delta_version] == heads
    assert world.rows(COSTS, "ds", "total")[1] == (on(8), 99)


def test_a_publication_finishes_one_that_died_at_its_table_before_its_own(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    plans = Plans(world)
    world.begin(OLD, *ROWS)
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    eighth, ninth = (
        Restatement(VISITS, f"2024-01-{day:02}", f"2024-01-{day:02}") for day in (8, 9)
    )
    first = plans.published(OLD, restate=(eighth,))
    second = plans.make(OLD, restate=(ninth,))
    plans.apply(OLD, second)

    def another_dies() -> None:
        with doomed(world, before_the_first_copy, monkeypatch) as process:
            undo_plan(Plans(process).project(OLD), first)
        world.clock.pass_lease()

    before_call(promotion, "move_pointers", another_dies, monkeypatch)
    plans.promote(OLD, second)

    statuses = [world.store.plans.get(plan.plan_id).status for plan in (first, second)]
    assert statuses == [PlanStatus.UNDONE, PlanStatus.PROMOTED]
    assert [int(total) for _, total in world.rows(COSTS, "ds", "total")] == [7, 8, 9, 10]


@pytest.mark.parametrize("death", [before_the_first_copy, after_the_last_copy])
def test_a_promotion_that_died_taking_devs_table_over_is_finished_by_the_undo_in_dev(
    world: World, monkeypatch: pytest.MonkeyPatch, death: Callable[..., None]
):
    edited = a_graph(visits(), costs("cost + 1"))
    world.begin(OLD, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    plans = Plans(world)
    own = plans.published(edited, "dev")
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    plan = plans.make(edited, restate=(Restatement(VISITS, "2024-01-08", "2024-01-08"),))
    plans.apply(edited, plan)
    with doomed(world, death, monkeypatch) as process:
        Plans(process).promote(edited, plan)
    world.clock.pass_lease()

    undo_plan(plans.project(edited), own)

    assert world.store.plans.get(plan.plan_id).status is PlanStatus.PROMOTED
    assert [int(total) for _, total in world.rows(COSTS, "ds", "total")] == [8, 100, 10, 11]
    assert world.store.environments.own_pointers("dev") == {}
    assert open_promotions(world.store) == []
    assert plans.make(edited).is_empty


def test_a_plan_is_taken_back_though_another_run_finishes_its_dead_promotion_meanwhile(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    plans = Plans(world)
    plan = a_correction(world, plans)
    _dies_promoting(world, plan, after_the_last_copy, monkeypatch)
    other = replace(world, runs=500).open(OLD)
    before_call(
        world.store.publications,
        "begin_promotion",
        lambda: publishing.finish_publication(other, plan.plan_id),
        monkeypatch,
    )

    assert rollback_plan(plans.project(OLD), plan).status is PlanStatus.ROLLED_BACK

    assert [int(total) for _, total in world.rows(COSTS, "ds", "total")] == [7, 8, 9, 10]


def test_a_promotion_whose_copy_fails_leaves_nothing_and_can_be_run_again(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    plans = Plans(world)
    plan = a_correction(world, plans)
    with monkeypatch.context() as patch:
        patch.setattr(publishing, "rewritten", nth(1, publishing.rewritten, disk_is_full))
        with pytest.raises(OSError, match="no space"):
            plans.promote(OLD, plan)
    assert open_promotions(world.store) == []
    a_day_lands(world)
    world.fill(OLD, VISITS)

    plans.promote(OLD, plan)

    assert world.rows(COSTS, "ds", "total")[1] == (on(8), 99)


def _dies_promoting(
    world: World, plan: Plan, death: Callable[..., None], patch: pytest.MonkeyPatch
) -> None:
    with doomed(world, death, patch) as process:
        Plans(process).promote(OLD, plan)
    world.clock.pass_lease()


def disk_is_full(*_: object, **__: object) -> int:
    raise OSError("no space left on device")


def test_the_history_of_a_plan_names_what_a_dead_promotion_had_carried_over(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    plans = Plans(world)
    world.begin(OLD, *ROWS)
    plan = plans.make(MORE)
    plans.apply(MORE, plan)
    a_day_lands(world)
    world.fill(MORE)
    with doomed(world, after_the_last_copy, monkeypatch) as process:
        Plans(process).promote(MORE, plan)
    world.clock.pass_lease()
    a_day_lands(world)
    world.fill(MORE)
    assert world.store.plans.get(plan.plan_id).status is PlanStatus.PROMOTED
    [carried] = [
        event.detail
        for event in world.store.plans.events(plan.plan_id)
        if event.event == PlanEventKind.APPENDED
    ]
    assert carried["cells"] == {VISITS: "2024-01-11"}


def a_day_lands(world: World) -> None:
    world.clock.now += timedelta(days=1)
    over = range(11, world.clock.now.day)
    world.land(a_source(), *ROWS, *(row(day, 1, float(day)) for day in over))


def pointers_have_moved(publication: Publication, *_: object) -> int:
    raise PointerMovedError(publication.plan_id, publication.environment, (VISITS,))


def before_it_is_closed(store: MortalStore, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(stage_run, "close", store.die)


@pytest.mark.parametrize("death", [before_the_first_copy, after_the_last_copy])
@pytest.mark.parametrize("take_back", [rollback_plan, undo_plan])
def test_a_way_back_that_dies_after_its_decision_is_ended_by_the_same_command(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    death: Callable[..., None],
    take_back: Callable[..., Outcome],
):
    plans = Plans(world)
    world.begin(OLD, *ROWS)
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    plan = plans.published(OLD, restate=(Restatement(VISITS),))
    with doomed(world, death, monkeypatch) as process:
        take_back(Plans(process).project(OLD), plan)
    world.clock.pass_lease()

    back = take_back(plans.project(OLD), plan)

    status = PlanStatus.ROLLED_BACK if take_back is rollback_plan else PlanStatus.UNDONE
    assert back.status is world.store.plans.get(plan.plan_id).status is status
    last = world.store.publications.promotion(plan.plan_id)
    assert last is not None
    assert back.number == last.published
    assert [int(total) for _, total in world.rows(COSTS, "ds", "total")] == [7, 8, 9, 10]
    assert open_promotions(world.store) == []


def test_an_undo_of_another_version_that_dies_before_it_is_closed_leaves_no_workspace(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    plans = Plans(world)
    world.begin(OLD, *ROWS)
    plan = plans.published(MORE)
    before = world.store.environments.by_name()
    with doomed(world, before_it_is_closed, monkeypatch) as process:
        undo_plan(Plans(process).project(MORE), plan)
    world.clock.pass_lease()
    assert world.store.environments.by_name() != before

    assert undo_plan(plans.project(MORE), plan).status is PlanStatus.UNDONE

    assert world.store.environments.by_name() == before
    with pytest.raises(RequestError, match="is undone"):
        undo_plan(plans.project(MORE), plan)
