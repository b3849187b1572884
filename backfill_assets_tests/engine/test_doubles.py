"""A key that lacks the time column stays single, whatever is committed at the same time."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.engine.batch.commit_turn import commit_turn
from backfill_assets.engine.plans.plan_verbs import rollback_plan, undo_plan
from backfill_assets.intervals import Daily
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.warehouse.rows.doubles import DoubleMeanwhileError
from backfill_assets_tests.builders import a_graph, a_model, a_source
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.world import kept, row, told

if TYPE_CHECKING:
    from backfill_assets.models.graph import Graph
    from backfill_assets_tests.engine.world import World

VISITS = "web.visits"


def by_id(**declared: Any) -> Graph:  # noqa: ANN401
    """Every event, each cell replaced as a whole; an id is in one cell alone."""
    given: dict[str, Any] = {"cadence": Daily(start="2024-01-09"), "unique_key": ["id"], **declared}
    return a_graph(a_model(VISITS, grain="one row per id", **given))


@pytest.mark.parametrize("clash", [False, True], ids=["apart", "clashing"])
def test_two_batches_at_once_of_replaced_cells_keep_each_key_single(world: World, *, clash: bool):
    graph = by_id(batch_size=1, batch_concurrency=2)
    world.land(a_source(), row(9, 1), row(10, 1 if clash else 2))
    both_audited = threading.Barrier(2)

    def together(*given: Any) -> Any:  # noqa: ANN401
        both_audited.wait(600)
        return commit_turn(*given)

    with world.doing(turn=together):
        events = world.fill(graph)[VISITS]
    assert told(events) == (["committed", "failed"] if clash else ["committed"] * 2)
    assert [id_ for _, id_, _ in world.rows(VISITS)] == ([1] if clash else [1, 2])


def test_a_promotion_brings_no_key_that_another_cell_got_meanwhile(world: World):
    graph, plans = by_id(), Plans(world)
    world.land(a_source(), row(9, 1), row(10, 2))
    world.fill(graph)
    world.land(a_source(), row(9, 3), row(10, 2))
    plan = plans.make(graph, restate=(Restatement(VISITS, "2024-01-09", "2024-01-09"),))
    plans.apply(graph, plan)
    world.clock.now += timedelta(days=1)
    world.land(a_source(), row(9, 3), row(10, 2), row(11, 3))
    world.fill(graph)
    published = kept(row(9, 1), row(10, 2), row(11, 3))
    assert world.rows(VISITS) == published
    with pytest.raises(DoubleMeanwhileError, match="2024-01-11"):
        plans.promote(graph, plan)
    assert world.rows(VISITS) == published


def test_a_way_back_brings_no_key_that_another_cell_got_since(world: World):
    graph, plans = by_id(), Plans(world)
    world.land(a_source(), row(9, 1), row(10, 2))
    world.fill(graph)
    world.land(a_source(), row(9, 3), row(10, 2))
    plan = plans.published(graph, restate=(Restatement(VISITS, "2024-01-09", "2024-01-09"),))
    world.clock.now += timedelta(days=1)
    world.land(a_source(), row(9, 3), row(10, 2), row(11, 1))
    world.fill(graph)
    published = kept(row(9, 3), row(10, 2), row(11, 1))
    assert world.rows(VISITS) == published
    with pytest.raises(DoubleMeanwhileError, match="2024-01-11"):
        undo_plan(plans.project(graph), plan)
    assert world.rows(VISITS) == published
    rollback_plan(plans.project(graph), plan)  # which takes the 11th away
    assert world.rows(VISITS) == kept(row(9, 1), row(10, 2))
