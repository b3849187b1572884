"""Ticks of the sensor in this process: which runs are asked for, and why no others are."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import dagster as dg
import pytest
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill
from dagster._core.remote_origin import (
    ManagedGrpcPythonEnvCodeLocationOrigin,
    RemotePartitionSetOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin

from backfill_assets import build_definitions
from backfill_assets.engine.automatic.serving import finish
from backfill_assets.intervals import Daily, Whole
from backfill_assets.models.audits_of import audits_of
from backfill_assets.orchestration import follow_ups
from backfill_assets.orchestration.resources import StateResource
from backfill_assets.snapshots.failure import FailureKind
from backfill_assets.snapshots.queued_plan import Control
from backfill_assets_tests.builders import a_model, a_source, day
from backfill_assets_tests.engine.queue_world import QueueWorld

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from backfill_assets.models.model import Model

TEN_DAYS = Daily(start="2024-01-01", end="2024-01-10")
VISITS = a_model("web.visits", cadence=TEN_DAYS, batch_size=2)
SUMS = a_model("web.sums", cadence=TEN_DAYS, upstreams=["web.visits"])
LATER = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Ticking:
    """A world with a Dagster instance and the sensors over it."""

    world: QueueWorld
    instance: dg.DagsterInstance
    models: tuple[Model, ...]
    cursor: str | None = None
    asked: list[dg.RunRequest] = field(default_factory=list)
    own: dg.Definitions = field(default_factory=dg.Definitions)

    @property
    def repository(self) -> dg.RepositoryDefinition:
        made = build_definitions(models=self.models, sources=[a_source()])
        return dg.Definitions.merge(made, self.own).get_repository_def()

    def evaluate(self, name: str = "gap_fill_sensor") -> Any:  # noqa: ANN401
        """One tick, as the daemon evaluates it."""
        repository = self.repository
        with dg.build_sensor_context(
            instance=self.instance,
            cursor=self.cursor,
            repository_def=repository,
            resources={"backfill_state": StateResource()},
            sensor_name=name,
        ) as context:
            found = repository.get_sensor_def(name).evaluate_tick(context)
        self.cursor = found.cursor
        self.asked = list(found.run_requests or ())
        return found

    def tick(self) -> list[str]:
        """The runs that a tick asks for, in short; each is then in the queue."""
        found = self.evaluate()
        for run_request in found.run_requests:
            self.queue(run_request)
        return [shown(request) for request in found.run_requests]

    def queue(self, request: dg.RunRequest) -> None:
        """Create the run that a request asks for."""
        job = self.repository.get_job(request.job_name or "__ASSET_JOB")
        if request.asset_selection:
            job = job.get_subset(
                asset_selection=frozenset(request.asset_selection),
                asset_check_selection=frozenset(request.asset_check_keys or ()),
            )
        tags = {**request.tags, "dagster/run_key": request.run_key or ""}
        self.instance.create_run_for_job(
            job,
            tags=tags,
            run_config=request.run_config,
            asset_selection=frozenset(request.asset_selection or ()) or None,
            status=dg.DagsterRunStatus.STARTED,
        )

    def end(self, status: dg.DagsterRunStatus = dg.DagsterRunStatus.SUCCESS) -> None:
        """Let every run that is under way end."""
        for run in self.instance.get_runs():
            if not run.is_finished:
                self.instance._run_storage.handle_run_event(run.run_id, ended(status))


def ended(status: dg.DagsterRunStatus) -> dg.DagsterEvent:
    kind = {
        dg.DagsterRunStatus.SUCCESS: dg.DagsterEventType.RUN_SUCCESS,
        dg.DagsterRunStatus.FAILURE: dg.DagsterEventType.RUN_FAILURE,
        dg.DagsterRunStatus.CANCELED: dg.DagsterEventType.RUN_CANCELED,
    }[status]
    return dg.DagsterEvent(kind.value, "job")


def shown(request: dg.RunRequest) -> str:
    tags = request.tags
    said = [tags["backfill/reason"], tags.get("backfill/model"), tags.get("backfill/cells")]
    return " ".join(word for word in said if word)


@pytest.fixture
def ticking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ticking]:
    monkeypatch.setenv("BACKFILL_DATA_DIR", str(tmp_path))
    home = tmp_path / "home"
    home.mkdir()
    world = QueueWorld.of(tmp_path, VISITS, SUMS, now=datetime.now(UTC))
    with dg.instance_for_test(temp_dir=str(home)) as instance:
        yield Ticking(world, instance, (VISITS, SUMS))


def test_the_one_sensor_is_off_until_it_is_switched_on(ticking: Ticking):
    [sensor] = ticking.repository.sensor_defs

    assert sensor.default_status is dg.DefaultSensorStatus.STOPPED
    assert sensor.minimum_interval_seconds == 30


def test_one_switch_says_that_it_starts_everything_and_the_others_that_they_can_stay_off(
    ticking: Ticking,
):
    [switch] = ticking.repository.sensor_defs
    others = ticking.repository.schedule_defs

    assert (switch.description or "").startswith("The one switch that starts everything: ")
    assert {schedule.name for schedule in others} == {"daily_work", "late_data"}
    for schedule in others:
        assert f"Leave it off where the sensor {switch.name} is on" in (schedule.description or "")
        assert schedule.default_status is dg.DefaultScheduleStatus.STOPPED


def test_the_sensor_may_request_every_run_that_follows_up_on_a_plan(
    ticking: Ticking, monkeypatch: pytest.MonkeyPatch
):
    day_over = SimpleNamespace(due=lambda _: 1)
    monkeypatch.setattr(follow_ups, "dual_runs", lambda _: {"p1": day_over})

    asked = {request.job_name for request in ticking.evaluate().run_requests}

    assert "apply" in asked
    sensor = ticking.repository.get_sensor_def("gap_fill_sensor")
    assert {target.job_name for target in sensor.targets} >= {*follow_ups.FOLLOW_UP_JOBS}


def test_a_comparison_of_a_dual_run_that_died_is_asked_for_again_and_one_that_was_cancelled_is_not(
    ticking: Ticking, monkeypatch: pytest.MonkeyPatch
):
    ticking.world.fill("web.visits", day(1, 10))
    ticking.world.fill("web.sums", day(1, 10))
    monkeypatch.setattr(follow_ups, "dual_runs", lambda _: {"p1": SimpleNamespace(due=lambda _: 3)})

    assert ticking.tick() == ["apply"]
    assert ticking.tick() == []
    ticking.end(dg.DagsterRunStatus.FAILURE)
    assert ticking.tick() == ["apply"]
    assert ticking.asked[0].run_key == "apply:p1:3:1"
    ticking.end(dg.DagsterRunStatus.CANCELED)

    assert ticking.tick() == []


def test_what_was_asked_for_within_its_time_is_not_asked_for_again_and_the_tick_says_why(
    ticking: Ticking, monkeypatch: pytest.MonkeyPatch
):
    ticking.world.fill("web.visits", day(1, 10))
    ticking.world.fill("web.sums", day(1, 10))
    always = SimpleNamespace(
        every=timedelta(days=1), since=datetime.now(UTC) - timedelta(hours=1), is_due=lambda _: True
    )
    monkeypatch.setattr(follow_ups, "watches", lambda _: {"p1": always})
    monkeypatch.setattr(follow_ups, "_NOTICES_APART", 10**10)
    monkeypatch.setattr(type(ticking.world.store.notices), "due", lambda *_: True)

    assert sorted(ticking.tick()) == ["aftercare", "notices"]
    assert ticking.tick() == []
    assert ticking.evaluate().skip_message.startswith("nothing")


def test_a_gap_is_asked_for_as_a_range_of_one_model_with_all_that_tells_why(
    ticking: Ticking, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("BACKFILL_CELLS_PER_RUN", "2")
    ticking.world.fill("web.visits", day(3, 2))

    found = ticking.evaluate()

    daily = next(
        request for request in found.run_requests if request.tags["backfill/reason"] == "daily"
    )
    assert daily.asset_selection == [dg.AssetKey(["web", "visits"])]
    own = {audit.name for audit in audits_of(VISITS)}  # not those that read the whole table
    assert {key.name for key in daily.asset_check_keys} == own
    assert daily.tags == {
        "backfill/reason": "daily",
        "backfill/environment": "prod",
        "backfill/model": "web.visits",
        "backfill/cells": "2024-01-05...2024-01-08",
        "backfill/attempt": "1",
        "dagster/priority": "10",
        "dagster/asset_partition_range_start": "2024-01-05",
        "dagster/asset_partition_range_end": "2024-01-08",
        "dagster/sensor_name": "gap_fill_sensor",
    }
    assert {shown(request) for request in found.run_requests} == {
        "daily web.visits 2024-01-05...2024-01-08",
        "backfill web.sums 2024-01-03...2024-01-04",
    }


def test_gaps_that_lie_near_are_asked_for_together_and_named_one_by_one(ticking: Ticking):
    for number in (2, 5):
        ticking.world.fill("web.visits", day(number))

    asked = ticking.tick()

    assert "backfill web.sums 2024-01-02,2024-01-05" in asked
    assert "daily web.visits 2024-01-06...2024-01-10" in asked


def test_what_runs_or_waits_is_not_asked_for_again(ticking: Ticking):
    assert len(ticking.tick()) == 1

    assert ticking.tick() == []

    ticking.end()
    assert ticking.tick() != []


def test_a_run_that_failed_is_asked_for_again_under_another_key(ticking: Ticking):
    ticking.tick()
    [first] = ticking.asked
    ticking.end(dg.DagsterRunStatus.FAILURE)

    ticking.tick()

    [second] = ticking.asked
    assert shown(first) == shown(second)
    assert (first.tags["backfill/attempt"], second.tags["backfill/attempt"]) == ("1", "2")
    assert first.run_key != second.run_key


def test_a_run_that_ends_for_nothing_again_and_again_rests_longer_each_time(ticking: Ticking):
    for _ in range(2):
        assert ticking.tick() != []
        ticking.end(dg.DagsterRunStatus.FAILURE)

    assert ticking.tick() == []


def test_a_run_that_a_person_cancelled_does_not_come_back_at_once(ticking: Ticking):
    ticking.tick()
    ticking.end(dg.DagsterRunStatus.CANCELED)

    assert ticking.tick() == []


def test_a_failed_audit_is_not_asked_for_again_and_what_it_does_not_block_goes_on(
    ticking: Ticking,
):
    ticking.world.fill("web.visits", day(1, 10))
    ticking.world.fail("web.sums", day(1, 5), FailureKind.AUDIT)

    assert ticking.tick() == ["backfill web.sums 2024-01-06...2024-01-10"]
    ticking.world.fill("web.sums", day(6, 5))
    ticking.end()
    assert ticking.tick() == []


def test_a_model_that_somebody_launched_by_hand_is_left_alone(ticking: Ticking):
    job = ticking.repository.get_job("__ASSET_JOB")
    visits = frozenset({dg.AssetKey(["web", "visits"])})
    ticking.instance.create_run_for_job(
        job.get_subset(asset_selection=visits),
        asset_selection=visits,
        status=dg.DagsterRunStatus.STARTED,
    )

    assert ticking.tick() == []


def test_models_of_a_backfill_that_a_person_launched_are_left_alone_until_it_ends(
    ticking: Ticking,
):
    ticking.world.fill("web.visits", day(1, 10))
    keys = [dg.AssetKey(["web", name]) for name in ("visits", "sums")]
    backfill = PartitionBackfill.from_asset_partitions(
        "b1",
        ticking.repository.asset_graph,
        partition_names=["2024-01-03"],
        asset_selection=keys,
        backfill_timestamp=LATER.timestamp(),
        tags={},
        dynamic_partitions_store=ticking.instance,
        all_partitions=False,
        title=None,
        description=None,
        run_config=None,
    )
    ticking.instance.add_backfill(backfill)

    found = ticking.evaluate()

    assert not found.run_requests
    assert "web.sums has work and is left to backfill b1" in found.skip_message

    ticking.instance.update_backfill(backfill.with_status(BulkActionStatus.COMPLETED_SUCCESS))
    assert ticking.tick() == ["backfill web.sums 2024-01-01...2024-01-10"]


@pytest.fixture
def with_job(ticking: Ticking) -> Ticking:
    """A project with a job of its own over all models."""
    nightly = dg.define_asset_job("nightly", dg.AssetSelection.assets(["web", "visits"]))
    return replace(ticking, own=dg.Definitions(jobs=[nightly]))


def test_models_of_a_job_that_a_person_launched_are_left_alone(with_job: Ticking):
    with_job.instance.create_run_for_job(
        with_job.repository.get_job("nightly"), status=dg.DagsterRunStatus.STARTED
    )

    assert with_job.tick() == []

    with_job.end()
    assert with_job.tick() == ["backfill web.visits 2024-01-01...2024-01-10"]


def test_models_of_a_backfill_of_a_job_are_left_alone_until_it_ends(with_job: Ticking):
    target = LoadableTargetOrigin(module_name="shop.definitions")
    repository = RemoteRepositoryOrigin(
        code_location_origin=ManagedGrpcPythonEnvCodeLocationOrigin(target),
        repository_name="__repository__",
    )
    backfill = PartitionBackfill(
        backfill_id="b1",
        partition_set_origin=RemotePartitionSetOrigin(
            repository_origin=repository, partition_set_name="nightly_partition_set"
        ),
        status=BulkActionStatus.REQUESTED,
        from_failure=False,
        tags={},
        backfill_timestamp=LATER.timestamp(),
        partition_names=["2024-01-03"],
    )
    with_job.instance.add_backfill(backfill)

    found = with_job.evaluate()

    assert not found.run_requests
    assert "web.visits has work and is left to backfill b1" in found.skip_message


def test_a_run_of_checks_alone_keeps_no_model_from_being_filled(ticking: Ticking):
    key = dg.AssetCheckKey(dg.AssetKey(["web", "visits"]), "published_not_null_ds")
    for job, checks in (("audits", None), ("__ASSET_JOB", frozenset([key]))):
        run = dg.DagsterRun(job, status=dg.DagsterRunStatus.STARTED, asset_check_selection=checks)
        ticking.instance.add_run(run)

    assert ticking.tick() == ["backfill web.visits 2024-01-01...2024-01-10"]


def test_a_queued_plan_is_asked_for_with_its_tag_and_ended_by_a_job(ticking: Ticking):
    world = ticking.world
    world.fill("web.visits", day(1, 10))
    world.fill("web.sums", day(1, 10))
    plan = world.queued("web.visits", 3)

    assert ticking.tick() == ["plan web.visits 2024-01-03"]
    assert ticking.asked[0].tags["backfill/plan"] == plan.plan_id
    world.fill("web.visits", day(3), rows=12, plan=plan)
    ticking.end()
    assert ticking.tick() == ["plan web.sums 2024-01-03"]
    world.fill("web.sums", day(3), rows=12, plan=plan)
    ticking.end()

    assert ticking.tick() == ["finish"]
    [finish] = ticking.asked
    assert finish.job_name == "finish"
    assert finish.run_config["ops"]["finish_plan"]["config"]["plan"] == plan.plan_id
    assert ticking.tick() == []  # while it is under way


def test_a_queued_plan_that_is_stuck_is_ended_by_a_job_once(ticking: Ticking):
    world = ticking.world
    world.fill("web.visits", day(1, 10))
    world.fill("web.sums", day(1, 10))
    plan = world.queued("web.visits", 3)
    world.fail("web.visits", day(3), plan=plan)

    assert ticking.tick() == ["finish"]
    assert ticking.tick() == []  # while it is under way
    ticking.end(dg.DagsterRunStatus.FAILURE)
    assert ticking.tick() == ["finish"]  # it died before it had done anything
    finish(world.project(), plan)
    ticking.end(dg.DagsterRunStatus.FAILURE)

    assert ticking.tick() == []


def test_a_paused_plan_is_not_asked_for_and_the_tick_says_why(ticking: Ticking):
    world = ticking.world
    world.fill("web.visits", day(1, 10))
    world.fill("web.sums", day(1, 10))
    plan = world.queued("web.visits", 3)
    world.store.queue.control_plan(plan.plan_id, Control.PAUSED, "ann")

    found = ticking.evaluate()

    assert not found.run_requests
    assert f"plan {plan.plan_id} is paused" in (found.skip_message or "")

    world.store.queue.control_plan(plan.plan_id, Control.RUNNING, "ann")
    assert ticking.tick() == ["plan web.visits 2024-01-03"]


def test_a_model_that_is_only_reported_is_named_by_the_tick(ticking: Ticking):
    ticking.models = (replace(VISITS, automation="report"), SUMS)

    found = ticking.evaluate()

    assert not found.run_requests
    assert "web.visits needs work and is only reported" in found.skip_message
    assert "2024-01-01..2024-01-10" in found.skip_message


def test_a_pool_without_slots_is_named_and_nothing_is_put_before_it(ticking: Ticking):
    ticking.instance.event_log_storage.set_concurrency_slots("web__visits", 0)

    found = ticking.evaluate()

    assert not found.run_requests
    assert "dagster instance concurrency set web__visits 1" in found.skip_message


def test_a_lost_cursor_asks_for_nothing_twice(ticking: Ticking):
    ticking.tick()
    ticking.cursor = None

    assert ticking.tick() == []


def test_a_table_that_is_one_cell_is_asked_for_without_partitions(ticking: Ticking):
    ticking.models = (a_model("web.shops", cadence=Whole()),)

    [request] = ticking.evaluate().run_requests

    assert "dagster/asset_partition_range_start" not in request.tags
    assert "backfill/cells" not in request.tags


def test_a_schedule_asks_for_what_came_due_and_leaves_history_alone(ticking: Ticking):
    ticking.world.fill("web.visits", day(3, 2))
    repository = ticking.repository
    schedule = repository.get_schedule_def("daily_work")

    with dg.build_schedule_context(
        instance=ticking.instance,
        repository_def=repository,
        resources={"backfill_state": StateResource()},
        scheduled_execution_time=LATER,
    ) as context:
        found = schedule.evaluate_tick(context)

    assert [shown(request) for request in found.run_requests or ()] == [
        "daily web.visits 2024-01-05...2024-01-10"
    ]
