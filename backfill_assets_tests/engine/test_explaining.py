"""Why a published number changed: the parts name every cause, and sum exactly to the difference."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.engine.plans.plan_verbs import rollback_plan
from backfill_assets.engine.review.explaining import explain_number
from backfill_assets.planning.plan.request import Restatement
from backfill_assets_tests.builders import EVENTS, a_graph, a_source, days
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.test_plans import COSTS, OLD, ROWS, changed, costs, visits
from backfill_assets_tests.engine.world import row

if TYPE_CHECKING:
    from backfill_assets.engine.review.explaining import ExplainedNumber
    from backfill_assets.models.graph import Graph
    from backfill_assets_tests.engine.world import World

DOUBLED: Graph = a_graph(visits(), costs("cost * 2"))


@pytest.fixture
def plans(world: World) -> Plans:
    return Plans(world)


def later(world: World) -> None:
    world.clock.now += timedelta(minutes=1)


def told(found: ExplainedNumber) -> list[tuple[str, Any, list[str]]]:
    """Per part: what happened, how much it added, and why."""
    return [
        (
            "+".join(found.steps[each.step].what for each in part.happened),
            part.difference,
            [
                f"{cause.kind.value} {cause.subject}".strip()
                for each in part.happened
                for cause in each.causes
            ],
        )
        for part in found.explained.parts
    ]


def story(world: World, plans: Plans) -> None:
    """Fill, restate with late rows, change the logic, roll back."""
    world.begin(OLD, *ROWS)
    later(world)
    world.land(a_source(), *changed(row(8, 1, 80.5)))
    plans.published(OLD, restate=(Restatement(EVENTS, "2024-01-08", "2024-01-08"),))
    later(world)
    plan = plans.published(DOUBLED)
    later(world)
    rollback_plan(plans.project(DOUBLED), plan)


def test_each_step_of_a_story_is_named_and_the_parts_sum(world: World, plans: Plans):
    story(world, plans)
    run = world.open(OLD)
    found = explain_number(run, run.graph.model(COSTS), days(8), "total", (None, None))
    assert told(found) == [
        ("batch", Decimal(8), ["first build"]),
        ("promote", Decimal("72.50"), [f"late rows {EVENTS}"]),
        ("promote", Decimal("80.50"), [f"logic {COSTS}"]),
        ("rollback", Decimal("-80.50"), ["rollback"]),
    ]
    assert found.explained.difference == Decimal("80.50")
    assert (found.explained.before, found.explained.after) == (Decimal(0), Decimal("80.50"))
