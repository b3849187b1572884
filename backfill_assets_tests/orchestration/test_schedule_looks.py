"""Schedules alone, without either sensor: they look at the sources that their models read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import dagster as dg
import pytest
from deltalake import DeltaTable, write_deltalake

from backfill_assets import build_definitions
from backfill_assets.engine.fill.observing import observe
from backfill_assets.engine.fill.outstanding import outstanding
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.source import WhenEmpty
from backfill_assets.orchestration import switches
from backfill_assets.orchestration.resources import StateResource
from backfill_assets_tests.builders import EVENTS, a_graph, a_model, a_source, day
from backfill_assets_tests.engine.queue_world import QueueWorld
from backfill_assets_tests.engine.test_looked_again import land
from backfill_assets_tests.engine.world import arrow, row
from backfill_assets_tests.orchestration.test_ticks import LATER, TEN_DAYS, VISITS, shown

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from backfill_assets.models.model import Model
    from backfill_assets.models.source import Source


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    monkeypatch.setenv("BACKFILL_DATA_DIR", str(tmp_path))
    home = tmp_path / "home"
    home.mkdir()
    with dg.instance_for_test(temp_dir=str(home)) as found:
        yield found


def due(instance: dg.DagsterInstance, source: Source) -> list[str]:
    return [
        shown(request) for request in evaluated(instance, "daily_work", VISITS, source).run_requests
    ]


def evaluated(instance: dg.DagsterInstance, schedule: str, model: Model, source: Source) -> Any:  # noqa: ANN401
    repository = build_definitions(models=[model], sources=[source]).get_repository_def()
    with dg.build_schedule_context(
        instance=instance,
        repository_def=repository,
        resources={"backfill_state": StateResource()},
        scheduled_execution_time=LATER,
    ) as context:
        return repository.get_schedule_def(schedule).evaluate_tick(context)


def test_a_day_that_waits_for_rows_is_asked_for_when_they_are_there(
    tmp_path: Path, instance: dg.DagsterInstance
):
    source = a_source(when_empty=WhenEmpty.WAIT)
    world = QueueWorld(tmp_path, a_graph(VISITS, sources=[source]))
    land(world, 1, 2)
    world.fill("web.visits", day(1, 2))
    assert due(instance, source) == []

    known = world.store.sources.observed()[EVENTS]
    land(world, 3, looks=False)
    assert world.store.sources.observed()[EVENTS] == known

    assert due(instance, source) == ["daily web.visits 2024-01-03"]
    assert world.store.views.of("prod").sources[EVENTS].ready == IntervalSet.of([day(1, 3)])


LEAF = a_model("web.leaf", cadence=TEN_DAYS, late_window=5)


@pytest.fixture
def corrected(tmp_path: Path) -> QueueWorld:
    """Ten published days of a model that no other reads, and a correction of two of them."""
    source = a_source()
    world = QueueWorld(tmp_path, a_graph(LEAF, sources=[source]))
    land(world, *range(1, 11))
    world.fill(LEAF.name, day(1, 10))
    columns = {column.name: column.dtype for column in source.schema}
    rows = arrow(columns, [row(8, 2), row(9, 2)])
    write_deltalake(str(tmp_path / source.path), rows, mode="append")
    land(world)
    return world


@pytest.mark.usefixtures("corrected")
def test_late_data_of_several_cells_is_brought_in_by_the_schedule_of_late_data(
    instance: dg.DagsterInstance,
):
    found = evaluated(instance, "late_data", LEAF, a_source())
    (asked,) = found.run_requests
    assert asked.job_name == "refresh_late"
    assert asked.tags["backfill/reason"] == "late"
    repository = build_definitions(models=[LEAF], sources=[a_source()]).get_repository_def()
    assert {
        schedule.name: schedule.job_name for schedule in repository.schedule_defs
    } == {  # Dagster takes it from there
        "daily_work": "__ASSET_JOB",
        "late_data": "refresh_late",
    }


@pytest.mark.usefixtures("corrected")
def test_a_schedule_of_a_cadence_says_what_brings_late_data_in(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
):
    found = evaluated(instance, "daily_work", LEAF, a_source())
    assert found.run_requests == []
    assert "switch on the schedule late_data" in found.skip_message
    assert "`backfill run`" in found.skip_message
    monkeypatch.setattr(switches, "is_on", lambda _, name: name == "late_data")
    assert "late_data" not in evaluated(instance, "daily_work", LEAF, a_source()).skip_message


@pytest.mark.usefixtures("corrected")
def test_a_schedule_of_a_cadence_asks_for_no_switch_where_late_data_was_looked_at_and_needs_a_person(
    instance: dg.DagsterInstance,
):
    [late] = evaluated(instance, "late_data", LEAF, a_source()).run_requests
    job = (
        build_definitions(models=[LEAF], sources=[a_source()])
        .get_repository_def()
        .get_job("refresh_late")
    )
    run = instance.create_run_for_job(job, tags=late.tags, run_config=late.run_config)
    event = dg.DagsterEvent(dg.DagsterEventType.RUN_SUCCESS.value, "refresh_late")
    instance._run_storage.handle_run_event(run.run_id, event)

    assert evaluated(instance, "daily_work", LEAF, a_source()).skip_message == "nothing is due"


def test_what_waits_for_late_datas_own_plan_is_counted_with_the_command_that_brings_it_in(
    corrected: QueueWorld,
):
    found = outstanding(corrected.run(), [LEAF.name])
    assert found.words == "0 cells missing, 2 stale: 2 wait for `backfill run` of all models"
    assert found.is_open


@pytest.mark.parametrize("schedule", ["daily_work", "late_data", None])
def test_until_another_declaration_is_promoted_ticks_look_at_a_source_as_runs_do(
    tmp_path: Path, instance: dg.DagsterInstance, schedule: str | None
):
    source = a_source()
    world = QueueWorld(tmp_path, a_graph(LEAF, sources=[source]))
    land(world, 1, 2)
    world.fill(LEAF.name, day(1, 2))

    loaded = replace(source, cadence=replace(source.cadence, tz="Europe/Berlin"))
    land(world, 3, looks=False)
    if schedule is None:
        sensed(instance, LEAF, loaded)
    else:
        evaluated(instance, schedule, LEAF, loaded)

    found = world.store.sources.observed()[EVENTS]
    assert (found.head, " UTC " in found.declared) == (2, True)
    world.graph = a_graph(LEAF, sources=[loaded])
    assert observe(world.run(), [LEAF.name]) == ()
    assert world.store.sources.observed()[EVENTS] == found


def test_the_schedule_of_late_data_has_rows_looked_at_where_the_log_can_not_tell(
    tmp_path: Path, instance: dg.DagsterInstance
):
    source = a_source()
    land(QueueWorld(tmp_path, a_graph(LEAF, sources=[source])), 1)
    assert evaluated(instance, "late_data", LEAF, source).run_requests == []

    columns = {column.name: column.dtype for column in source.schema}
    path, rows = str(tmp_path / source.path), arrow(columns, [row(1, 2), row(2)])
    write_deltalake(path, rows, mode="overwrite")
    table = DeltaTable(path)
    table.vacuum(0, dry_run=False, enforce_retention_duration=False)
    (asked,) = evaluated(instance, "late_data", LEAF, source).run_requests
    assert (asked.job_name, asked.tags["backfill/reason"]) == ("refresh_late", "observe")

    repository = build_definitions(models=[LEAF], sources=[source]).get_repository_def()
    job = repository.get_job(asked.job_name)
    instance.create_run_for_job(job, tags=asked.tags, run_config=asked.run_config)
    assert evaluated(instance, "late_data", LEAF, source).run_requests == []


def sensed(instance: dg.DagsterInstance, model: Model, source: Source) -> None:
    repository = build_definitions(models=[model], sources=[source]).get_repository_def()
    with dg.build_sensor_context(
        instance=instance, repository_def=repository, resources={"backfill_state": StateResource()}
    ) as context:
        repository.get_sensor_def("gap_fill_sensor").evaluate_tick(context)
