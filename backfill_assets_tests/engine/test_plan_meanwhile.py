"""What happens beside a plan: other plans, ordinary fills, edits, and rows that come and go."""

# ruff: noqa: S608 - the SQL is the tests' own

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.engine.automatic.late_plan import refresh_late
from backfill_assets.engine.fill.observing import observe
from backfill_assets.engine.plans import promotion, publishing, stage_run
from backfill_assets.engine.plans.plan_verbs import abandon_plan, undo_plan
from backfill_assets.engine.plans.refusals import (
    PlanConflictError,
    StalePlanError,
)
from backfill_assets.engine.project.batch_policy import BatchPolicy
from backfill_assets.engine.project.events import Failed, Waiting
from backfill_assets.errors import RequestError
from backfill_assets.intervals import Hourly
from backfill_assets.models.audit import accepted_range
from backfill_assets.models.column import Column
from backfill_assets.models.kind import IncrementalByTimeRange
from backfill_assets.models.source import TimeColumns
from backfill_assets.planning.plan.plan_json import read_plan
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.snapshots.environment import PROD, Environment
from backfill_assets.snapshots.snapshot import snapshots_of
from backfill_assets.snapshots.stored_plan import PlanEventKind, PlanStatus
from backfill_assets_tests.builders import a_graph, a_model, a_source, days
from backfill_assets_tests.engine.dying import MortalStore, before, before_call, doomed
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.test_plans import (
    CADENCE,
    COSTS,
    DOUBLE,
    MORE,
    OLD,
    ROWS,
    SUM,
    VISITS,
    changed,
    costs,
    summed,
    total_of_visits,
    visits,
)
from backfill_assets_tests.engine.world import ended, on, row, text, told

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.models.graph import Graph
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.snapshots.batch import BatchRequest, OpenBatch
    from backfill_assets_tests.engine.world import World

FIRST_HOUR = "2024-01-10T22:00:00Z"
EIGHTH = Restatement(VISITS, "2024-01-08", "2024-01-08")


@pytest.fixture
def plans(world: World) -> Plans:
    return Plans(world)


def test_days_that_are_filled_while_a_plan_is_reviewed_are_carried_over(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    plan = plans.make(MORE)
    plans.apply(MORE, plan)
    a_day_passes(world)
    world.fill(MORE)
    assert [int(cost) for _, cost in world.rows(VISITS, "ds", "cost")] == [7, 8, 9, 10, 11]
    promoted = plans.promote(MORE, plan)
    assert text(MORE, VISITS, promoted.carried[VISITS]) == "2024-01-11"
    assert [int(value) for _, value in world.rows(VISITS, "ds", "double")] == [14, 16, 18, 20, 22]
    assert told(world.fill(MORE)[COSTS]) == ["skipped"]
    assert plans.make(MORE).is_empty


def test_gaps_of_a_plan_that_were_filled_before_it_was_applied_are_not_built_again(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    world.clock.now += timedelta(days=1)
    world.land(a_source(), *changed(row(8, 1, 80.0)), row(11, 1, 11.0))
    observe(world.open(OLD), OLD.order)
    plan = plans.make(OLD)
    world.fill(OLD)

    plans.apply(OLD, plan)
    plans.promote(OLD, plan)

    planned_cells = {planned.model: planned.certain for planned in plan.models}
    assert text(OLD, VISITS, planned_cells[VISITS]) == "2024-01-08, 2024-01-11"
    batches = [batch for batch in world.store.batches.latest() if batch.plan_id]
    assert [text(OLD, batch.model, batch.stretches) for batch in batches] == ["2024-01-08"] * 2
    assert [int(cost) for _, cost in world.rows(COSTS, "ds", "total")] == [7, 80, 9, 10, 11]


def test_of_what_a_plan_restates_alone_is_owed_and_what_reads_equal_cells_is_spared(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    world.clock.now += timedelta(days=1)
    world.land(a_source(), *changed(row(8, 1, 80.0)), row(11, 1, 11.0))
    plan = plans.make(OLD, restate=(Restatement(VISITS, "2024-01-08", "2024-01-09"),))

    done = plans.apply(OLD, plan)

    assert done.spared == {COSTS: 1}
    owed = world.store.views.of(PROD).owed
    assert {name: text(OLD, name, cells) for name, cells in owed.items()} == {
        VISITS: "2024-01-08..2024-01-09 (2)"
    }


def test_a_model_of_which_a_plan_only_fills_gaps_is_neither_judged_nor_called_spared(
    world: World, plans: Plans
):
    other = a_model("web.other", cadence=CADENCE)
    old, new = (a_graph(visits(), costs(column), other) for column in ("cost", "2 * cost"))
    world.begin(old, *ROWS)
    a_day_passes(world)
    plan = plans.make(new, expect=(("web.other", "rows added within 0%"),))

    done = plans.apply(new, plan)

    assert world.ready(new, "web.other") == "2024-01-07..2024-01-11 (5)"
    assert done.spared == {}
    assert {each.model for each in world.store.checks.of_plan(plan.plan_id)} == {COSTS}


def test_a_gap_that_was_filled_before_a_plan_restates_it_is_built_again(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    a_day_passes(world)
    plan = plans.make(OLD, restate=(Restatement(VISITS, "2024-01-10", "2024-01-11"),))
    world.fill(OLD)

    plans.apply(OLD, plan)

    batches = [batch for batch in world.store.batches.latest() if batch.plan_id]
    built = {batch.model: text(OLD, batch.model, batch.stretches) for batch in batches}
    assert built[VISITS] == "2024-01-10..2024-01-11 (2)"


def test_a_gap_that_was_filled_by_the_old_definition_is_built_by_the_one_that_is_published(
    world: World, plans: Plans
):
    edited = a_graph(visits(), costs("cost + 1"))
    world.begin(OLD, *ROWS)
    a_day_passes(world)
    plan = plans.make(edited, cutoff="2024-01-10", reason="agreed")
    world.fill(OLD)

    plans.apply(edited, plan)
    plans.promote(edited, plan)

    assert [int(total) for _, total in world.rows(COSTS, "ds", "total")] == [7, 8, 9, 11, 12]


def a_day_passes(world: World) -> None:
    world.clock.now += timedelta(days=1)
    world.land(a_source(), *ROWS, row(11, 1, 11.0))


def test_a_promotion_is_refused_where_a_planned_cell_fails_on_a_day_that_is_carried_over(
    world: World, plans: Plans
):
    audits = [accepted_range("total", None, 100)]
    old = summed()
    new = a_graph(visits(DOUBLE), total_of_visits("+ 1", audits=audits))
    world.begin(old, *ROWS)
    plan = plans.make(new)
    assert plans.apply(new, plan).status is PlanStatus.BUILT
    world.clock.now += timedelta(days=1)
    world.land(a_source(), *ROWS, row(11, 1, 99.0))
    world.fill(old, VISITS)

    with pytest.raises(RequestError, match="is not completely built"):
        plans.promote(new, plan)

    assert world.rows(SUM, "total") == [(Decimal(34),)]
    assert [int(cost) for _, cost in world.rows(VISITS, "ds", "cost")] == [7, 8, 9, 10, 99]


def before_pointers_move(store: MortalStore, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(promotion, "move_pointers", store.die)


def test_a_promotion_tells_all_that_is_carried_over_also_by_a_process_that_died(
    world: World, plans: Plans, monkeypatch: pytest.MonkeyPatch
):
    world.begin(OLD, *ROWS)
    plan = plans.make(MORE)
    plans.apply(MORE, plan)
    for day in (11, 12):
        world.clock.now += timedelta(days=1)
        landed = [row(each, 1, float(each)) for each in range(11, day + 1)]
        world.land(a_source(), *ROWS, *landed)
        world.fill(MORE)
        with doomed(world, before_pointers_move, monkeypatch) as process:
            Plans(process).promote(MORE, plan)
        world.clock.pass_lease()

    promoted = plans.promote(MORE, plan)

    assert text(MORE, VISITS, promoted.carried[VISITS]) == "2024-01-11..2024-01-12 (2)"
    (told_of,) = [
        event.detail["cells"]
        for event in world.store.plans.events(plan.plan_id)
        if event.event == PlanEventKind.APPENDED
    ]
    assert told_of[VISITS] == "2024-01-11..2024-01-12 (2)"


def test_what_a_promotion_that_died_has_carried_over_follows_what_was_published_since(
    world: World, plans: Plans, monkeypatch: pytest.MonkeyPatch
):
    edited = a_graph(visits(DOUBLE), costs("cost + 1"))
    world.begin(OLD, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    plan = plans.make(edited, "dev")
    a_day_passes(world)
    world.fill(OLD)
    with doomed(world, before_the_checks, monkeypatch) as process:
        Plans(process).apply(edited, plan)
    world.clock.pass_lease()
    world.land(a_source(), *ROWS, row(11, 1, 12.0))
    plans.published(OLD, restate=(Restatement(VISITS, "2024-01-11", "2024-01-11"),))

    plans.promote(edited, plan)

    world.environment = "dev"
    assert [int(total) for _, total in world.rows(COSTS, "ds", "total")] == [8, 9, 10, 11, 13]
    assert plans.make(edited, "dev").is_empty


def test_what_a_promotion_that_died_has_carried_over_is_built_again_once_it_was_declared_wrong(
    world: World, plans: Plans, monkeypatch: pytest.MonkeyPatch
):
    edited = a_graph(visits(), costs("cost + 1"))
    world.begin(OLD, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    plan = plans.make(edited)
    plans.apply(edited, plan)
    next_day = Restatement(COSTS, "2024-01-11", "2024-01-11")
    a_day_passes(world)
    world.fill(OLD)
    with doomed(world, before_pointers_move, monkeypatch) as process:
        Plans(process).promote(edited, plan)
    world.clock.pass_lease()
    plans.published(OLD, "dev", restate=(next_day,), restate_all_snapshots=True)

    promoted = plans.promote(edited, plan)

    assert text(OLD, COSTS, promoted.carried[COSTS]) == "2024-01-11"
    built = [batch for batch in world.store.batches.latest() if batch.plan_id == plan.plan_id]
    assert [text(OLD, COSTS, batch.stretches) for batch in built].count("2024-01-11") == 2


def before_the_checks(store: MortalStore, patch: pytest.MonkeyPatch) -> None:
    before_call(stage_run, "check_built", store.die, patch)


def test_a_plan_is_promoted_though_a_model_whose_gaps_it_filled_is_declared_no_more(
    world: World, plans: Plans
):
    other = a_model("web.other", cadence=CADENCE)
    world.begin(a_graph(visits(), costs(), other), *ROWS)
    a_day_passes(world)
    doubled = a_graph(visits(), costs("2 * cost"), other)
    plan = plans.make(doubled)
    plans.apply(doubled, plan)
    assert world.ready(doubled, "web.other") == "2024-01-07..2024-01-11 (5)"

    promoted = plans.promote(a_graph(visits(), costs("2 * cost")), plan)

    assert promoted.status is PlanStatus.PROMOTED
    assert [int(total) for _, total in world.rows(COSTS, "ds", "total")] == [14, 16, 18, 20, 22]


def test_a_carried_over_day_brings_no_late_row_into_a_day_that_was_reviewed(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    plan = plans.make(MORE)
    plans.apply(MORE, plan)
    world.clock.now += timedelta(days=1)
    world.land(a_source(), *changed(row(8, 1, 80.0)), row(11, 1, 11.0))
    world.fill(MORE)
    promoted = plans.promote(MORE, plan)
    assert text(MORE, VISITS, promoted.carried[VISITS]) == "2024-01-11"
    assert [int(value) for _, value in world.rows(VISITS, "ds", "double")] == [14, 16, 18, 20, 22]


def a_ninth_that_waits(plans: Plans, graph: Graph = OLD) -> Plan:
    """Build a plan that restates the 9th, and leave it to be promoted."""
    plan = plans.make(graph, restate=(Restatement(VISITS, "2024-01-09", "2024-01-09"),))
    plans.apply(graph, plan)
    return plan


@pytest.mark.parametrize("by_itself", [False, True])
def test_a_promotion_brings_no_row_in_again_that_was_taken_back_meanwhile(
    world: World, plans: Plans, *, by_itself: bool
):
    graph = a_graph(visits(late_window=3), costs(late_window=3))
    world.begin(graph, *ROWS)
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    if by_itself:
        done = refresh_late(world.open(graph))
        eighth = read_plan(world.store.plans.get(done.plan_id or "").content)
    else:
        eighth = plans.published(graph, restate=(Restatement(VISITS, "2024-01-08", "2024-01-08"),))
    ninth = a_ninth_that_waits(plans, graph)
    undo_plan(plans.project(graph), eighth)

    assert plans.promote(graph, ninth).carried == {}

    assert [int(cost) for _, cost in world.rows(VISITS, "ds", "cost")] == [7, 8, 9, 10]
    assert [int(total) for _, total in world.rows(COSTS, "ds", "total")] == [7, 8, 9, 10]


def test_a_promotion_brings_no_late_row_into_another_day_that_was_filled_meanwhile(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    ninth = a_ninth_that_waits(plans)
    world.clock.now += timedelta(days=1)
    for cost in (11.0, 99.0):
        world.land(a_source(), *ROWS, row(11, 1, cost))
        world.fill(OLD)

    assert plans.promote(OLD, ninth).carried == {}

    assert [int(cost) for _, cost in world.rows(VISITS, "ds", "cost")] == [7, 8, 9, 10, 11]


def test_a_plan_whose_upstream_has_moved_is_refused_before_anything_is_written(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    stale = plans.make(OLD, restate=(Restatement(COSTS),))
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    plans.published(OLD, restate=(Restatement(VISITS, "2024-01-08", "2024-01-08"),))
    with pytest.raises(StalePlanError, match="2024-01-08"):
        plans.apply(OLD, stale)
    assert world.store.plans.get(stale.plan_id).status is PlanStatus.PROPOSED
    assert len(world.store.environments.by_name()) == 1
    world.clock.now += timedelta(days=8)
    fresh = plans.make(OLD, restate=(Restatement(COSTS, "2024-01-07", "2024-01-07"),))
    world.clock.now += timedelta(days=8)
    with pytest.raises(RequestError, match=r"UTC, nothing was written\. Run `backfill plan` again"):
        plans.apply(OLD, fresh)


def test_plans_over_the_same_cells_are_refused_and_others_go_on_side_by_side(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    world.land(a_source(), *changed(row(7, 1, 70.0), row(9, 1, 90.0)))
    first, same, other = (
        plans.make(
            OLD, restate=(Restatement(VISITS, f"2024-01-0{n}", f"2024-01-0{n}"),), reason=why
        )
        for n, why in ((7, "first"), (7, "same"), (9, "other"))
    )
    plans.apply(OLD, first)
    plans.apply(OLD, other)
    with pytest.raises(PlanConflictError, match=first.plan_id):
        plans.apply(OLD, same)
    plans.promote(OLD, first)
    plans.promote(OLD, other)
    assert [int(value) for _, value in world.rows(COSTS, "ds", "total")] == [70, 8, 90, 10]
    with pytest.raises(RequestError, match="already, nothing was written; make a new"):
        plans.apply(OLD, first)


def test_an_edit_while_a_plan_is_applied_stops_what_is_left_and_keeps_what_is_done(
    world: World, plans: Plans
):
    graph, edited = (a_graph(visits(batch_size=1, description=text_)) for text_ in ("", "edited"))
    world.land(a_source(), *ROWS)
    world.fill(graph)
    world.land(a_source(), *(row(ds.day, 1, cost + 1) for ds, _, cost in ROWS))
    plan = plans.make(graph, restate=(Restatement(VISITS),))
    looks = 0

    def code() -> Mapping[str, str]:
        nonlocal looks
        looks += 1
        loaded = graph if looks <= 2 else edited
        return {name: snapshot.fingerprint.id for name, snapshot in snapshots_of(loaded).items()}

    with pytest.raises(RequestError, match=rf"the code has changed since plan .*{VISITS}"):
        plans.apply(graph, plan, code=code, batches_at_once=1)
    assert told(plans.told) == ["committed", "failed", "failed", "failed"]
    assert plans.apply(graph, plan).status is PlanStatus.BUILT
    assert told(plans.told)[:4] == ["committed"] * 4


def test_an_edited_plan_is_refused(world: World, plans: Plans):
    world.land(a_source(), *ROWS)
    world.fill(OLD, cells=days(7))
    plan = plans.make(OLD, restate=(Restatement(COSTS),))
    object.__setattr__(plan, "removed", (VISITS,))
    with pytest.raises(RequestError, match=r"Nothing was written\. A plan can't be edited"):
        plans.apply(OLD, plan)


def test_a_day_whose_source_rows_are_deleted_is_empty_when_the_source_is_restated(
    world: World, plans: Plans
):
    source = a_source(when_empty="wait")
    graph = a_graph(visits(), costs(), sources=[source])
    world.land(source, *ROWS)
    world.fill(graph)
    world.land(source, *(values for values in ROWS if values[0] != on(8)))
    plans.published(graph, restate=(Restatement(a_source().name, "2024-01-08", "2024-01-08"),))
    assert [ds for ds, _ in world.rows(VISITS, "ds", "id")] == [on(7), on(9), on(10)]
    assert [ds for ds, _ in world.rows(COSTS, "ds", "total")] == [on(7), on(9), on(10)]


def test_dev_reads_what_prod_reads_and_changes_nothing_of_it(world: World, plans: Plans):
    other = a_model("web.other", cadence=CADENCE)
    old, more = (a_graph(*graph.models.values(), other) for graph in (OLD, MORE))
    world.land(a_source(), *ROWS)
    world.fill(old)
    saw = world.store.environments.pointers(PROD), world.store.views.of(PROD).models
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    plans.published(more, "dev")
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    plans.published(more, "dev", restate=(Restatement("web.other"),))
    world.environment = "dev"
    assert [int(value) for _, value in world.rows(VISITS, "ds", "double")] == [14, 16, 18, 20]
    assert [int(value) for _, value in world.rows("web.other", "ds", "cost")] == [7, 99, 9, 10]
    assert (world.store.environments.pointers(PROD), world.store.views.of(PROD).models) == saw


def test_a_model_that_dev_declares_no_more_goes_from_dev_only_where_it_has_a_table_of_its_own(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    without = a_graph(visits())
    assert plans.make(without, "dev").is_empty
    plans.published(OLD, "dev", restate=(Restatement(COSTS),))

    assert plans.published(without, "dev").removed == (COSTS,)

    assert plans.make(without, "dev").is_empty
    assert plans.make(without).removed == (COSTS,)


def test_what_dev_only_reads_in_prod_goes_from_dev_with_a_model_that_it_reads(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    plans.published(OLD, "dev", restate=(Restatement(VISITS),), select=(VISITS,))
    assert world.store.environments.pointers("dev")[COSTS].environment == PROD

    assert plans.published(a_graph(), "dev").removed == (COSTS, VISITS)

    assert plans.make(a_graph(), "dev").is_empty


def test_what_dev_publishes_is_stale_where_prod_moves_what_it_reads_to_another_table_meanwhile(
    world: World, plans: Plans, monkeypatch: pytest.MonkeyPatch
):
    world.begin(OLD, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    for number in (11, 12, 13):
        world.clock.now += timedelta(days=1)
        world.land(a_source(), *ROWS, *(row(each, 1, 1.0) for each in range(11, number + 1)))
        world.fill(OLD)
    twice = a_model(
        sql="SELECT ds, id, CAST(cost * 2 AS DECIMAL(18,2)) AS cost FROM web.events "
        "WHERE ds >= :start_ds AND ds < :end_ds",
        cadence=CADENCE,
    )
    doubled = a_graph(twice, costs())
    before_call(
        publishing,
        "describe_moves",
        lambda: plans.published(doubled, select=(VISITS,)),
        monkeypatch,
    )
    plans.published(OLD, "dev", restate=(Restatement(COSTS, "2024-01-08", "2024-01-08"),))

    stale = plans.make(doubled, "dev").model(COSTS)

    assert stale is not None
    assert not days(8) - stale.certain


def test_a_cell_that_came_out_as_prods_is_read_from_devs_table_once_that_answers_for_it(
    world: World, plans: Plans
):
    graph = a_graph(visits())
    world.land(a_source(), *ROWS)
    world.fill(graph)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    for restated in ("2024-01-08", "2024-01-09"):
        plans.published(graph, "dev", restate=(Restatement(VISITS, restated, restated),))
    world.environment = "dev"
    own = world.store.views.of("dev").models[VISITS].own
    assert text(graph, VISITS, own) == "2024-01-08..2024-01-09 (2)"
    assert [int(value) for _, value in world.rows(VISITS, "ds", "cost")] == [99, 9]


def test_a_promotion_in_dev_closes_no_table_of_prod(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    plan = plans.published(OLD, "dev", restate=(EIGHTH,))

    published = world.store.publications.promotion(plan.plan_id)
    assert published is not None
    of_prod = {at.version for at in world.store.environments.pointers(PROD).values()}
    assert not of_prod.intersection(published.versions)


def test_dev_publishes_nothing_over_what_prod_publishes_meanwhile_under_a_table_of_devs(
    world: World, plans: Plans, monkeypatch: pytest.MonkeyPatch
):
    graph = a_graph(visits())
    world.begin(graph, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    plans.published(graph, "dev", restate=(Restatement(VISITS, "2024-01-09", "2024-01-09"),))
    world.land(a_source(), *changed(row(8, 1, 50.0)))
    plan = plans.make(graph, "dev", restate=(EIGHTH,))
    before_call(
        publishing, "describe_moves", lambda: plans.published(graph, restate=(EIGHTH,)), monkeypatch
    )

    with pytest.raises(StalePlanError, match=f"{VISITS} 2024-01-08 built again since"):
        plans.apply(graph, plan)


def test_a_row_that_a_stranger_writes_before_the_locks_are_taken_is_not_published(
    world: World, plans: Plans, monkeypatch: pytest.MonkeyPatch
):
    world.begin(OLD, *ROWS)
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    plan = plans.make(OLD, restate=(EIGHTH,))
    plans.apply(OLD, plan)
    before_call(publishing, "take", lambda: world.scribble(VISITS, row(9, 5, 1.0)), monkeypatch)

    plans.promote(OLD, plan)

    assert [int(cost) for _, cost in world.rows(VISITS, "ds", "cost")] == [7, 99, 9, 10]


def test_dev_leaves_gaps_of_prods_tables_to_prod(world: World, plans: Plans):
    world.land(a_source(), *ROWS)
    world.fill(OLD, cells=days(7, 8, 9))
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    world.environment = "dev"
    (waiting,) = ended(world.fill(OLD, VISITS)[VISITS], Waiting)
    assert text(OLD, VISITS, waiting.cells) == "2024-01-10"
    assert waiting.waits_for == f"environment {PROD}, which writes its table"


def test_an_hourly_model_is_planned_and_promoted_while_it_is_filled(world: World, plans: Plans):
    columns = (Column("at", "timestamp"), Column("id", "bigint"))
    source = a_source(
        cadence=Hourly(start=FIRST_HOUR), columns=columns, times=TimeColumns(event="at")
    )

    def graph(extra: str = "") -> Graph:
        sql = f"SELECT at, id{extra} FROM web.events WHERE at >= :start_ts AND at < :end_ts"
        more = (Column("double", "bigint"),) if extra else ()
        cadence = Hourly(start=FIRST_HOUR)
        kind = IncrementalByTimeRange("at")
        given: dict[str, Any] = {"kind": kind, "cadence": cadence, "columns": (*columns, *more)}
        return a_graph(a_model(sql=sql, unique_key=["id"], **given), sources=[source])

    def hour_passes() -> None:
        world.clock.now += timedelta(hours=1)
        landed.append((world.clock.now - timedelta(minutes=30), len(landed)))
        world.land(source, *landed)
        world.fill(new)

    old, new = graph(), graph(", id * 2 AS double")
    landed = [(datetime(2024, 1, 10, 22 + n, 30, tzinfo=UTC), n) for n in range(2)]
    world.land(source, *landed)
    world.fill(old)
    plan = plans.make(new)
    hour_passes()
    plans.apply(new, plan)
    hour_passes()
    promoted = plans.promote(new, plan)
    assert text(new, VISITS, promoted.carried[VISITS]).endswith("(2)")
    hour_passes()
    assert world.rows(VISITS, "id", "double") == [(n, 2 * n) for n in range(5)]
    assert plans.make(new).is_empty


def test_a_fill_that_has_read_what_a_promotion_replaces_commits_nothing(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    plan = plans.make(MORE)
    plans.apply(MORE, plan)
    a_day_passes(world)
    world.fill(OLD, VISITS)
    world.batch_policy = BatchPolicy(attempts=1)
    before(world, "audited", lambda: plans.promote(MORE, plan))
    (failed,) = ended(world.fill(MORE, COSTS)[COSTS], Failed)
    assert plan.plan_id in failed.error
    assert len(world.rows(COSTS, "ds", "total")) == 4
    assert told(world.fill(MORE)[COSTS]) == ["committed", "skipped"]
    assert len(world.rows(COSTS, "ds", "total")) == 5


def test_a_new_model_that_an_open_plan_brings_is_left_to_that_plan(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    more = a_graph(*OLD.models.values(), a_model("web.other", cadence=CADENCE))
    plan = plans.make(more)
    plans.apply(more, plan)
    (waiting,) = ended(world.fill(more, "web.other")["web.other"], Waiting)
    assert plan.plan_id in waiting.waits_for
    plans.promote(more, plan)
    assert told(world.fill(more, "web.other")["web.other"]) == ["skipped"]


def test_a_new_model_that_an_abandoned_plan_has_built_is_brought_by_the_next_one(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    more = a_graph(*OLD.models.values(), a_model("web.other", cadence=CADENCE))
    plan = plans.make(more)
    plans.apply(more, plan)
    abandon_plan(plans.project(more), plan)
    assert told(world.fill(more, "web.other")["web.other"]) == ["waiting"]
    world.clock.now += timedelta(minutes=1)
    plans.published(more)
    assert told(world.fill(more, "web.other")["web.other"]) == ["skipped"]


def test_batches_of_a_plan_give_the_plan_as_their_reason_and_gap_fills_the_gap(
    world: World, plans: Plans
):
    graph = a_graph(visits(), costs(), sources=[a_source()])
    world.land(a_source(), *ROWS)
    world.fill(graph)
    plan = plans.make(graph, restate=(Restatement(VISITS, "2024-01-08", "2024-01-08"),))
    plans.apply(graph, plan)
    batches = world.store.batches.latest(model=VISITS)
    assert {(batch.plan_id, batch.reason) for batch in batches} == {
        (None, "gap"),
        (plan.plan_id, "plan"),
    }


def test_an_empty_backfill_records_cells_without_computing_them(world: World, plans: Plans):
    graph = a_graph(visits(), costs(), sources=[a_source(when_empty="wait")])
    world.land(a_source(), *ROWS[2:])
    world.fill(graph)
    assert world.ready(graph, VISITS) == "2024-01-09..2024-01-10 (2)"
    plan = plans.make(graph, empty=True, reason="the source begins on the 9th")
    plans.apply(graph, plan)
    if plan.gates:
        plans.promote(graph, plan)
    assert world.ready(graph, VISITS) == "2024-01-07..2024-01-10 (4)"
    assert [ds for ds, _ in world.rows(VISITS, "ds", "id")] == [on(9), on(10)]
    reasons = {batch.reason for batch in world.store.batches.latest(model=VISITS) if batch.plan_id}
    assert reasons == {"empty"}


def test_cells_that_were_filled_meanwhile_are_not_replaced_by_cells_recorded_as_empty(
    world: World, plans: Plans
):
    old, edited = a_graph(visits()), a_graph(visits(DOUBLE))
    world.land(a_source(), *ROWS)
    world.open(old)
    plan = plans.make(edited, empty=True, reason="no history is wanted")
    plans.apply(edited, plan)
    world.fill(old)

    with pytest.raises(
        StalePlanError, match=r"\(4\) published since, which the plan records as empty"
    ):
        plans.promote(edited, plan)

    assert [ds for ds, _ in world.rows(VISITS, "ds", "id")] == [on(7), on(8), on(9), on(10)]


def test_two_applies_of_a_plan_at_once_build_each_cell_once(
    world: World, plans: Plans, monkeypatch: pytest.MonkeyPatch
):
    world.begin(OLD, *ROWS)
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    plan = plans.make(OLD, restate=(Restatement(VISITS),))
    other = Plans(world)
    begun = world.store.batches
    before_call(begun, "open_batch", lambda: other.apply(OLD, plan), monkeypatch)

    assert plans.apply(OLD, plan).left == {}

    built = [row for row in world.store.batches.of_plan(plan.plan_id) if row.is_committed]
    counts = {name: OLD.model(name).cadence for name in (VISITS, COSTS)}
    cells = {
        name: sum(cadence.count(each.stretches) for each in built if each.model == name)
        for name, cadence in counts.items()
    }
    assert cells == {VISITS: 4, COSTS: 1}
    plans.promote(OLD, plan)
    assert plans.make(OLD).is_empty


def test_a_refresh_that_another_apply_has_done_meanwhile_is_not_done_again(
    world: World, plans: Plans, monkeypatch: pytest.MonkeyPatch
):
    """The reader is stale in the workspace when both applies begin."""
    world.begin(OLD, *ROWS)
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    plan = plans.make(OLD, restate=(Restatement(VISITS),))
    real, opened = world.store.batches.open_batch, list[str]()

    def stepped(request: BatchRequest) -> OpenBatch:
        opened.append(request.model)
        if request.model == COSTS and opened.count(COSTS) == 1:
            Plans(world).apply(OLD, plan)
        return real(request)

    monkeypatch.setattr(world.store.batches, "open_batch", stepped)
    assert plans.apply(OLD, plan).left == {}
    built = [row.model for row in world.store.batches.of_plan(plan.plan_id) if row.is_committed]
    assert built.count(COSTS) == 1


def test_what_is_filled_beside_a_promotion_from_what_is_filled_there_too_is_not_stale(
    world: World, plans: Plans, monkeypatch: pytest.MonkeyPatch
):
    """Both come after the promotion has looked, and before it publishes."""
    graph = a_graph(*OLD.models.values(), a_model("web.other", cadence=CADENCE))
    world.begin(graph, *ROWS)
    ninth = Restatement("web.other", "2024-01-09", "2024-01-09")
    plan = plans.make(graph, restate=(ninth,))
    plans.apply(graph, plan)
    a_day_passes(world)
    other = replace(world, runs=500)
    before_call(publishing, "describe_moves", lambda: other.fill(graph, VISITS, COSTS), monkeypatch)

    plans.promote(graph, plan)

    assert world.ready(graph, COSTS) == "2024-01-07..2024-01-11 (5)"
    assert [each.model for each in plans.make(graph).models if each.cells] == ["web.other"]


@pytest.mark.parametrize("environment", [PROD, "dev"])
def test_cells_that_have_not_read_what_is_published_beside_their_promotion_are_stale(
    world: World, plans: Plans, monkeypatch: pytest.MonkeyPatch, environment: str
):
    world.begin(OLD, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    if environment != PROD:
        tenth = Restatement(VISITS, "2024-01-10", "2024-01-10")
        plans.published(OLD, environment, select=(VISITS,), restate=(tenth,))
    eighth = Restatement(VISITS, "2024-01-08", "2024-01-08")
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    beside = plans.make(OLD, select=(VISITS,), restate=(eighth,))
    plans.apply(OLD, beside)
    before_call(publishing, "describe_moves", lambda: plans.promote(OLD, beside), monkeypatch)

    plans.published(OLD, environment, select=(COSTS,), restate=(Restatement(COSTS),))

    (left,) = plans.make(OLD, environment, select=(COSTS,), skip_upstream=True).models
    assert (left.model, text(OLD, COSTS, left.cells)) == (COSTS, "2024-01-08")
