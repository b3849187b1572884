"""A publication takes cells over that were computed elsewhere, or that others read too: what they have not read is owed."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from backfill_assets.engine.plans import publishing
from backfill_assets.engine.plans.plan_verbs import undo_plan
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.snapshots.environment import PROD
from backfill_assets_tests.builders import a_source
from backfill_assets_tests.engine.dying import before_call
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.test_plans import COSTS, OLD, ROWS, VISITS
from backfill_assets_tests.engine.world import row, text

if TYPE_CHECKING:
    from backfill_assets_tests.engine.world import World


@pytest.fixture
def plans(world: World) -> Plans:
    return Plans(world)


def begun_with_another_day(world: World) -> None:
    world.begin(OLD, *ROWS)
    world.clock.now += timedelta(days=1)
    world.land(a_source(), *ROWS, row(11, 1, 11.0))


def owed(world: World, environment: str = PROD) -> str:
    return text(OLD, COSTS, world.store.views.of(environment).owed[COSTS])


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
