"""Events stored in batches: the same events, in few transactions."""

import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import dagster as dg
import pytest
from dagster._core.events.log import EventLogEntry

from backfill_assets.orchestration.instance import BatchedInstance, BatchedSqliteEvents
from backfill_assets.orchestration.private_names import report_without_run
from backfill_assets.orchestration.reporting import DATA_VERSION_TAG, log_events

CHECKOUT = Path(__file__).parents[2]
DAYS = dg.DailyPartitionsDefinition("2024-01-01", end_date="2024-02-10")
KEYS = DAYS.get_partition_keys()
CHECK = dg.AssetCheckKey(dg.AssetKey("filled"), "fine")


@dg.asset(
    key="filled",
    partitions_def=DAYS,
    backfill_policy=dg.BackfillPolicy.single_run(),
    check_specs=[dg.AssetCheckSpec("fine", asset="filled")],
    dagster_type=cast("dg.DagsterType", dg.Nothing),
)
def filled(context: dg.AssetExecutionContext) -> Iterator[Any]:
    log_events(
        context,
        [
            dg.AssetMaterialization("filled", partition=key, tags={"dagster/data_version": key})
            for key in KEYS[1:]
        ],
    )
    log_events(context, [dg.AssetObservation("filled", partition=KEYS[0])])
    yield dg.AssetCheckResult(passed=True)
    yield dg.Output(None, metadata={"__source_asset_observation__": True})


def fill(instance: dg.DagsterInstance) -> str:
    job = dg.Definitions([filled]).resolve_implicit_global_asset_job_def()
    ends = {"start": KEYS[0], "end": KEYS[-1]}
    tags = {f"dagster/asset_partition_range_{name}": key for name, key in ends.items()}
    return job.execute_in_process(instance=instance, tags=tags).run_id


@contextmanager
def opened(folder: Path, config: Path | None) -> Iterator[dg.DagsterInstance]:
    folder.mkdir()
    if config is None:
        (folder / "dagster.yaml").touch()
    else:
        shutil.copy(config, folder / "dagster.yaml")
    with dg.DagsterInstance.from_config(str(folder)) as instance:
        yield instance


def kept(instance: dg.DagsterInstance, run: str) -> dict[str, Any]:
    """Everything that the instance tells about a run's cells."""
    (record,) = instance.get_asset_records([dg.AssetKey("filled")])
    last = record.asset_entry.last_materialization
    partitions = instance.get_latest_storage_id_by_partition(
        dg.AssetKey("filled"), dg.DagsterEventType.ASSET_MATERIALIZATION
    )
    check = instance.event_log_storage.get_asset_check_execution_history(CHECK, limit=10)
    filled = instance.fetch_materializations(dg.AssetKey("filled"), limit=500).records
    planned = dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED
    return {
        "log": Counter(_named(entry) for entry in instance.all_logs(run) if entry.is_dagster_event),
        "last": last and last.asset_materialization and last.asset_materialization.partition,
        "materialized": sorted(partitions),
        "in order": sorted(partitions, key=lambda key: partitions[key]) == KEYS[1:],
        "planned": sorted(
            instance.get_latest_storage_id_by_partition(dg.AssetKey("filled"), planned)
        ),
        "observed": len(instance.fetch_observations(dg.AssetKey("filled"), limit=10).records),
        "times": len(filled),
        "versions": {
            materialization.partition_key: (
                materialization.asset_materialization and materialization.asset_materialization.tags
            )
            for materialization in filled
        },
        "checked": check[0].status.value,
    }


def _named(event: EventLogEntry) -> tuple[str, str | None]:
    return event.get_dagster_event().event_type_value, event.get_dagster_event().partition


def test_an_instance_of_this_checkout_keeps_what_dagsters_own_keeps(tmp_path: Path):
    with opened(tmp_path / "plain", None) as plain:
        expected = kept(plain, fill(plain))
    with opened(tmp_path / "ours", CHECKOUT / "dagster.yaml") as ours:
        assert isinstance(ours, BatchedInstance)
        found = kept(ours, fill(ours))

    assert found == expected
    assert expected["materialized"] == KEYS[1:]
    assert expected["planned"] == KEYS


def test_its_files_lie_where_dagster_would_have_them(tmp_path: Path):
    def files(folder: Path, config: Path | None) -> set[str]:
        with opened(folder, config) as instance:
            run = fill(instance)
        found = {str(file.relative_to(folder)) for file in folder.rglob("*.db")}
        return {name.replace(run, "RUN") for name in found}

    assert files(tmp_path / "ours", CHECKOUT / "dagster.yaml") == files(tmp_path / "plain", None)


def test_a_run_of_many_cells_is_stored_in_few_transactions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    stored: list[int] = []
    one_by_one = BatchedSqliteEvents.store_event
    together = BatchedSqliteEvents.store_event_batch
    monkeypatch.setattr(
        BatchedSqliteEvents,
        "store_event",
        lambda self, event: (stored.append(1), one_by_one(self, event))[1],
    )
    monkeypatch.setattr(
        BatchedSqliteEvents,
        "store_event_batch",
        lambda self, events: (stored.append(len(events)), together(self, events))[1],
    )
    with opened(tmp_path / "ours", CHECKOUT / "dagster.yaml") as ours:
        fill(ours)

    assert sum(stored) > 2 * len(KEYS)
    assert len(stored) < 30


def test_cells_that_no_run_filled_are_stored_together_as_dagsters_own_report_stores_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    cells = [
        dg.AssetMaterialization("filled", partition=key, tags={DATA_VERSION_TAG: key})
        for key in KEYS
    ]

    def told(instance: dg.DagsterInstance) -> dict[str, Any]:
        found = instance.fetch_materializations(dg.AssetKey("filled"), limit=100).records
        key, kind = dg.AssetKey("filled"), dg.DagsterEventType.ASSET_MATERIALIZATION
        return {
            "cells": [(record.run_id, record.asset_materialization) for record in found],
            "last": instance.get_latest_materialization_event(key),
            "partitions": instance.get_latest_storage_id_by_partition(key, kind),
            "tags": instance.event_log_storage.get_latest_tags_by_partition(
                key, kind, [DATA_VERSION_TAG]
            ),
            "log": [entry.get_dagster_event() for entry in instance.all_logs("")],
        }

    monkeypatch.setattr("time.time", lambda: 1_700_000_000.0)
    with opened(tmp_path / "plain", None) as plain:
        for cell in cells:
            plain.report_runless_asset_event(cell)
        expected = told(plain)
    for name, config in (("again", None), ("ours", CHECKOUT / "dagster.yaml")):
        batches: list[int] = []
        together = BatchedSqliteEvents.store_event_batch
        with opened(tmp_path / name, config) as instance, monkeypatch.context() as counting:
            counting.setattr(
                BatchedSqliteEvents,
                "store_event_batch",
                lambda self, events, count=batches, store=together: (
                    count.append(len(events)),
                    store(self, events),
                )[1],
            )
            assert list(report_without_run(instance, cells)) == list(range(1, len(KEYS) + 1))
            assert told(instance) == expected
        assert batches == ([len(KEYS)] if config else [])
    assert len(expected["cells"]) == len(KEYS)


def test_a_check_of_a_run_is_one_row_that_its_result_answers(tmp_path: Path):
    with opened(tmp_path / "ours", CHECKOUT / "dagster.yaml") as ours:
        fill(ours)
        kept = ours.event_log_storage.get_asset_check_execution_history(CHECK, limit=100)

    assert [(record.status.value, record.partition) for record in kept] == [("SUCCEEDED", None)]


@pytest.mark.parametrize(
    "step", ["_store_asset_event", "store_asset_check_event", "run_connection"]
)
def test_where_a_batch_can_not_be_stored_each_event_is_stored_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
):
    failed: list[str] = []

    def locked(*_: object) -> None:
        failed.append(step)
        raise RuntimeError("database is locked")

    with opened(tmp_path / "plain", None) as plain:
        expected = kept(plain, fill(plain))

    def store_event_batch(self: BatchedSqliteEvents, events: list[EventLogEntry]) -> None:
        with monkeypatch.context() as broken:
            broken.setattr(BatchedSqliteEvents, step, locked)
            together(self, events)

    together = BatchedSqliteEvents.store_event_batch
    monkeypatch.setattr(BatchedSqliteEvents, "store_event_batch", store_event_batch)
    with opened(tmp_path / "ours", CHECKOUT / "dagster.yaml") as ours:
        found = kept(ours, fill(ours))
        checked = ours.event_log_storage.get_asset_check_execution_history(CHECK, limit=100)

    assert failed
    assert found == expected
    assert len(checked) == 1
