"""What an estimate rests on: of all that is recorded, what tells how long such a plan takes."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from backfill_assets.engine.batch.requests import ADOPTED, RERUN, batch_request
from backfill_assets.intervals import Daily, IntervalSet
from backfill_assets.snapshots.batch import EMPTY, GAP
from backfill_assets_tests.builders import a_model, day
from backfill_assets_tests.engine.queue_world import QueueWorld
from backfill_assets_tests.state.building import NOON, write

if TYPE_CHECKING:
    from pathlib import Path

    from backfill_assets.intervals import Interval
    from backfill_assets.planning.plan.plan import Estimate

FIVE_DAYS = Daily(start="2024-01-01", end="2024-01-05")
VISITS = a_model("web.visits", cadence=FIVE_DAYS, batch_size=1, batch_concurrency=9)
SUMS = a_model("web.sums", cadence=FIVE_DAYS, upstreams=["web.visits"], batch_size=1)


@pytest.fixture
def world(tmp_path: Path) -> QueueWorld:
    return QueueWorld.of(tmp_path, VISITS, SUMS)


def built(
    world: QueueWorld, name: str, cells: Interval, *, seconds: float = 60.0, reason: str = GAP
) -> None:
    """Build cells by a batch that takes some seconds, and writes a hundred bytes."""
    world.now = NOON - timedelta(seconds=seconds)
    run = world.run()
    asked = batch_request(run, run.graph.model(name), IntervalSet.of([cells]), reason=reason)
    write(world.store, world.store.batches.open_batch(asked))


def estimate(world: QueueWorld, name: str, *restated: int) -> Estimate:
    """Estimate a plan that builds days of one model again."""
    world.now = NOON
    plan = world.planned(name, *restated, select=(name,))
    assert plan.estimate is not None
    return plan.estimate


@pytest.mark.parametrize("reason", [EMPTY, ADOPTED])
def test_batches_that_computed_nothing_tell_nothing_of_those_that_compute(
    world: QueueWorld, reason: str
):
    for number in (1, 2):
        built(world, "web.visits", day(number))
    for number in (3, 4, 5):
        built(world, "web.visits", day(number), seconds=0.1, reason=reason)

    found = estimate(world, "web.visits", 3)

    assert found.rests_on.startswith("2 recorded batches")
    assert found.batches > 30


def test_cells_that_were_built_twice_are_read_once(world: QueueWorld):
    built(world, "web.visits", day(1, 2))
    built(world, "web.visits", day(3, 3))
    built(world, "web.visits", day(2, 4), reason=RERUN)  # all but the first
    built(world, "web.sums", day(1, 5))

    assert estimate(world, "web.sums", *range(1, 6)).bytes_read == 150


def test_a_limit_over_everything_counts_in_an_estimate(world: QueueWorld):
    built(world, "web.visits", day(1, 5))
    by_default = estimate(world, "web.visits", 1, 2, 3, 4).batches

    world.store.limits.set_limit("all", 4, "ann")

    assert estimate(world, "web.visits", 1, 2, 3, 4).batches == pytest.approx(by_default / 2)
