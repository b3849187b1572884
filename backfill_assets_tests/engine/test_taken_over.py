"""A publication takes cells over that were computed elsewhere, or that others read too: what they have not read is owed."""

# ruff: noqa: S608 - the SQL is the tests' own

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from backfill_assets.engine.plans import publishing
from backfill_assets.engine.plans.plan_verbs import abandon_plan, rollback_plan, undo_plan
from backfill_assets.planning.plan.request import Category, Restatement
from backfill_assets.snapshots.environment import PROD, Environment
from backfill_assets_tests.builders import a_graph, a_model, a_source
from backfill_assets_tests.engine.dying import before_call
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.test_plans import (
    CADENCE,
    COSTS,
    MORE,
    OLD,
    ROWS,
    VISITS,
    WHERE,
    changed,
    costs,
    visits,
)
from backfill_assets_tests.engine.world import row, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from backfill_assets_tests.engine.world import World

EDITED = a_graph(visits(), costs("cost + 1"))
DOUBLED = a_model(
    sql=f"SELECT ds, id, CAST(cost * 2 AS DECIMAL(18,2)) AS cost FROM web.events {WHERE}",
    cadence=CADENCE,
)
BAD = row(8, 1, 99.0)
EIGHTH = Restatement(VISITS, "2024-01-08", "2024-01-08")


@pytest.fixture
def plans(world: World) -> Plans:
    return Plans(world)


def begun_with_another_day(world: World) -> None:
    world.begin(OLD, *ROWS)
    world.clock.now += timedelta(days=1)
    world.land(a_source(), *ROWS, row(11, 1, 11.0))


def publish_more_in_dev(world: World, plans: Plans) -> None:
    world.begin(OLD, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    plans.published(MORE, "dev")


def owed(world: World, environment: str = PROD) -> str:
    return text(OLD, COSTS, world.store.views.of(environment).owed[COSTS])


@pytest.mark.parametrize("built_by", ["a plan that was given up", "dev"])
def test_cells_that_another_plan_has_recorded_as_empty_are_computed_unless_a_plan_asks_for_that_too(
    world: World, plans: Plans, built_by: str
):
    world.begin(a_graph(visits()), *ROWS)
    if built_by == "dev":
        world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
        plans.published(OLD, "dev", empty=True)
    else:
        given_up = plans.make(OLD, empty=True)
        plans.apply(OLD, given_up)
        abandon_plan(plans.project(OLD), given_up)
    (left_empty,) = plans.make(OLD, empty=True).models
    assert not left_empty.cells

    plans.published(OLD)

    assert [int(total) for _, total in world.rows(COSTS, "ds", "total")] == [7, 8, 9, 10]
    assert plans.make(OLD).is_empty


def test_what_a_plan_that_was_given_up_computed_from_a_day_of_its_own_is_owed(
    world: World, plans: Plans
):
    begun_with_another_day(world)
    given_up = plans.make(EDITED, restate=(Restatement(VISITS),))
    plans.apply(EDITED, given_up)
    abandon_plan(plans.project(EDITED), given_up)

    plans.published(EDITED, select=(COSTS,), reason="again")

    assert owed(world) == "2024-01-11"
    plans.published(EDITED)
    assert [int(total) for _, total in world.rows(COSTS, "ds", "total")] == [8, 9, 10, 11, 12]
    assert plans.make(EDITED).is_empty


def test_a_plan_names_the_cells_that_it_builds_again_since_they_were_built_elsewhere(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    world.land(a_source(), *changed(BAD))
    given_up = plans.make(EDITED, restate=(EIGHTH,))
    plans.apply(EDITED, given_up)
    abandon_plan(plans.project(EDITED), given_up)

    plan = plans.published(EDITED, select=(COSTS,), reason="again")

    (planned,) = plan.models
    assert text(EDITED, COSTS, planned.cells) == "2024-01-07..2024-01-10 (4)"
    assert [int(total) for _, total in world.rows(COSTS, "ds", "total")] == [8, 9, 10, 11]


def test_a_cell_that_is_stale_in_dev_is_owed_there_when_prod_takes_its_table_over(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    plans.published(EDITED, "dev")
    world.land(a_source(), *changed(BAD))
    plans.published(EDITED, "dev", select=(VISITS,), restate=(EIGHTH,))

    plans.published(EDITED, select=(COSTS,))

    assert (owed(world, "dev"), owed(world)) == ("2024-01-08", "none")
    plans.published(EDITED, "dev")
    assert plans.make(EDITED, "dev").is_empty


def test_dev_reads_the_days_that_prod_fills_in_a_table_that_it_has_taken_over_from_dev(
    world: World, plans: Plans
):
    publish_more_in_dev(world, plans)
    plans.published(MORE)
    world.clock.now += timedelta(days=1)
    world.land(a_source(), *ROWS, row(11, 1, 11.0))

    world.fill(MORE)

    ready = world.store.views.of("dev").ready(VISITS)
    assert text(MORE, VISITS, ready) == "2024-01-07..2024-01-11 (5)"
    assert plans.make(MORE, "dev").is_empty


@pytest.mark.parametrize("back", [undo_plan, rollback_plan])
def test_dev_goes_back_to_a_table_that_prod_has_taken_over_since_as_prod_publishes_it(
    world: World, plans: Plans, back: Callable[..., object]
):
    publish_more_in_dev(world, plans)
    other = a_graph(visits(", CAST(cost * 3 AS DECIMAL(18,2)) AS double"), costs())
    plan = plans.published(other, "dev")
    plans.published(MORE)

    back(plans.project(MORE), plan)

    assert world.store.environments.pointers("dev")[VISITS].environment == PROD
    assert plans.make(MORE).is_empty
    assert plans.make(MORE, "dev").is_empty


@pytest.mark.parametrize("back", [undo_plan, rollback_plan])
def test_cells_that_prod_has_taken_over_with_their_table_stay_where_dev_goes_back(
    world: World, plans: Plans, back: Callable[..., object]
):
    publish_more_in_dev(world, plans)
    world.land(a_source(), *changed(row(8, 1, 80.5)))
    plan = plans.published(MORE, "dev", restate=(Restatement(VISITS, "2024-01-08", "2024-01-08"),))
    plans.published(MORE)
    rows = world.rows(VISITS)

    back(plans.project(MORE), plan)

    assert world.rows(VISITS) == rows
    assert plans.make(MORE, "dev").is_empty


def test_a_copy_owes_what_its_table_came_to_owe_while_it_was_published(
    world: World, plans: Plans, monkeypatch: pytest.MonkeyPatch
):
    begun_with_another_day(world)
    day = plans.published(OLD, select=(VISITS,), restate=(Restatement(VISITS),))
    plan = plans.make(OLD, select=(COSTS,), restate=(Restatement(COSTS),))
    plans.apply(OLD, plan)
    before_call(
        publishing,
        "write_before_publishing",
        lambda: undo_plan(plans.project(OLD), day),
        monkeypatch,
    )

    plans.promote(OLD, plan)

    assert [int(cost) for _, cost in world.rows(VISITS, "ds", "cost")] == [7, 8, 9, 10]
    assert owed(world) == "2024-01-11"


def test_a_table_that_was_left_with_what_it_had_read_owes_what_the_other_table_lacks(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    plans.published(a_graph(DOUBLED, costs()), forward_only=True)
    plans.published(a_graph(DOUBLED, costs("cost + 1")))
    both = plans.published(OLD)
    world.clock.now += timedelta(days=1)
    world.land(a_source(), *ROWS, row(11, 1, 11.0))
    world.fill(OLD)
    rollback_plan(plans.project(OLD), both)

    plan = plans.published(
        OLD, categories=((VISITS, Category.FORWARD_ONLY),), end="2024-01-10", end_bounded=True
    )

    assert [
        one.version == other.version for one, other in zip(both.models, plan.models, strict=True)
    ] == [False, True]
    assert text(OLD, VISITS, world.store.views.of(PROD).ready(VISITS)).endswith("10 (4)")
    assert owed(world) == "2024-01-11"
    plans.published(OLD)
    assert [int(total) for _, total in world.rows(COSTS, "ds", "total")] == [7, 8, 9, 10, 11]
    assert plans.make(OLD).is_empty


def test_a_table_that_dev_has_left_is_built_again_where_dev_reads_older_rows_of_prod_by_then(
    world: World, plans: Plans
):
    """Prod has published them long ago, so that no stamp tells of them."""
    world.begin(OLD, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    world.land(a_source(), *changed(BAD))
    plans.published(OLD, "dev", select=(VISITS,), restate=(EIGHTH,))
    plans.published(EDITED, "dev")
    in_dev = replace(world, environment="dev", runs=500)
    assert [int(total) for _, total in in_dev.rows(COSTS, "ds", "total")] == [8, 100, 10, 11]
    plans.published(a_graph(visits(), costs("cost + 2")), "dev")
    removal = plans.published(a_graph(replace(visits(), name="web.others")), "dev")
    assert {*removal.removed} == {COSTS, VISITS}

    plans.published(EDITED, "dev", select=(COSTS,), skip_upstream=True, reason="again")

    assert [int(total) for _, total in in_dev.rows(COSTS, "ds", "total")] == [8, 9, 10, 11]


def test_a_model_that_is_declared_no_more_is_brought_back_though_dev_reads_its_table(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    plans.published(OLD, "dev", restate=(EIGHTH,))
    other = a_graph(replace(visits(), name="web.others"))
    removal = plans.published(other)

    rollback_plan(plans.project(other), removal)

    assert {*world.store.environments.pointers(PROD)} == {COSTS, VISITS}
    assert plans.make(OLD).is_empty


@pytest.mark.parametrize("back", [rollback_plan, undo_plan])
def test_a_model_that_went_with_its_source_is_brought_back_though_dev_reads_its_table(
    world: World, plans: Plans, back: Callable[..., object]
):
    elsewhere = a_source("web.clicks")
    other = a_model(
        "web.others",
        sql=f"SELECT ds, id, cost FROM web.clicks {WHERE}",
        upstreams=["web.clicks"],
        cadence=CADENCE,
    )
    both = [a_source(), elsewhere]
    world.land(elsewhere, *ROWS)
    world.begin(a_graph(*OLD.models.values(), other, sources=both), *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    plans.published(a_graph(*OLD.models.values(), other, sources=both), "dev", restate=(EIGHTH,))
    alone = a_graph(other, sources=[elsewhere])

    removal = plans.published(alone)
    assert {*world.store.environments.pointers(PROD)} == {"web.others"}
    back(plans.project(alone), removal)

    assert {*world.store.environments.pointers(PROD)} == {COSTS, VISITS, "web.others"}
    assert plans.make(a_graph(*OLD.models.values(), other, sources=both)).is_empty
