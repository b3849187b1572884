"""Schedules alone, without either sensor: they look at the sources that their models read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dagster as dg
import pytest

from backfill_assets import build_definitions
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.source import WhenEmpty
from backfill_assets.orchestration.resources import StateResource
from backfill_assets_tests.builders import EVENTS, a_graph, a_source, day
from backfill_assets_tests.execution.queue_world import QueueWorld
from backfill_assets_tests.execution.test_looked_again import land
from backfill_assets_tests.orchestration.test_ticks import LATER, VISITS, shown

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from backfill_assets.models.source import Source


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    monkeypatch.setenv("BACKFILL_DATA_DIR", str(tmp_path))
    home = tmp_path / "home"
    home.mkdir()
    with dg.instance_for_test(temp_dir=str(home)) as found:
        yield found


def due(instance: dg.DagsterInstance, source: Source) -> list[str]:
    repository = build_definitions(models=[VISITS], sources=[source]).get_repository_def()
    with dg.build_schedule_context(
        instance=instance,
        repository_def=repository,
        resources={"state": StateResource()},
        scheduled_execution_time=LATER,
    ) as context:
        found = repository.get_schedule_def("daily_work").evaluate_tick(context)
    return [shown(one) for one in found.run_requests or ()]


def test_a_day_that_waits_for_rows_is_asked_for_when_they_are_there(
    tmp_path: Path, instance: dg.DagsterInstance
):
    source = a_source(when_empty=WhenEmpty.WAIT)
    world = QueueWorld(tmp_path, a_graph(VISITS, sources=[source]))
    land(world, 1, 2)
    world.fill("web.visits", day(1, 2))
    assert due(instance, source) == []

    known = world.store.observed()[EVENTS]
    land(world, 3, looks=False)
    assert world.store.observed()[EVENTS] == known

    assert due(instance, source) == ["daily web.visits 2024-01-03"]
    assert world.store.view("prod").sources[EVENTS].ready == IntervalSet.of([day(1, 3)])
