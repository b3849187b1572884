"""What the sensor sees of the sources: by their logs alone, and without Spark."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import dagster as dg
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from backfill_assets import build_definitions
from backfill_assets.engine.fill.observing import SourceLook
from backfill_assets.intervals import Daily
from backfill_assets.orchestration.released_runs import MODEL_TAG
from backfill_assets.orchestration.resources import StateResource
from backfill_assets.orchestration.sources import looks_at_rows
from backfill_assets_tests.builders import a_model, a_source, day
from backfill_assets_tests.engine.queue_world import QueueWorld

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VISITS = a_model("web.visits", cadence=Daily(start="2024-01-01", end="2024-01-10"))
_ROWS = pa.schema([("ds", pa.date32()), ("id", pa.int64()), ("cost", pa.decimal128(18, 2))])


def land(root: Path, number: int, rows: int = 1) -> None:
    """Somebody lands rows of a day."""
    found = [{"ds": date(2024, 1, number), "id": row, "cost": Decimal(1)} for row in range(rows)]
    write_deltalake(str(root / "web/events"), pa.Table.from_pylist(found, _ROWS), mode="append")


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    monkeypatch.setenv("BACKFILL_DATA_DIR", str(tmp_path))
    home = tmp_path / "home"
    home.mkdir()
    with dg.instance_for_test(temp_dir=str(home)) as found:
        yield found


def tick(instance: dg.DagsterInstance, **declared: Any) -> Any:  # noqa: ANN401
    source = a_source(**declared)
    repository = build_definitions(models=[VISITS], sources=[source]).get_repository_def()
    with dg.build_sensor_context(
        instance=instance, repository_def=repository, resources={"backfill_state": StateResource()}
    ) as context:
        return repository.get_sensor_def("gap_fill_sensor").evaluate_tick(context)


def observing(found: Any) -> list[dg.RunRequest]:  # noqa: ANN401
    """The runs that a tick asks for to look at rows."""
    return [request for request in found.run_requests or () if request.job_name == "observe"]


def filled(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    """Ten days have landed, were looked at, and are built."""
    for number in range(1, 11):
        land(tmp_path, number)
    assert not observing(tick(instance))  # the first look takes what it finds
    world = QueueWorld.of(tmp_path, VISITS, now=datetime.now(UTC))
    world.fill("web.visits", day(1, 10))


def test_late_rows_are_seen_in_the_log_told_as_an_observation_and_released_in_the_same_tick(
    instance: dg.DagsterInstance, tmp_path: Path
):
    filled(tmp_path, instance)
    assert not tick(instance).run_requests
    land(tmp_path, 4)

    found = tick(instance)

    [told] = found.asset_events
    assert told.asset_key == dg.AssetKey(["web", "events"])
    assert told.metadata["changed"].value == "2024-01-04"
    [late] = found.run_requests
    assert (late.job_name, late.tags["backfill/reason"]) == ("refresh_late", "late")


def test_a_source_that_has_not_moved_is_not_spoken_of(instance: dg.DagsterInstance, tmp_path: Path):
    filled(tmp_path, instance)

    found = tick(instance)

    assert not found.asset_events
    assert found.skip_message == "nothing is ready to be released"


def test_a_change_that_leads_to_no_run_is_told_with_the_reason_why_there_is_none(
    instance: dg.DagsterInstance, tmp_path: Path
):
    filled(tmp_path, instance)
    land(tmp_path, 11)  # after the model's end

    said = tick(instance).skip_message

    assert said == "nothing is ready to be released; web.events: 2024-01-11"


def test_rows_are_looked_at_by_a_run_where_the_log_cannot_tell_and_not_again_and_again(
    instance: dg.DagsterInstance, tmp_path: Path
):
    rows = [{"ds": date(2024, 1, number), "id": number, "cost": Decimal(1)} for number in (1, 2)]
    write_deltalake(str(tmp_path / "web/events"), pa.Table.from_pylist(rows, _ROWS))
    repository = build_definitions(models=[VISITS], sources=[a_source()]).get_repository_def()

    requests: list[int] = []
    for _ in range(4):
        found = observing(tick(instance))
        requests.append(len(found))
        for request in found:
            assert request.run_config["ops"]["observe_sources"]["config"]["sources"] == [
                "web.events"
            ]
            run = instance.create_run_for_job(
                repository.get_job("observe"), tags=request.tags, run_config=request.run_config
            )
            assert not observing(tick(instance))  # while that one is under way
            event = dg.DagsterEvent(dg.DagsterEventType.RUN_FAILURE.value, "observe")
            instance._run_storage.handle_run_event(run.run_id, event)

    assert requests == [1, 1, 0, 0]


def releasing(found: Any) -> list[dg.RunRequest]:  # noqa: ANN401
    """The runs that a tick asks for to build cells."""
    return [request for request in found.run_requests or () if request.asset_selection]


def test_what_waits_for_rows_is_released_once_its_source_is_there_and_was_looked_at(
    instance: dg.DagsterInstance, tmp_path: Path
):
    found = tick(instance, when_empty="wait")
    assert not releasing(found)
    assert found.skip_message == (
        "nothing is ready to be released; nothing that reads web.events is released before it has rows: it has no table "
        f"at {tmp_path}/web/events"
    )

    rows = [{"ds": date(2024, 1, number), "id": number, "cost": Decimal(1)} for number in (1, 2)]
    write_deltalake(str(tmp_path / "web/events"), pa.Table.from_pylist(rows, _ROWS))
    found = tick(instance, when_empty="wait")
    assert observing(found)
    assert not releasing(found)

    DeltaTable(str(tmp_path / "web/events")).delete()
    land(tmp_path, 3)  # in a file of its own: now the log can tell
    [release] = releasing(tick(instance, when_empty="wait"))
    assert release.tags["backfill/cells"] == "2024-01-03"


def test_a_look_at_rows_that_ended_well_does_not_let_the_next_one_rest(
    instance: dg.DagsterInstance,
):
    repository = build_definitions(models=[VISITS], sources=[a_source()]).get_repository_def()

    def asked(head: int) -> int:
        """How many runs are asked for where rows came after a head; each ends well."""
        looks = [SourceLook("web.events", head=head, judged=False)]
        requests = looks_at_rows(instance, looks, "observe")
        for request in requests:
            run = instance.create_run_for_job(
                repository.get_job("observe"), tags=request.tags, run_config=request.run_config
            )
            event = dg.DagsterEvent(dg.DagsterEventType.RUN_SUCCESS.value, "observe")
            instance._run_storage.handle_run_event(run.run_id, event)
        return len(requests)

    assert [asked(head) for head in (3, 4, 5, 6)] == [1, 1, 1, 1]
    assert [asked(7) for _ in range(4)] == [1, 1, 0, 0], "one that has looked at nothing rests"


def test_the_job_that_observes_names_a_source_that_is_not_there(
    instance: dg.DagsterInstance,
):
    definitions = build_definitions(models=[VISITS], sources=[a_source()])
    config = {"ops": {"observe_sources": {"config": {"sources": ["web.evnets"]}}}}

    ended = definitions.resolve_job_def("observe").execute_in_process(
        run_config=config, instance=instance, raise_on_error=False
    )

    (failed,) = [event for event in ended.all_events if event.is_step_failure]
    said = failed.step_failure_data.user_failure_data
    assert said is not None
    assert said.description == ("there is no source 'web.evnets'; expected some of web.events")


@pytest.mark.parametrize("job", ["observe", "__ASSET_JOB"])
def test_an_observation_of_a_source_that_has_no_table_says_so(
    instance: dg.DagsterInstance, tmp_path: Path, job: str
):
    defs = build_definitions(models=[VISITS], sources=[a_source()])
    chosen = [dg.AssetKey(["web", "events"])] if job == "__ASSET_JOB" else None

    done = defs.resolve_job_def(job).execute_in_process(instance=instance, asset_selection=chosen)

    lines = [entry.user_message for entry in instance.all_logs(done.run_id)]
    assert f"web.events: it has no table at {tmp_path}/web/events" in lines


def test_a_source_whose_log_is_damaged_keeps_no_other_model_from_being_released(
    instance: dg.DagsterInstance, tmp_path: Path
):
    damaged = a_source("web.damaged", when_empty="wait")
    log = tmp_path / damaged.path / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020d}.json").write_text("{")
    land(tmp_path, 1)
    other = a_model("web.other", cadence=VISITS.cadence, upstreams=[damaged.name])
    repository = build_definitions(
        models=[VISITS, other], sources=[a_source(), damaged]
    ).get_repository_def()

    with dg.build_sensor_context(
        instance=instance, repository_def=repository, resources={"backfill_state": StateResource()}
    ) as context:
        found = repository.get_sensor_def("gap_fill_sensor").evaluate_tick(context)

    released = {request.tags.get(MODEL_TAG) for request in found.run_requests or ()}
    assert "web.visits" in released
    assert "web.other" not in released
