"""A key that lacks the time column stays single, whatever is committed at the same time."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.engine.batch.commit_turn import commit_turn
from backfill_assets.engine.plans.plan_verbs import rollback_plan, undo_plan
from backfill_assets.intervals import Daily
from backfill_assets.models.audit import unique
from backfill_assets.models.kind import IncrementalByTimeRange, IncrementalByUniqueKey
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.warehouse.rows.doubles import DoubleMeanwhileError
from backfill_assets_tests.builders import a_graph, a_model, a_source
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.world import kept, row, told

if TYPE_CHECKING:
    from backfill_assets.engine.project.events import Event
    from backfill_assets.models.graph import Graph
    from backfill_assets.models.kind import Kind
    from backfill_assets_tests.engine.world import World

VISITS = "web.visits"


def by_id(**declared: Any) -> Graph:  # noqa: ANN401
    """Every event, each cell replaced as a whole; an id is in one cell alone."""
    given: dict[str, Any] = {"cadence": Daily(start="2024-01-09"), "unique_key": ["id"], **declared}
    return a_graph(a_model(VISITS, grain="one row per id", **given))


@pytest.mark.parametrize("clash", [False, True], ids=["apart", "clashing"])
def test_two_batches_at_once_of_replaced_cells_keep_each_key_single(world: World, *, clash: bool):
    events = both_at_once(world, clash=clash)
    assert told(events) == (["committed", "failed"] if clash else ["committed"] * 2)
    assert [id_ for _, id_, _ in world.rows(VISITS)] == ([1] if clash else [1, 2])


@pytest.mark.parametrize("warn", [False, True], ids=["blocking", "warning"])
@pytest.mark.parametrize("kind", [IncrementalByTimeRange("ds"), IncrementalByUniqueKey("ds")])
def test_two_batches_at_once_keep_a_value_single_that_must_be_unique_beside_the_key(
    world: World, kind: Kind, *, warn: bool
):
    audits = [unique("id", warn=warn)]
    events = both_at_once(world, clash=True, kind=kind, unique_key=["ds", "id"], audits=audits)
    assert told(events) == ["committed", "committed" if warn else "failed"]
    assert [id_ for _, id_, _ in world.rows(VISITS)] == ([1, 1] if warn else [1])


def both_at_once(world: World, *, clash: bool, **declared: Any) -> tuple[Event, ...]:  # noqa: ANN401
    """Build two days, each audited before the other one is committed."""
    graph = by_id(batch_size=1, batch_concurrency=2, **declared)
    world.land(a_source(), row(9, 1), row(10, 1 if clash else 2))
    both_audited, met = threading.Barrier(2), threading.Event()

    def together(*given: Any) -> Any:  # noqa: ANN401
        if not met.is_set():  # one that is tried again waits for no other one
            both_audited.wait(600)
            met.set()
        return commit_turn(*given)

    with world.doing(turn=together):
        return world.fill(graph)[VISITS]


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
