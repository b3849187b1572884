"""Going back: what was published before is read again, and nothing brings the bad data back."""

# ruff: noqa: S608 - the SQL is the tests' own

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from backfill_assets.engine.plans import going_back, publishing
from backfill_assets.engine.plans.plan_verbs import abandon_plan, rollback_plan, undo_plan
from backfill_assets.engine.plans.rollback_checks import promoted_after
from backfill_assets.engine.project.plan_terms import PlanTerms
from backfill_assets.engine.upkeep import collecting
from backfill_assets.engine.upkeep.collecting import (
    GRACE,
    Collected,
    collect,
    settle_read,
    what_to_collect,
)
from backfill_assets.errors import RequestError
from backfill_assets.intervals import Daily, Whole
from backfill_assets.models.audit import accepted_range
from backfill_assets.models.column import Column
from backfill_assets.models.graph import build_graph
from backfill_assets.models.kind import Full, IncrementalByUniqueKey
from backfill_assets.models.upstream import Reopens, Upstream
from backfill_assets.planning.plan.plan import Build, Why
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.snapshots.environment import PROD, Environment, workspace_name
from backfill_assets.snapshots.publication import Intent, PublicationKind
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets.warehouse.files.collection import delete_table
from backfill_assets_tests.builders import a_graph, a_model, a_source, days
from backfill_assets_tests.engine.dying import before, before_call, die_after, doomed
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
    WHERE,
    changed,
    costs,
    total_of_visits,
    visits,
)
from backfill_assets_tests.engine.world import on, row, text, told
from backfill_assets_tests.state.building import owe

if TYPE_CHECKING:
    from collections.abc import Callable

    from backfill_assets.models.graph import Graph
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets_tests.engine.world import World

BAD = row(8, 1, 99.0)
KEYED = [row(n, n, float(n)) for n in range(7, 11)]


@pytest.fixture
def plans(world: World) -> Plans:
    return Plans(world)


def totals(world: World) -> list[int]:
    return [int(total) for _, total in world.rows(COSTS, "ds", "total")]


def next_day(world: World, *rows: Any) -> None:  # noqa: ANN401 - values of a row
    """A day passes, and its rows land beside the others."""
    world.clock.now += timedelta(days=1)
    world.land(a_source(), *rows, row(11, 1, 11.0))


def a_new_table_and_a_day_since(world: World, plans: Plans) -> Plan:
    """Publish a new table of visits, and fill a day that comes afterwards."""
    world.begin(OLD, *ROWS)
    plan = plans.published(MORE)
    next_day(world, *ROWS)
    world.fill(MORE)
    return plan


def test_rolled_back_cells_hold_what_they_held_and_the_next_fill_leaves_them_alone(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    world.land(a_source(), *changed(BAD))
    plan = plans.published(OLD, restate=(Restatement(VISITS),))
    assert totals(world) == [7, 99, 9, 10]
    rollback_plan(plans.project(OLD), plan)
    assert totals(world) == [7, 8, 9, 10]
    assert [int(cost) for _, cost in world.rows(VISITS, "ds", "cost")] == [7, 8, 9, 10]
    assert world.store.plans.get(plan.plan_id).status is PlanStatus.ROLLED_BACK
    next_day(world, *changed(BAD))
    world.fill(OLD)
    assert totals(world) == [7, 8, 9, 10, 11]
    with pytest.raises(RequestError, match="Only a promoted plan can be rolled back"):
        rollback_plan(plans.project(OLD), plan)


@pytest.mark.connect
def test_undone_cells_come_back_and_days_since_stay(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    world.land(a_source(), *changed(BAD))
    plan = plans.published(OLD, restate=(Restatement(VISITS),))
    next_day(world, *changed(BAD))
    world.fill(OLD)
    undo_plan(plans.project(OLD), plan)
    assert totals(world) == [7, 8, 9, 10, 11]
    assert told(world.fill(OLD)[COSTS]) == ["skipped"]
    # The source still holds what was taken back: a plan says so, and nothing brings it in by itself.
    left = plans.make(OLD)
    assert {(model.model, work.why) for model in left.models for work in model.work} == {
        (VISITS, Why.LATE_DATA),
        (COSTS, Why.UPSTREAM_CHANGED),
    }


def test_a_new_table_is_undone_by_reading_the_old_one_with_the_days_since(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    before = world.pointer(VISITS)
    plan = plans.published(MORE)
    next_day(world, *ROWS)
    world.fill(MORE)
    back = undo_plan(plans.project(MORE), plan)
    assert world.pointer(VISITS).version == before.version
    assert [int(cost) for _, cost in world.rows(VISITS, "ds", "cost")] == [7, 8, 9, 10, 11]
    assert set(back.carried) == {VISITS}
    assert told(world.fill(OLD)[COSTS]) == ["skipped"]
    assert world.open(MORE).changed == (VISITS, COSTS)


def test_days_since_stay_of_a_model_that_is_declared_no_more(world: World, plans: Plans):
    doubled = a_graph(visits(), costs("2 * cost"))
    world.begin(OLD, *ROWS)
    plan = plans.published(doubled)
    next_day(world, *ROWS)
    world.fill(doubled)
    assert totals(world) == [14, 16, 18, 20, 22]
    back = undo_plan(plans.project(a_graph(visits())), plan)
    assert totals(world) == [7, 8, 9, 10, 11]
    assert set(back.carried) == {COSTS}


def test_an_undo_is_refused_where_days_since_cannot_be_computed_since_their_source_is_gone(
    world: World, plans: Plans
):
    plan = a_new_table_and_a_day_since(world, plans)
    nothing_declared = build_graph([], [])
    with pytest.raises(RequestError, match=f"{VISITS}: 2024-01-11.*then undo again.*rollback"):
        undo_plan(plans.project(nothing_declared), plan)
    assert [int(cost) for _, cost in world.rows(VISITS, "ds", "cost")] == [7, 8, 9, 10, 11]


def test_an_undo_carries_rows_back_that_only_history_has(world: World, plans: Plans):
    merging: dict[str, Any] = {
        "kind": IncrementalByUniqueKey("ds"),
        "deletes": "none",
        "unique_key": ["id"],
        "late_window": 2,
    }
    old, wider = (
        a_graph(visits(extra, **merging))
        for extra in ("", ", CAST(cost AS DECIMAL(18,2)) AS double")
    )
    world.begin(old, *KEYED)
    plan = plans.published(wider)
    next_day(world, *KEYED, row(11, 20, 20.0))
    world.fill(wider)
    world.land(a_source(), *KEYED, row(11, 1, 11.0))
    world.fill(wider)

    kept = [(on(11), 1), (on(11), 20)]
    assert world.rows(VISITS, "ds", "id")[-2:] == kept

    undo_plan(plans.project(wider), plan)

    assert world.rows(VISITS, "ds", "id")[-2:] == kept


def test_an_undo_carries_nothing_back_that_reads_a_day_which_it_takes_away(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    next_day(world, *changed(BAD))
    new = a_graph(visits(), costs("cost + 1"))
    plan = plans.published(new, restate=(Restatement(VISITS),))
    assert [(model.model, model.build) for model in plan.models] == [
        (VISITS, Build.IN_PLACE),
        (COSTS, Build.NEW_VERSION),
    ]
    assert totals(world) == [8, 100, 10, 11, 12]
    assert undo_plan(plans.project(new), plan).carried == {}
    assert [int(cost) for _, cost in world.rows(VISITS, "ds", "cost")] == [7, 8, 9, 10]
    assert totals(world) == [7, 8, 9, 10]
    world.fill(OLD)
    assert totals(world) == [7, 8, 9, 10, 11]


def test_an_undo_carries_nothing_back_that_reads_a_day_whose_rows_it_brings_back(
    world: World, plans: Plans
):
    world.land(a_source(), *ROWS)
    world.fill(OLD, VISITS)
    world.fill(OLD, COSTS, cells=days(7, 8, 9))
    world.land(a_source(), *changed(row(10, 1, 99.0)))
    new = a_graph(visits(), costs("cost + 1"))
    plan = plans.published(new, restate=(Restatement(VISITS),))
    assert totals(world) == [8, 9, 10, 100]
    assert undo_plan(plans.project(new), plan).carried == {}
    assert [int(cost) for _, cost in world.rows(VISITS, "ds", "cost")] == [7, 8, 9, 10]
    assert totals(world) == [7, 8, 9]
    world.fill(OLD)
    assert totals(world) == [7, 8, 9, 10]


@pytest.mark.parametrize("back", [undo_plan, rollback_plan])
def test_what_was_computed_from_a_day_that_is_taken_back_is_owed(
    world: World, plans: Plans, back: Callable[..., object]
):
    world.begin(OLD, *ROWS)
    next_day(world, *ROWS)
    plan = plans.published(OLD, select=(VISITS,), restate=(Restatement(VISITS),))
    world.fill(OLD)  # the reader's day is no part of the plan
    assert totals(world) == [7, 8, 9, 10, 11]
    back(plans.project(OLD), plan)
    assert [int(cost) for _, cost in world.rows(VISITS, "ds", "cost")] == [7, 8, 9, 10]
    view = world.store.views.of(PROD)
    assert text(OLD, COSTS, view.owed[COSTS]) == "2024-01-11"
    again = plans.published(OLD)
    assert {(model.model, text(OLD, model.model, model.cells)) for model in again.models} == {
        (VISITS, "2024-01-11"),
        (COSTS, "2024-01-11"),
    }
    assert totals(world) == [7, 8, 9, 10, 11]
    assert plans.make(OLD).is_empty


EDITED = a_graph(visits(), costs("cost + 1"))


def test_an_undo_carries_a_day_back_that_reads_only_what_stays_or_comes_back_equal(
    world: World, plans: Plans
):
    reads = {"upstreams": [Upstream(VISITS, lookback=1)]}
    old, new = (a_graph(visits(), costs(column, **reads)) for column in ("cost", "cost + 1"))
    world.begin(old, *ROWS)
    world.land(a_source(), *changed(BAD))
    plan = plans.published(new, restate=(Restatement(VISITS),))
    assert [model.build for model in plan.models] == [Build.IN_PLACE, Build.NEW_VERSION]
    next_day(world, *changed(BAD))
    world.fill(new)
    assert totals(world) == [8, 100, 10, 11, 12]

    undo_plan(plans.project(new), plan)

    assert totals(world) == [7, 8, 9, 10, 11]


@pytest.mark.parametrize("back", [undo_plan, rollback_plan])
def test_what_dev_has_computed_from_a_day_of_prod_is_owed_in_dev_when_prod_takes_the_day_back(
    world: World, plans: Plans, back: Callable[..., object]
):
    world.begin(OLD, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    next_day(world, *ROWS)
    plan = plans.published(OLD, select=(VISITS,), restate=(Restatement(VISITS),))
    plans.published(EDITED, "dev")
    assert plans.make(EDITED, "dev").is_empty

    back(plans.project(OLD), plan)

    assert text(OLD, COSTS, world.store.views.of("dev").owed[COSTS]) == "2024-01-11"
    assert not world.store.views.of(PROD).owed


def test_what_dev_has_computed_from_cells_that_prods_new_table_leaves_out_is_owed_in_dev(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    plans.published(EDITED, "dev")

    plans.published(a_graph(visits(cadence=Daily(start="2024-01-09")), costs()))

    owed = world.store.views.of("dev").owed
    assert text(OLD, COSTS, owed[COSTS]) == "2024-01-07..2024-01-08 (2)"


@pytest.mark.parametrize("running", [OLD, EDITED])
def test_what_dev_reads_under_a_table_of_its_own_is_owed_in_dev_alone_when_prod_leaves_its_input(
    world: World, plans: Plans, running: Graph
):
    """Prod leaves that table together with its input, or has left it before."""
    world.begin(OLD, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    plans.published(OLD, "dev", restate=(Restatement(COSTS, "2024-01-10", "2024-01-10"),))
    if running is EDITED:
        plans.published(EDITED)

    plan = plans.published(a_graph(visits(cadence=Daily(start="2024-01-09")), costs("cost + 2")))

    owed = world.store.views.of("dev").owed
    assert text(OLD, COSTS, owed[COSTS]) == "2024-01-07..2024-01-08 (2)"
    rollback_plan(plans.project(running), plan)
    assert not world.store.views.of(PROD).owed
    assert plans.make(running).is_empty


@pytest.mark.parametrize("back", [undo_plan, rollback_plan])
def test_what_dev_removes_together_and_takes_back_is_not_owed(
    world: World, plans: Plans, back: Callable[..., object]
):
    world.begin(OLD, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    world.land(a_source(), *changed(BAD))
    plans.published(EDITED, "dev", restate=(Restatement(VISITS, "2024-01-08", "2024-01-08"),))
    removal = plans.published(a_graph(replace(visits(), name="web.others")), "dev")

    back(plans.project(EDITED), removal)

    assert totals(replace(world, environment="dev")) == [8, 100, 10, 11]
    assert not world.store.views.of("dev").owed
    assert plans.make(EDITED, "dev").is_empty


def test_a_model_is_removed_in_prod_though_dev_has_a_table_that_reads_it(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    plans.published(EDITED, "dev")

    plans.published(a_graph(replace(visits(), name="web.others")))

    assert {*world.store.environments.pointers(PROD)} == {"web.others"}
    view = world.store.views.of("dev")
    assert text(OLD, COSTS, view.owed[COSTS]) == "2024-01-07..2024-01-10 (4)"


def test_an_open_plan_that_has_read_a_day_which_prod_takes_back_is_not_promoted(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    next_day(world, *ROWS)
    plan = plans.published(OLD, select=(VISITS,), restate=(Restatement(VISITS),))
    waiting = plans.make(EDITED)
    assert plans.apply(EDITED, waiting).status is PlanStatus.BUILT
    undo_plan(plans.project(OLD), plan)

    with pytest.raises(RequestError, match="is not completely built"):
        plans.promote(EDITED, waiting)

    assert totals(world) == [7, 8, 9, 10]
    abandon_plan(plans.project(EDITED), waiting)
    world.fill(OLD, VISITS)
    plans.published(EDITED)
    assert totals(world) == [8, 9, 10, 11, 12]
    assert plans.make(EDITED).is_empty


@pytest.mark.parametrize("back", [undo_plan, rollback_plan])
def test_what_dev_brings_back_is_stale_where_prod_has_changed_what_it_reads_again(
    world: World, plans: Plans, back: Callable[..., object]
):
    world.begin(OLD, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    plans.published(OLD, "dev", restate=(Restatement(COSTS),))
    world.land(a_source(), *changed(BAD))
    eighth = Restatement(VISITS, "2024-01-08", "2024-01-08")
    plan = plans.published(OLD, "dev", restate=(eighth,))
    plans.published(OLD, restate=(eighth,))
    assert plans.make(OLD, "dev").is_empty

    back(plans.project(OLD), plan)

    (stale,) = plans.make(OLD, "dev").models
    assert (stale.model, text(OLD, COSTS, stale.cells)) == (COSTS, "2024-01-08")


@pytest.mark.parametrize("back", [undo_plan, rollback_plan])
def test_what_dev_brings_back_is_stale_where_prod_publishes_meanwhile_what_it_reads_under_a_table_of_devs(
    world: World, plans: Plans, monkeypatch: pytest.MonkeyPatch, back: Callable[..., object]
):
    two_days = a_model(
        COSTS,
        sql=f"SELECT :start_ds AS ds, CAST(SUM(cost) AS DECIMAL(18,2)) AS total FROM {VISITS} "
        "WHERE ds >= DATE_SUB(:start_ds, 1) AND ds < :end_ds",
        columns=[Column("ds", "date"), Column("total", "decimal(18,2)")],
        unique_key=["ds"],
        upstreams=[Upstream(VISITS, lookback=1)],
        cadence=CADENCE,
        batch_size=1,
    )
    graph = a_graph(visits(), two_days)
    world.begin(graph, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    seventh, eighth = (Restatement(VISITS, day, day) for day in ("2024-01-07", "2024-01-08"))
    for cost in (99.0, 50.0):
        world.land(a_source(), *changed(row(8, 1, cost)))
        plan = plans.published(graph, "dev", restate=(eighth,))
    world.land(a_source(), *changed(row(7, 1, 70.0)))
    before_call(
        publishing,
        "describe_moves",
        lambda: plans.published(graph, restate=(seventh,)),
        monkeypatch,
    )

    back(plans.project(graph), plan)

    stale = plans.make(graph, "dev").model(COSTS)
    assert stale is not None
    assert text(graph, COSTS, stale.certain) == "2024-01-08"


def test_an_undo_in_dev_keeps_the_days_that_prod_filled_since_in_the_table_under_devs_own(
    world: World, plans: Plans
):
    """Prod has left that table, so that its pin is the one that dev's pointer has."""
    world.begin(OLD, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    tenth, ninth = (Restatement(COSTS, day, day) for day in ("2024-01-10", "2024-01-09"))
    plans.published(OLD, "dev", restate=(tenth,))
    plan = plans.published(OLD, "dev", restate=(ninth,))
    next_day(world, *ROWS)
    world.fill(OLD)
    plans.published(EDITED)

    undo_plan(plans.project(OLD), plan)

    ready = world.store.views.of("dev").ready(COSTS)
    assert text(OLD, COSTS, ready) == "2024-01-07..2024-01-11 (5)"


def with_its_day(world: World, plans: Plans, graph: Graph = OLD) -> Plan:
    """A day of the visits that came with a plan of their own."""
    next_day(world, *ROWS)
    return plans.published(graph, select=(VISITS,), restate=(Restatement(VISITS),))


def test_a_cell_that_was_stale_when_its_input_went_is_owed(world: World, plans: Plans):
    """Prod brought a late row in, by itself, after dev had read the day."""
    alone = a_graph(visits(late_window=3))
    world.begin(alone, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    plan = with_its_day(world, plans, alone)
    plans.published(OLD, "dev")
    world.land(a_source(), *ROWS, row(11, 1, 50.0))
    assert told(world.fill(alone)[VISITS]) == ["committed", "skipped"]

    undo_plan(plans.project(alone), plan)

    assert text(OLD, COSTS, world.store.views.of("dev").owed[COSTS]) == "2024-01-11"


@pytest.mark.parametrize("reader", ["dev", "dev_of_dev"])
def test_what_was_computed_from_cells_that_dev_reads_from_prod_again_is_owed(
    world: World, plans: Plans, reader: str
):
    """What prod publishes there has changed long ago, so no stamp tells of it."""
    world.begin(OLD, *ROWS)
    for name, follows in (("dev", PROD), ("dev_of_dev", "dev")):
        environment = Environment(name, protected=False, follows=follows)
        world.store.environments.save_environment(environment)
    world.land(a_source(), *changed(BAD))
    eighth = Restatement(VISITS, "2024-01-08", "2024-01-08")
    plan = plans.published(OLD, "dev", select=(VISITS,), restate=(eighth,))
    plans.published(EDITED, reader)

    undo_plan(plans.project(OLD), plan)

    assert text(OLD, COSTS, world.store.views.of(reader).owed[COSTS]) == "2024-01-08"


def test_an_older_table_that_had_read_a_day_which_is_taken_back_owes_it_where_it_is_read_again(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    plan = with_its_day(world, plans)
    world.fill(OLD)
    edit = plans.published(EDITED)
    undo_plan(plans.project(EDITED), plan)
    rollback_plan(plans.project(EDITED), edit)
    assert text(OLD, COSTS, world.store.views.of(PROD).owed[COSTS]) == "2024-01-11"
    plans.published(OLD)
    assert totals(world) == [7, 8, 9, 10, 11]
    assert plans.make(OLD).is_empty


def test_a_table_over_prods_that_had_read_visits_of_devs_own_owes_them_where_dev_reads_it_again(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    world.land(a_source(), *changed(BAD))
    eighth = {name: Restatement(name, "2024-01-08", "2024-01-08") for name in (VISITS, COSTS)}
    own = plans.published(OLD, "dev", select=(VISITS,), restate=(eighth[VISITS],))
    plans.published(OLD, "dev", select=(COSTS,), restate=(eighth[COSTS],))
    edit = plans.published(EDITED, "dev")
    undo_plan(plans.project(EDITED), own)

    rollback_plan(plans.project(EDITED), edit)

    assert totals(replace(world, environment="dev")) == [99]
    assert text(OLD, COSTS, world.store.views.of("dev").owed[COSTS]) == "2024-01-08"


def test_a_table_of_a_plan_that_was_given_up_owes_what_it_had_read_of_a_day_that_is_taken_back(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    plan = with_its_day(world, plans)
    given_up = plans.make(EDITED)
    plans.apply(EDITED, given_up)
    abandon_plan(plans.project(EDITED), given_up)
    undo_plan(plans.project(OLD), plan)

    plans.published(EDITED, select=(COSTS,), reason="again")

    view = world.store.views.of(PROD)
    assert text(EDITED, COSTS, view.owed[COSTS]) == "2024-01-11"


@pytest.mark.parametrize("environment", [PROD, "dev"])
def test_what_is_computed_from_a_day_while_it_is_taken_back_is_owed(
    world: World, plans: Plans, monkeypatch: pytest.MonkeyPatch, environment: str
):
    world.begin(OLD, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    plans.published(EDITED, "dev")
    plan = with_its_day(world, plans)
    graph = OLD if environment == PROD else EDITED

    def fill() -> None:
        other = replace(world, environment=environment, runs=500)
        assert "committed" in told(other.fill(graph, COSTS)[COSTS])

    before_call(publishing, "describe_moves", fill, monkeypatch)
    undo_plan(plans.project(OLD), plan)

    assert text(OLD, COSTS, world.store.views.of(environment).owed[COSTS]) == "2024-01-11"


def test_what_is_computed_from_a_day_of_a_table_while_that_is_left_is_owed(
    world: World, plans: Plans, monkeypatch: pytest.MonkeyPatch
):
    world.begin(OLD, *ROWS)
    plan = plans.published(MORE, select=(VISITS,))
    next_day(world, *ROWS)
    world.fill(MORE, VISITS)
    other = replace(world, runs=500)
    before_call(publishing, "describe_moves", lambda: other.fill(OLD, COSTS), monkeypatch)

    rollback_plan(plans.project(OLD), plan)

    assert totals(world) == [7, 8, 9, 10, 11]
    assert text(OLD, COSTS, world.store.views.of(PROD).owed[COSTS]) == "2024-01-11"


@pytest.mark.parametrize("step", ["commit", "record"])
def test_what_is_recorded_after_a_day_that_it_read_was_taken_back_is_owed(
    world: World, plans: Plans, step: str
):
    """The undo needs no lock of the reader's table, and finds no record of it."""
    world.begin(OLD, *ROWS)
    plan = with_its_day(world, plans)
    other = replace(world, runs=500)
    before(other, step, lambda: undo_plan(plans.project(OLD), plan))

    assert "committed" in told(other.fill(OLD, COSTS)[COSTS])

    assert text(OLD, COSTS, world.store.views.of(PROD).owed[COSTS]) == "2024-01-11"


def test_what_is_adopted_after_a_day_that_it_read_was_taken_back_is_owed(
    world: World, plans: Plans, monkeypatch: pytest.MonkeyPatch
):
    world.begin(OLD, *ROWS)
    plan = with_its_day(world, plans)
    with doomed(world, lambda *_: None, monkeypatch) as process:
        die_after("commit", process)
        process.fill(OLD, COSTS)
    world.clock.pass_lease()
    undo_plan(plans.project(OLD), plan)

    world.fill(OLD, COSTS)

    view = world.store.views.of(PROD)
    assert text(OLD, COSTS, view.ready(COSTS)) == "2024-01-07..2024-01-11 (5)"
    assert text(OLD, COSTS, view.owed[COSTS]) == "2024-01-11"


def test_what_a_later_plan_has_touched_is_not_taken_back(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    world.land(a_source(), *changed(BAD))
    first = plans.published(OLD, restate=(Restatement(VISITS, "2024-01-08", "2024-01-08"),))
    world.land(a_source(), *changed(row(8, 1, 50.0)))
    second = plans.published(OLD, restate=(Restatement(VISITS, "2024-01-08", "2024-01-08"),))
    world.land(a_source(), *changed(row(8, 1, 60.0)))
    third = plans.published(OLD, restate=(Restatement(VISITS, "2024-01-08", "2024-01-08"),))
    with pytest.raises(
        RequestError, match=f"since: {second.plan_id}: {COSTS} 2024-01-08, {VISITS} 2024-01-08"
    ) as refused:
        undo_plan(plans.project(OLD), first)
    assert str(refused.value).endswith(
        f"Take back those plans first: `backfill undo {third.plan_id}`, `backfill undo {second.plan_id}`"
    )
    undo_plan(plans.project(OLD), third)
    undo_plan(plans.project(OLD), second)
    rollback_plan(plans.project(OLD), first)
    assert totals(world) == [7, 8, 9, 10]


def restated(world: World, plans: Plans, day: int, *rows: Any, graph: Graph = OLD) -> Plan:  # noqa: ANN401
    """Let rows of a day be wrong in the source, and publish the day with them."""
    world.land(a_source(), *changed(*rows))
    name = f"2024-01-{day:02}"
    return plans.published(graph, restate=(Restatement(VISITS, name, name),))


def test_a_rollback_is_refused_that_would_publish_what_the_undo_of_an_earlier_plan_took_away(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    first = restated(world, plans, 8, BAD)
    second = restated(world, plans, 7, BAD, row(7, 1, 77.0))
    undo_plan(plans.project(OLD), first)
    with pytest.raises(RequestError, match=f"{first.plan_id}.*`backfill undo {second.plan_id}`"):
        rollback_plan(plans.project(OLD), second)
    assert totals(world) == [77, 8, 9, 10]
    undo_plan(plans.project(OLD), second)
    assert totals(world) == [7, 8, 9, 10]


def test_a_later_plan_that_was_promoted_and_taken_back_keeps_no_earlier_one_from_its_rollback(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    first = restated(world, plans, 8, BAD)
    second = restated(world, plans, 7, BAD, row(7, 1, 77.0))
    third = restated(world, plans, 9, BAD, row(7, 1, 77.0), row(9, 1, 90.0))
    undo_plan(plans.project(OLD), second)
    undo_plan(plans.project(OLD), third)
    rollback_plan(plans.project(OLD), first)
    assert totals(world) == [7, 8, 9, 10]


def test_a_new_table_is_not_undone_once_a_later_plan_has_restated_a_day_that_came_since(
    world: World, plans: Plans
):
    first = a_new_table_and_a_day_since(world, plans)
    world.land(a_source(), *ROWS, row(11, 1, 50.0))
    second = plans.published(MORE, restate=(Restatement(VISITS, "2024-01-11", "2024-01-11"),))
    with pytest.raises(RequestError, match=f"{second.plan_id}: {VISITS} its table"):
        undo_plan(plans.project(MORE), first)
    assert totals(world) == [7, 8, 9, 10, 50]


def test_what_a_later_plan_has_touched_is_not_undone_of_a_model_that_is_declared_no_more(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    first = restated(world, plans, 8, BAD)
    second = restated(world, plans, 8, row(8, 1, 50.0))
    with pytest.raises(RequestError, match=f"{second.plan_id}: .*{VISITS} its table"):
        undo_plan(plans.project(build_graph([], [])), first)
    assert [int(cost) for _, cost in world.rows(VISITS, "ds", "cost")] == [7, 50, 9, 10]


AUDITED = a_graph(visits(audits=[accepted_range("cost", None, 1000)]), costs())
DESCRIBED = a_graph(visits(description="of the web"), costs())
"""Edits after which no row changes."""


def test_an_undo_keeps_the_definition_that_a_later_plan_has_published(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    first = restated(world, plans, 8, BAD)
    plans.published(AUDITED)
    now = world.pointer(VISITS).fingerprint
    undo_plan(plans.project(AUDITED), first)
    assert totals(world) == [7, 8, 9, 10]
    assert world.pointer(VISITS).fingerprint == now


def test_an_undo_of_a_definition_is_refused_once_a_later_plan_has_published_another_one(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    before = world.pointer(VISITS).fingerprint
    first, second = plans.published(AUDITED), plans.published(DESCRIBED)
    now = world.pointer(VISITS).fingerprint
    with pytest.raises(RequestError, match=f"{second.plan_id}: {VISITS} its definition"):
        undo_plan(plans.project(DESCRIBED), first)
    assert world.pointer(VISITS).fingerprint == now
    undo_plan(plans.project(DESCRIBED), second)
    undo_plan(plans.project(DESCRIBED), first)
    assert world.pointer(VISITS).fingerprint == before


def test_a_rollback_of_a_definition_takes_the_days_since_away_with_their_rows(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    plan = plans.published(AUDITED)
    next_day(world, *ROWS)
    world.fill(AUDITED, VISITS)

    rollback_plan(plans.project(AUDITED), plan)

    assert [int(cost) for _, cost in world.rows(VISITS, "ds", "cost")] == [7, 8, 9, 10]
    assert world.ready(OLD, VISITS) == "2024-01-07..2024-01-10 (4)"
    world.fill(OLD)
    assert totals(world) == [7, 8, 9, 10, 11]


@pytest.mark.parametrize("back", [undo_plan, rollback_plan])
def test_a_plan_that_only_filled_gaps_is_not_taken_back_and_says_so(
    world: World, plans: Plans, back: Callable[..., object]
):
    world.begin(OLD, *ROWS)
    next_day(world, *ROWS)
    plan = plans.make(OLD)
    assert plans.apply(OLD, plan).status is PlanStatus.PROMOTED

    with pytest.raises(RequestError, match=f"plan {plan.plan_id} has only filled gaps"):
        back(plans.project(OLD), plan)
    with pytest.raises(RequestError, match=f"plan {plan.plan_id} has only filled gaps"):
        promoted_after(world.store, plan)

    assert totals(world) == [7, 8, 9, 10, 11]


def test_a_rollback_within_a_table_publishes_only_cells_that_were_built_again_since(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    plan = restated(world, plans, 8, BAD)
    rollback_plan(plans.project(OLD), plan)
    moves = [each for each in world.store.history.moves_of(plan.plan_id) if each.is_way_back]
    assert {text(OLD, each.model, each.cells) for each in moves} == {"2024-01-08"}


def test_a_rollback_within_a_table_brings_a_row_back_to_the_cell_that_it_left_for_a_day_since(
    world: World, plans: Plans
):
    kind = IncrementalByUniqueKey("ds", rows_move=True)
    graph = a_graph(visits(kind=kind, deletes="none", unique_key=["id"]))
    world.begin(graph, *KEYED)
    plan = plans.published(graph, restate=(Restatement(VISITS, "2024-01-09", "2024-01-09"),))
    world.clock.now += timedelta(days=1)
    world.land(a_source(), *(each for each in KEYED if each[1] != 8), row(11, 8, 8.0))
    world.fill(graph)
    assert (on(11), 8) in world.rows(VISITS, "ds", "id")

    rollback_plan(plans.project(graph), plan)

    assert world.rows(VISITS, "ds", "id") == [(on(number), number) for number in range(7, 11)]


def test_a_day_that_an_undo_takes_away_in_all_models_is_owed_in_none(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    next_day(world, *ROWS)
    plan = plans.published(OLD, restate=(Restatement(VISITS),))
    assert totals(world) == [7, 8, 9, 10, 11]

    undo_plan(plans.project(OLD), plan)

    assert totals(world) == [7, 8, 9, 10]
    assert not world.store.views.of(PROD).owed


def test_what_an_undo_brings_back_is_not_owed_for_a_day_that_it_takes_away(
    world: World, plans: Plans
):
    world.begin(_with_sum(), *ROWS)
    next_day(world, *ROWS)
    plan = plans.published(_with_sum(), restate=(Restatement(VISITS),))
    assert world.rows(SUM, "total") == [(Decimal(45),)]

    undo_plan(plans.project(_with_sum()), plan)

    assert world.rows(SUM, "total") == [(Decimal(34),)]
    assert not world.store.views.of(PROD).owed


def test_a_new_table_that_is_left_owes_the_day_that_its_plan_had_brought_where_it_is_used_again(
    world: World, plans: Plans
):
    """The day has come again by then, with other rows, so that no stamp tells of it afterwards."""
    world.begin(OLD, *ROWS)
    next_day(world, *ROWS)
    plan = plans.published(EDITED, restate=(Restatement(VISITS),))
    undo_plan(plans.project(EDITED), plan)
    world.land(a_source(), *ROWS, row(11, 1, 50.0))
    world.fill(OLD, VISITS)

    plans.published(EDITED, select=(COSTS,), skip_upstream=True, reason="again")

    assert totals(world) == [8, 9, 10, 11, 51]


def test_what_dev_has_computed_from_visits_of_its_own_is_not_owed_when_prod_takes_a_day_back(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    plan = with_its_day(world, plans)
    plans.published(a_graph(visits(DOUBLE), costs("cost + 1")), "dev")

    undo_plan(plans.project(OLD), plan)

    assert totals(replace(world, environment="dev")) == [8, 9, 10, 11, 12]
    assert not world.store.views.of("dev").owed


def test_what_has_read_a_day_beside_a_table_that_was_collected_is_owed_when_the_day_is_taken_back(
    world: World, plans: Plans
):
    world.begin(_with_sum(), *ROWS)
    next_day(world, *ROWS)
    ninth, last = Restatement(VISITS, *["2024-01-09"] * 2), Restatement(VISITS, "2024-01-10")
    plan = plans.published(_with_sum(), select=(VISITS,), restate=(last,))
    world.land(a_source(), *changed(row(9, 1, 90.0)), row(11, 1, 11.0))
    plans.published(_with_sum(), restate=(ninth,))
    assert world.rows(SUM, "total") == [(Decimal(126),)]
    world.clock.now += timedelta(days=2)
    collected = collect(world.open(_with_sum()), timedelta(days=30))
    assert VISITS in {table.model for table in collected.tables}

    undo_plan(plans.project(_with_sum()), plan)

    assert world.store.views.of(PROD).owed[SUM]


def test_a_day_is_taken_back_that_a_dropped_dev_had_computed_from_beside_visits_of_its_own(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    plan = with_its_day(world, plans)
    plans.published(a_graph(visits(DOUBLE), costs("cost + 1")), "dev")
    world.store.environments.drop_environment("dev")

    undo_plan(plans.project(OLD), plan)

    assert [int(cost) for _, cost in world.rows(VISITS, "ds", "cost")] == [7, 8, 9, 10]


def test_what_was_computed_from_cells_of_prod_is_owed_where_devs_own_table_leaves_them_out(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    for name, follows in (("dev", PROD), ("dev_of_dev", "dev")):
        environment = Environment(name, protected=False, follows=follows)
        world.store.environments.save_environment(environment)
    plans.published(EDITED, "dev_of_dev")

    plans.published(a_graph(visits(cadence=Daily(start="2024-01-09")), costs()), "dev")

    owed = world.store.views.of("dev_of_dev").owed
    assert text(OLD, COSTS, owed[COSTS]) == "2024-01-07..2024-01-08 (2)"


def test_a_definition_is_undone_though_cells_were_restated_under_it(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    before = world.pointer(VISITS).fingerprint
    first = plans.published(AUDITED)
    restated(world, plans, 8, BAD, graph=AUDITED)
    head = world.head(VISITS)
    undo_plan(plans.project(AUDITED), first)
    assert world.pointer(VISITS).fingerprint == before
    assert world.head(VISITS) == head
    assert totals(world) == [7, 99, 9, 10]


def test_prod_is_rolled_back_to_no_plan_whose_own_data_or_that_of_one_before_it_went(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    first = restated(world, plans, 8, BAD)
    second = restated(world, plans, 7, BAD, row(7, 1, 77.0))
    third = restated(world, plans, 9, BAD, row(7, 1, 77.0), row(9, 1, 90.0))
    after = [each.plan_id for each in promoted_after(world.store, first)]
    assert after == [third.plan_id, second.plan_id]
    with pytest.raises(
        RequestError, match=f"nothing was promoted in prod after plan {third.plan_id}"
    ):
        promoted_after(world.store, third)
    undo_plan(plans.project(OLD), first)
    with pytest.raises(RequestError, match=f"plan {first.plan_id} is undone.*is promoted"):
        promoted_after(world.store, first)
    with pytest.raises(RequestError, match=f"{first.plan_id}, promoted before.*{third.plan_id}"):
        promoted_after(world.store, second)


def test_a_plan_that_is_promoted_while_another_is_being_taken_back_is_not_overrun(
    world: World, plans: Plans, monkeypatch: pytest.MonkeyPatch
):
    world.begin(OLD, *ROWS)
    world.land(a_source(), *changed(BAD))
    eighth = Restatement(VISITS, "2024-01-08", "2024-01-08")
    first = plans.published(OLD, restate=(eighth,))
    world.land(a_source(), *changed(row(8, 1, 50.0)))
    second = plans.make(OLD, restate=(eighth,))
    plans.apply(OLD, second)
    before_call(going_back, "move_pointers", lambda: plans.promote(OLD, second), monkeypatch)
    with pytest.raises(
        RequestError, match=f"others have changed the same cells or models since: {second.plan_id}"
    ):
        rollback_plan(plans.project(OLD), first)
    assert totals(world) == [7, 50, 9, 10]


def test_a_day_that_is_filled_while_the_locks_are_taken_is_kept_by_an_undo_too(
    world: World, plans: Plans, monkeypatch: pytest.MonkeyPatch
):
    world.begin(OLD, *ROWS)
    plan = plans.published(MORE)
    next_day(world, *ROWS)
    before_call(going_back, "move_pointers", lambda: world.fill(MORE), monkeypatch)
    back = undo_plan(plans.project(MORE), plan)
    assert [int(cost) for _, cost in world.rows(VISITS, "ds", "cost")] == [7, 8, 9, 10, 11]
    assert set(back.carried) == {VISITS}


def test_a_new_model_that_was_taken_back_comes_again_with_a_plan_only(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    more = a_graph(*OLD.models.values(), a_model("web.other", cadence=CADENCE))
    plan = plans.published(more)
    rollback_plan(plans.project(more), plan)
    assert told(world.fill(more, "web.other")["web.other"]) == ["waiting"]
    assert "web.other" not in world.store.environments.pointers(PROD)
    world.clock.now += timedelta(minutes=1)
    plans.published(more)
    assert told(world.fill(more, "web.other")["web.other"]) == ["skipped"]


def test_where_the_promise_has_passed_the_restating_plan_is_named(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    world.land(a_source(), *changed(BAD))
    plan = plans.published(OLD, restate=(Restatement(VISITS, "2024-01-08", "2024-01-08"),))
    world.clock.now += timedelta(days=31)
    with pytest.raises(RequestError, match="can't be taken back any more") as refused:
        rollback_plan(plans.project(OLD), plan)
    day = "2024-01-08T00:00:00Z..2024-01-09T00:00:00Z"
    assert f"--restate {VISITS}:{day}" in str(refused.value)


def test_a_way_back_whose_promise_passes_while_it_waits_for_its_turn_is_refused(
    world: World, plans: Plans, monkeypatch: pytest.MonkeyPatch
):
    world.begin(OLD, *ROWS)
    world.land(a_source(), *changed(BAD))
    plan = plans.published(OLD, restate=(Restatement(VISITS, "2024-01-08", "2024-01-08"),))
    before = totals(world)

    def slowly(*_: object) -> None:
        world.clock.now += timedelta(days=31)

    monkeypatch.setattr(going_back, "reconcile_tables", slowly)
    with pytest.raises(RequestError, match="more than 30 days ago"):
        rollback_plan(plans.project(OLD), plan)
    assert totals(world) == before


def test_a_plan_is_taken_back_at_the_last_instant_of_its_promise(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    plan, promise = plans.published(MORE), PlanTerms().promise_days
    world.clock.now += timedelta(days=promise)
    collect(world.open(MORE), timedelta(days=promise))
    rollback_plan(plans.project(MORE), plan)
    assert totals(world) == [7, 8, 9, 10]


@pytest.mark.parametrize("back", [undo_plan, rollback_plan])
def test_a_plan_is_not_taken_back_once_the_table_that_was_read_before_it_is_deleted(
    world: World, plans: Plans, back: Callable[..., object]
):
    world.begin(OLD, *ROWS)
    old = world.path(VISITS)
    plan = plans.published(MORE)
    published = world.pointer(VISITS)
    delete_table(old)
    with pytest.raises(
        RequestError, match=f"the old table of {VISITS} was deleted.*builds the old"
    ):
        back(plans.project(MORE), plan)
    assert world.pointer(VISITS) == published
    assert world.store.plans.get(plan.plan_id).status is PlanStatus.PROMOTED


def test_a_plan_is_not_taken_back_to_a_table_that_lacks_its_last_commit(world: World, plans: Plans):
    """The table was restored from a backup, say."""
    world.begin(OLD, *ROWS)
    next_day(world, *ROWS)
    world.fill(OLD)
    last = Path(world.path(VISITS)) / "_delta_log" / f"{world.head(VISITS):020}.json"
    plan = plans.published(MORE)
    last.unlink()

    with pytest.raises(RequestError, match=f"the old table of {VISITS} was deleted"):
        rollback_plan(plans.project(MORE), plan)


def test_a_plan_whose_old_table_was_collected_is_not_taken_back_though_more_is_promised_since(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    left = world.pointer(VISITS).version
    plan = plans.published(MORE)
    for days_later in (31, 10):  # what the first collection forgets is deleted by a later one
        world.clock.now += timedelta(days=days_later)
        collect(world.open(MORE), timedelta(days=30))
    assert not world.store.versions.is_known(left)

    with pytest.raises(RequestError, match=f"the old table of {VISITS} was deleted"):
        rollback_plan(plans.project(MORE, terms=PlanTerms(promise_days=60)), plan)


def test_a_plan_is_taken_back_for_as_long_as_its_promotion_promised_whatever_is_set_since(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    before = totals(world)
    restated = (Restatement(VISITS),)
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    plan = plans.published(OLD, restate=restated)
    world.clock.now += timedelta(days=20)
    collect(world.open(OLD), timedelta(days=1))
    shorter = plans.project(OLD, terms=PlanTerms(promise_days=1))
    rollback_plan(shorter, plan)
    assert totals(world) == before


def test_what_no_pointer_and_no_promise_needs_is_collected_and_the_rest_stays(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    old, promise = world.path(VISITS), timedelta(days=30)
    promoted = plans.published(MORE)
    given_up = plans.make(MORE, restate=(Restatement(COSTS),))
    plans.apply(MORE, given_up)
    abandon_plan(plans.project(MORE), given_up)
    assert what_to_collect(world.open(MORE), promise).tables == ()  # readers have a day of grace
    world.clock.now += timedelta(days=2)
    run = world.open(MORE)
    found = what_to_collect(run, promise)
    # Of the plan that was promoted, an empty table over the costs is left.
    assert {(table.model, table.made_by) for table in found.tables} == {
        (COSTS, given_up.plan_id),
        (COSTS, promoted.plan_id),
    }
    assert found == what_to_collect(run, promise)
    assert collect(run, promise).tables == found.tables
    assert DeltaTable.is_deltatable(old)
    world.clock.now += timedelta(days=31)
    assert [table.model for table in collect(run, promise).tables] == [VISITS]
    assert not DeltaTable.is_deltatable(old)
    assert totals(world) == [7, 8, 9, 10]
    assert [int(value) for _, value in world.rows(VISITS, "ds", "double")] == [14, 16, 18, 20]


@pytest.fixture
def given_up(world: World, plans: Plans) -> list[str]:
    """The two tables of a plan that was given up long ago."""
    world.begin(OLD, *ROWS)
    plan = plans.make(OLD, restate=(Restatement(VISITS),))
    plans.apply(OLD, plan)
    abandon_plan(plans.project(OLD), plan)
    world.clock.now += timedelta(days=2)
    found = what_to_collect(world.open(OLD), timedelta(days=30)).tables
    assert len(found) == 2
    return [table.version for table in found]


def test_a_table_that_another_collection_deletes_is_left_to_it(
    world: World, given_up: list[str], monkeypatch: pytest.MonkeyPatch
):
    others: list[Collected] = []

    def deleted(path: str) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(collecting, "delete_table", delete_table)
            others.append(collect(world.open(OLD), timedelta(days=30)))
        delete_table(path)

    monkeypatch.setattr(collecting, "delete_table", deleted)
    collected = collect(world.open(OLD), timedelta(days=30))

    (other,) = others
    assert [table.version for table in collected.tables] == given_up[:1]
    assert [table.version for table in other.tables] == given_up[1:]
    assert [left.version for left in other.passed_over] == given_up[:1]
    assert what_to_collect(world.open(OLD), timedelta(days=30)).tables == ()


def test_tables_that_another_collection_has_forgotten_meanwhile_are_no_error(
    world: World, given_up: list[str], monkeypatch: pytest.MonkeyPatch
):
    run = world.open(OLD)
    listed = run.store.collection.collectable_versions(timedelta(days=30), GRACE)
    assert [table.version for table in listed] == given_up
    collect(world.open(OLD), timedelta(days=30))
    monkeypatch.setattr(run.store.collection, "collectable_versions", lambda *_: listed)

    assert collect(run, timedelta(days=30)).tables == ()


def test_an_environment_that_another_collection_has_dropped_is_no_error(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    store = world.store.environments
    for name in ("dev_ada", "dev_bob"):
        store.save_environment(Environment(name, protected=False, expires_at=world.clock()))
    listed = store.by_name()
    run = world.open(OLD)
    monkeypatch.setattr(run.store.environments, "by_name", lambda: listed)
    drop, dropped = store.drop_environment, list[str]()

    def dropped_by_both(name: str) -> None:
        dropped.append(name)
        if name == "dev_ada":
            drop(name)
        drop(name)

    monkeypatch.setattr(run.store.environments, "drop_environment", dropped_by_both)
    assert collect(run, timedelta(days=30)).environments == ("dev_bob",)
    assert dropped == ["dev_ada", "dev_bob"]


def test_an_environment_lives_for_its_days_after_its_last_publication_or_fill(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    promise, days = timedelta(days=90), timedelta(days=PlanTerms().environment_days)

    def expires_in(left: timedelta) -> bool:
        world.clock.now += left - timedelta(minutes=1)
        assert what_to_collect(world.open(MORE), promise).environments == ()
        world.clock.now += timedelta(minutes=1)
        return what_to_collect(world.open(MORE), promise).environments == ("dev",)

    dev = Environment("dev", protected=False, follows=PROD, expires_at=world.clock() + days)
    world.store.environments.save_environment(dev)
    world.clock.now += days - timedelta(days=1)
    plans.published(MORE, "dev", select=(VISITS,))
    assert expires_in(days)
    world.land(a_source(), *ROWS, row(11, 1, 11.0))
    replace(world, environment="dev", runs=world.runs + 100).fill(MORE, VISITS)
    assert expires_in(days)


def test_an_undo_that_is_refused_keeps_no_table_from_later_plans(world: World, plans: Plans):
    old = a_graph(visits(audits=[accepted_range("cost", None, 50)]), costs())
    world.begin(old, *ROWS)
    plan = plans.published(MORE)
    world.clock.now += timedelta(days=1)
    world.land(a_source(), *ROWS, row(11, 1, 99.0))
    world.fill(MORE)
    with pytest.raises(RequestError, match="can't be computed with the logic before it"):
        undo_plan(plans.project(MORE), plan)
    assert [each.name for each in world.store.environments.by_name()] == [PROD]
    wider = a_graph(visits(audits=[accepted_range("cost", None, 500)]), costs())
    then = world.store.history.promoting_moves(plan.plan_id)
    plans.published(wider)
    assert world.pointer(VISITS).version in {move.old.version for move in then if move.old}


def _undo_died(world: World, plans: Plans, monkeypatch: pytest.MonkeyPatch, *, after: str) -> Plan:
    """Publish a new table and fill a day in it, and let the process die that takes the table back."""
    plan = a_new_table_and_a_day_since(world, plans)
    with doomed(world, lambda *_: None, monkeypatch) as process:
        die_after(after, process)
        undo_plan(Plans(process).project(MORE), plan)
    return plan


def test_a_rollback_publishes_no_day_that_an_undo_which_died_has_carried_back(
    world: World, plans: Plans, monkeypatch: pytest.MonkeyPatch
):
    plan = _undo_died(world, plans, monkeypatch, after="record")
    world.clock.pass_lease()

    rollback_plan(plans.project(MORE), plan)

    assert world.ready(OLD, VISITS) == "2024-01-07..2024-01-10 (4)"
    assert [int(cost) for _, cost in world.rows(VISITS, "ds", "cost")] == [7, 8, 9, 10]
    assert told(world.fill(OLD, VISITS)[VISITS]) == ["committed", "skipped"]
    assert [int(cost) for _, cost in world.rows(VISITS, "ds", "cost")] == [7, 8, 9, 10, 11]


def test_what_an_undo_that_died_keeps_is_free_once_its_plan_cannot_be_taken_back_any_more(
    world: World, plans: Plans, monkeypatch: pytest.MonkeyPatch
):
    plan = _undo_died(world, plans, monkeypatch, after="commit")
    name = workspace_name(f"{plan.plan_id}.undo")
    promise = timedelta(days=30)
    world.clock.now += timedelta(days=29)
    assert what_to_collect(world.open(MORE), promise).environments == ()
    world.clock.now += timedelta(days=2)
    assert what_to_collect(world.open(MORE), promise).environments == (name,)
    assert collect(world.open(MORE), promise).environments == (name,)
    assert not world.store.environments.exists(name)


def test_an_expired_environment_with_a_dead_publication_keeps_no_other_from_being_collected(
    world: World,
):
    world.begin(OLD, *ROWS)
    for name in ("dev", "old"):
        expired = Environment(name, protected=False, follows=PROD, expires_at=world.clock())
        world.store.environments.save_environment(expired)
    world.store.publications.begin_promotion(
        Intent(
            plan_id="p1",
            environment="dev",
            kind=PublicationKind.ROLLBACK,
            holder="dead",
            versions=(),
        )
    )

    collected = collect(world.open(OLD), timedelta(days=30))

    assert collected.environments == ("old",)
    assert world.store.environments.exists("dev")


def test_a_table_whose_publication_died_is_named_and_keeps_no_other_from_being_collected(
    world: World,
):
    world.begin(OLD, *ROWS)
    orphans = [Path(world.path(model)) / "orphan.parquet" for model in (COSTS, VISITS)]
    for orphan in orphans:
        orphan.write_bytes(b"of a batch that died")
        os.utime(orphan, (0, 0))
    version = world.pointer(COSTS).version
    world.store.publications.begin_promotion(
        Intent(
            plan_id="p1",
            environment=PROD,
            kind=PublicationKind.PROMOTE,
            holder="dead",
            versions=(version,),
        )
    )
    world.clock.pass_lease()

    collected = collect(world.open(OLD), timedelta(days=30))

    (left,) = collected.passed_over
    assert left.version == version
    assert "the promote of plan p1" in left.why
    assert [orphan.exists() for orphan in orphans] == [True, False]


def _gone(table: Path) -> None:
    shutil.rmtree(table)


def _cut_short(table: Path) -> None:
    (table / "_delta_log" / f"{1:020d}.json").unlink()


def _cleaned_by_others(table: Path) -> None:
    DeltaTable(table).create_checkpoint()
    (table / "_delta_log" / f"{0:020d}.json").unlink()


@pytest.mark.parametrize("damaged", [_gone, _cut_short, _cleaned_by_others])
def test_a_damaged_table_is_named_and_keeps_no_other_from_being_collected(
    world: World, damaged: Callable[[Path], None]
):
    world.begin(OLD, *ROWS)
    orphan = Path(world.path(VISITS)) / "orphan.parquet"
    orphan.write_bytes(b"of a batch that died")
    os.utime(orphan, (0, 0))
    table, whole = Path(world.path(COSTS)), world.root / "whole"
    shutil.copytree(table, whole)
    damaged(table)
    run = world.open(OLD)

    settle_read(run)
    would_go = what_to_collect(run, timedelta(days=30))
    collected = collect(run, timedelta(days=30))

    (left,) = collected.passed_over
    assert left.version == world.pointer(COSTS).version
    assert str(table) in left.why
    assert [len(vacuumed.files) for vacuumed in would_go.vacuumed] == [1]
    assert not orphan.exists()
    shutil.rmtree(table, ignore_errors=True)
    whole.rename(table)
    assert collect(world.open(OLD), timedelta(days=30)).passed_over == ()


@pytest.mark.parametrize("back", [undo_plan, rollback_plan])
def test_a_first_plan_of_a_model_that_others_are_declared_to_read_is_taken_back(
    world: World, plans: Plans, back: Callable[..., object]
):
    world.land(a_source(), *ROWS)
    plan = plans.published(OLD, select=(VISITS,))
    back(plans.project(OLD), plan)
    assert VISITS not in world.store.environments.own_pointers(PROD)
    plans.published(OLD)
    world.fill(OLD)
    assert totals(world) == [7, 8, 9, 10]


def test_what_a_plan_has_published_in_an_environment_that_was_dropped_is_not_brought_into_another_one(
    world: World, plans: Plans
):
    world.begin(OLD, row(8), row(9))
    dev = Environment("dev", protected=False, follows=PROD)
    world.store.environments.save_environment(dev)
    first = plans.published(EDITED, "dev")
    second = plans.published(EDITED, "dev", restate=(Restatement(COSTS),))

    world.store.environments.drop_environment("dev")
    world.store.environments.save_environment(dev)

    for way_back in (rollback_plan, undo_plan):
        with pytest.raises(RequestError, match="'dev' was dropped"):
            way_back(plans.project(EDITED), second)
    with pytest.raises(RequestError, match="'dev' was dropped"):
        promoted_after(world.store, first)
    assert world.store.environments.own_pointers("dev") == {}


def test_what_a_dropped_dev_has_filled_from_rows_of_its_own_is_computed_again_for_another_dev(
    world: World, plans: Plans
):
    """The plan takes the dropped one's table over, but reads prod where that one had a restated day."""
    world.begin(OLD, *ROWS)
    dev = Environment("dev", protected=False, follows=PROD)
    world.store.environments.save_environment(dev)
    plans.published(EDITED, "dev")
    next_day(world, *ROWS)
    world.fill(OLD, VISITS)
    world.land(a_source(), *ROWS, row(11, 1, 99.0))
    eleventh = Restatement(VISITS, "2024-01-11", "2024-01-11")
    plans.published(EDITED, "dev", select=(VISITS,), restate=(eleventh,))
    in_dev = replace(world, environment="dev", runs=500)
    in_dev.fill(EDITED, COSTS)
    assert totals(in_dev) == [8, 9, 10, 11, 100]

    world.store.environments.drop_environment("dev")
    world.store.environments.save_environment(dev)
    plans.published(EDITED, "dev", select=(COSTS,), skip_upstream=True, reason="again")

    assert totals(in_dev) == [8, 9, 10, 11, 12]


def test_a_plan_of_an_environment_that_was_dropped_can_be_abandoned(world: World, plans: Plans):
    world.begin(OLD, row(8), row(9))
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    plan = plans.make(EDITED, "dev")
    world.store.environments.drop_environment("dev")

    abandon_plan(plans.project(EDITED), plan)

    assert world.store.plans.get(plan.plan_id).status is PlanStatus.ABANDONED


def test_what_dev_takes_back_it_reads_from_prod_again(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    plan = plans.published(MORE, "dev")
    undo_plan(plans.project(MORE), plan)
    assert world.store.environments.own_pointers("dev") == {}
    assert world.store.environments.pointers("dev") == world.store.environments.pointers(PROD)
    assert not plans.make(MORE, "dev").is_empty


def test_after_a_way_back_the_same_plan_publishes_what_was_built_and_computes_nothing(
    world: World, plans: Plans
):
    doubled = f"SELECT ds, id, CAST(cost * 2 AS DECIMAL(18,2)) AS cost FROM web.events {WHERE}"
    new = a_graph(a_model(sql=doubled, cadence=CADENCE), costs())
    world.begin(OLD, *ROWS)
    rollback_plan(plans.project(new), plans.published(new, reason="first"))
    assert totals(world) == [7, 8, 9, 10]
    again = plans.make(new, reason="again")
    assert {planned.model: planned.build for planned in again.models} == dict.fromkeys(
        (VISITS, COSTS), Build.NEW_VERSION
    )
    assert not any(planned.cells for planned in again.models)
    plans.apply(new, again)
    assert plans.promote(new, again).carried == {}
    assert totals(world) == [14, 16, 18, 20]
    assert not world.store.batches.of_plan(again.plan_id)
    assert plans.make(new).is_empty


def test_what_was_built_before_its_input_went_is_built_again_where_its_table_is_used_again(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    edited = a_graph(visits(), costs("cost + 1"))
    rollback_plan(plans.project(edited), plans.published(edited, reason="first"))
    shorter = a_graph(visits(cadence=Daily(start="2024-01-09")), costs("cost + 1"))
    plan = plans.published(shorter, reason="again")
    assert [model.build for model in plan.models] == [Build.NEW_VERSION, Build.NEW_VERSION]
    assert totals(world) == [10, 11]
    assert plans.make(shorter).is_empty


@pytest.mark.parametrize("retired", [OLD, MORE])
def test_a_table_that_prod_has_left_but_owns_keeps_no_other_environment_from_its_definition(
    world: World, plans: Plans, retired: Graph
):
    world.begin(OLD, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    plan = plans.published(MORE)
    if retired is MORE:
        rollback_plan(plans.project(MORE), plan)
    left = plan.models[0].old_version if retired is OLD else plan.models[0].version
    owned, rows = world.head(VISITS), world.rows(VISITS, "ds", "cost")
    plans.published(retired, "dev")
    own = world.store.environments.own_pointers("dev")[VISITS]
    assert own.version.startswith(f"{left}_")
    assert (world.head(VISITS), world.rows(VISITS, "ds", "cost")) == (owned, rows)
    assert plans.make(retired, "dev").is_empty
    plans.published(retired)
    assert world.pointer(VISITS).version == left


@pytest.mark.parametrize("back", [undo_plan, rollback_plan])
def test_what_was_owed_before_a_plan_is_owed_again_after_its_way_back(
    world: World, plans: Plans, back: Callable[..., object]
):
    """The sum was taken back, the new day of its input was not; no stamp tells of that afterwards."""
    world.begin(_with_sum(), *ROWS)
    next_day(world, *ROWS)
    rollback_plan(plans.project(_with_sum()), plans.published(_with_sum()))
    assert world.store.views.of(PROD).owed[SUM]
    more = _with_sum("+ 1")
    plan = plans.published(more)
    assert not world.store.views.of(PROD).owed[SUM]
    back(plans.project(more), plan)
    assert world.store.views.of(PROD).owed[SUM]


def test_a_cell_beside_a_plan_that_was_stale_before_it_and_built_since_is_not_owed_after_its_undo(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    plan = plans.make(OLD, restate=(Restatement(COSTS, "2024-01-08", "2024-01-08"),))
    plans.apply(OLD, plan)
    world.land(a_source(), *changed(row(9, 1, 90.0)))
    ninth = Restatement(VISITS, "2024-01-09", "2024-01-09")
    plans.published(OLD, select=(VISITS,), restate=(ninth,))
    plans.promote(OLD, plan)
    (left,) = plans.published(OLD).models
    assert (left.model, text(OLD, COSTS, left.cells)) == (COSTS, "2024-01-09")

    undo_plan(plans.project(OLD), plan)

    assert totals(world) == [7, 8, 90, 10]
    assert not world.store.views.of(PROD).owed
    assert plans.make(OLD).is_empty


@pytest.mark.parametrize("back", [undo_plan, rollback_plan])
def test_what_was_declared_wrong_before_a_plan_rebuilt_it_in_its_table_is_owed_after_its_way_back(
    world: World, plans: Plans, back: Callable[..., object]
):
    """Nothing that it reads has changed, so no stamp tells of it."""
    world.begin(OLD, *ROWS)
    owe(world.store, world.pointer(COSTS).version, days(9), "wrong")
    plan = plans.published(OLD)
    assert [(model.model, model.build) for model in plan.models] == [(COSTS, Build.IN_PLACE)]
    assert not world.store.views.of(PROD).owed
    back(plans.project(OLD), plan)
    assert text(OLD, COSTS, world.store.views.of(PROD).owed[COSTS]) == "2024-01-09"


def _with_sum(extra: str = "") -> Graph:
    """Visits, and one cell that adds up all of them and counts none, so that an edit explains all that differs."""
    sql = f"SELECT 'all' AS id, CAST(SUM(cost) {extra} AS DECIMAL(18,2)) AS total FROM {VISITS}"
    columns = (Column("id", "string"), Column("total", "decimal(18,2)"))
    whole: Any = {"cadence": Whole(), "kind": Full(), "unique_key": ["id"], "columns": columns}
    reads = [Upstream(VISITS, reopens=Reopens.ALL)]
    return a_graph(visits(), a_model(SUM, sql=sql, upstreams=reads, grain="one row", **whole))


@pytest.mark.parametrize("extra", ["", DOUBLE])
def test_what_an_undo_brings_back_is_stale_where_it_has_not_read_the_days_since(
    world: World, plans: Plans, extra: str
):
    old, new = (a_graph(visits(more), total_of_visits()) for more in ("", extra))
    world.begin(old, *ROWS)
    world.land(a_source(), *changed(BAD))
    plan = plans.published(new, restate=(Restatement(VISITS),))
    assert [each.model for each in plan.models] == [VISITS, SUM]
    next_day(world, *changed(BAD))
    world.fill(new)
    undo_plan(plans.project(new), plan)
    assert [int(cost) for _, cost in world.rows(VISITS, "ds", "cost")] == [7, 8, 9, 10, 11]
    assert world.rows(SUM, "total") == [(Decimal(34),)]
    assert world.store.views.of(PROD).owed[SUM]
    plans.published(old, select=(SUM,), skip_upstream=True)
    assert world.rows(SUM, "total") == [(Decimal(45),)]
    assert not world.store.views.of(PROD).owed


@pytest.mark.parametrize("back", [undo_plan, rollback_plan])
@pytest.mark.parametrize("restated_first", [True, False])
def test_what_has_become_stale_in_a_model_before_or_after_it_was_removed_is_owed_once_it_is_read_again(
    world: World, plans: Plans, back: Callable[..., object], *, restated_first: bool
):
    alone = a_graph(visits())
    restated: dict[str, Any] = {"select": (VISITS,), "restate": (Restatement(VISITS),)}
    world.begin(OLD, *ROWS)
    world.land(a_source(), *changed(BAD))
    if restated_first:
        plans.published(OLD, **restated)
    removing = plans.published(alone)
    assert removing.removed == (COSTS,)
    if not restated_first:
        plans.published(alone, **restated)
    back(plans.project(alone), removing)
    assert totals(world) == [7, 8, 9, 10]
    assert text(OLD, COSTS, world.store.views.of(PROD).owed[COSTS]) == "2024-01-08"


@pytest.mark.parametrize("changed_first", [True, False])
def test_what_an_undo_brings_back_before_a_cutoff_is_owed_where_it_has_not_read_what_is_published(
    world: World, plans: Plans, *, changed_first: bool
):
    """While a cutoff keeps a cell, the rule does not ask what it has read; the cutoff can be lifted."""
    eighth = {model: Restatement(model, "2024-01-08", "2024-01-08") for model in (VISITS, COSTS)}
    world.begin(OLD, *ROWS)
    world.land(a_source(), *changed(BAD))
    if changed_first:
        plans.published(OLD, select=(VISITS,), restate=(eighth[VISITS],))
    plan = plans.published(OLD, select=(COSTS,), restate=(eighth[COSTS],))
    keeping = plans.published(EDITED, cutoff="2024-01-10", reason="agreed")
    if not changed_first:
        plans.published(EDITED, select=(VISITS,), restate=(eighth[VISITS],))

    undo_plan(plans.project(EDITED), plan)
    undo_plan(plans.project(EDITED), keeping)

    assert totals(world) == [7, 8, 9, 10]
    (left,) = plans.make(OLD).models
    assert (left.model, text(OLD, COSTS, left.cells)) == (COSTS, "2024-01-08")


def test_days_that_a_definition_has_computed_are_owed_once_it_is_undone_in_its_table(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    plan = plans.published(EDITED, forward_only=True)
    next_day(world, *ROWS)
    world.fill(EDITED)
    assert totals(world) == [7, 8, 9, 10, 12]

    undo_plan(plans.project(EDITED), plan)

    assert text(OLD, COSTS, world.store.views.of(PROD).owed[COSTS]) == "2024-01-11"
    plans.published(OLD)
    assert totals(world) == [7, 8, 9, 10, 11]
    assert plans.make(OLD).is_empty


def test_older_days_that_keep_a_definition_by_decision_are_not_owed_when_it_is_undone_once_more(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    plans.published(EDITED, forward_only=True)
    next_day(world, *ROWS)
    world.fill(EDITED)
    plan = plans.published(OLD, forward_only=True, reason="as it was")
    world.clock.now += timedelta(days=1)
    world.land(a_source(), *ROWS, row(11, 1, 11.0), row(12, 1, 12.0))
    world.fill(OLD)
    assert totals(world) == [7, 8, 9, 10, 12, 12]

    undo_plan(plans.project(OLD), plan)

    assert text(OLD, COSTS, world.store.views.of(PROD).owed[COSTS]) == "2024-01-12"


def test_days_before_a_cutoff_that_was_lifted_since_are_owed_once_its_definition_is_undone(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    keeping = plans.published(EDITED, cutoff="2024-01-10", reason="agreed")
    plans.published(EDITED, lift_cutoffs=(COSTS,))
    assert totals(world) == [8, 9, 10, 11]

    undo_plan(plans.project(EDITED), keeping)

    assert totals(world) == [8, 9, 10, 10]
    owed = world.store.views.of(PROD).owed[COSTS]
    assert text(OLD, COSTS, owed) == "2024-01-07..2024-01-09 (3)"
    plans.published(OLD)
    assert totals(world) == [7, 8, 9, 10]
    assert plans.make(OLD).is_empty


def test_a_cell_beside_a_plan_that_is_stale_is_not_owed_after_its_undo(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    plan = plans.published(OLD, restate=(Restatement(COSTS, "2024-01-09", "2024-01-09"),))
    world.land(a_source(), *changed(BAD))
    eighth = Restatement(VISITS, "2024-01-08", "2024-01-08")
    plans.published(OLD, select=(VISITS,), restate=(eighth,))

    undo_plan(plans.project(OLD), plan)

    assert not world.store.views.of(PROD).owed
    (left,) = plans.make(OLD).models
    assert (left.model, text(OLD, COSTS, left.cells)) == (COSTS, "2024-01-08")


@pytest.mark.parametrize("back", [undo_plan, rollback_plan])
def test_what_comes_back_owes_cells_that_had_read_days_which_have_gone_since(
    world: World, plans: Plans, back: Callable[..., object]
):
    """No environment reads the costs while the new life of the visits takes two days away."""
    world.begin(OLD, *ROWS)
    removing = plans.published(a_graph(visits()))
    shorter = a_graph(visits(cadence=Daily(start="2024-01-09")))
    plans.published(shorter)

    back(plans.project(shorter), removing)

    assert totals(world) == [7, 8, 9, 10]
    owed = world.store.views.of(PROD).owed[COSTS]
    assert not days(7, 8) - owed


def test_a_way_back_owes_nothing_for_a_day_that_came_and_went_since(world: World, plans: Plans):
    """The sum had not read the day when the plan built it again; now there is no such day."""
    world.begin(_with_sum(), *ROWS)
    day = with_its_day(world, plans, _with_sum())
    more = _with_sum("+ 1")
    plan = plans.published(more)
    undo_plan(plans.project(more), day)

    rollback_plan(plans.project(more), plan)

    assert world.rows(SUM, "total") == [(Decimal(34),)]
    assert not world.store.views.of(PROD).owed[SUM]


def test_a_table_that_holds_a_column_of_another_type_is_not_planned_to_be_kept(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    plan = plans.published(MORE, forward_only=True)
    next_day(world, *ROWS)
    world.fill(MORE)
    rollback_plan(plans.project(MORE), plan)
    columns = (*visits().schema, Column("double", "bigint"))
    sql = f"SELECT ds, id, cost, CAST(cost * 2 AS BIGINT) AS double FROM web.events {WHERE}"
    retyped = a_graph(a_model(VISITS, sql=sql, columns=columns, cadence=CADENCE), costs())

    with pytest.raises(RequestError, match="changes the type of double decimal"):
        plans.make(retyped, forward_only=True)

    plans.published(retyped)
    doubled = world.rows(VISITS, "ds", "double")
    assert doubled == [(on(day), 2 * day) for day in range(7, 12)]
