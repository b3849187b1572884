"""Dagster's instance, but it stores many events at once: a run of 540 cells has over a thousand.

Dagster announces each cell of a run that it queues, and we report each cell that was filled. On SQLite
it stores every one of them by itself, in two files and some forty milliseconds. `dagster.yaml` names
the class here, so that webserver, daemon and runs all store a batch in one transaction instead. What is
stored, and where, stays as Dagster has it; PostgreSQL's storage stores batches by itself.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import yaml
from dagster import DagsterEvent, DagsterInstance, EventLogEntry

from backfill_assets.orchestration.private_names import (
    ASSET_EVENTS,
    AssetCheckEvaluationPlanned,
    AssetCheckExecutionsTable,
    AssetEventTagsTable,
    ConfigurableClassData,
    DagsterEventBatchMetadata,
    DagsterSqliteStorage,
    InstanceRef,
    SqlEventLogStorageTable,
    SqliteEventLogStorage,
    folder_of,
    store_assets,
)

_AT_ONCE = 1_000
"""More events than most runs have, and few enough that a file is not locked for seconds."""
_IDS = (
    SqlEventLogStorageTable.c.id,
    AssetEventTagsTable.c.event_id,
    AssetCheckExecutionsTable.c.evaluation_event_storage_id,
)
"""The columns of the shared file that name an event."""


class BatchedInstance(DagsterInstance):
    """An instance that stores events in batches wherever Dagster or we give them as one."""

    @classmethod
    def config_schema(cls) -> dict[str, Any]:
        """Give the settings of its own that `dagster.yaml` may have: none."""
        return {}

    @staticmethod
    def config_defaults(base_dir: str) -> Mapping[str, ConfigurableClassData | None]:
        """Give Dagster's defaults, with SQLite's storage as it is here."""
        ours = ConfigurableClassData(
            __name__, BatchedSqliteStorage.__name__, yaml.dump({"base_dir": base_dir})
        )
        return {**InstanceRef.config_defaults(base_dir), "storage": ours}

    def report_dagster_event(
        self,
        dagster_event: DagsterEvent,
        run_id: str,
        log_level: str | int = logging.INFO,
        batch_metadata: DagsterEventBatchMetadata | None = None,
        timestamp: float | None = None,
    ) -> None:
        """Store an event; a planned check is about the whole run, as its result is.

        Dagster plans a check for each of the run's cells, and would store a row for each cell and
        check that never gets a result: ten thousand of them, 25 MB, for a run of 540 days.
        """
        planned = dagster_event.event_specific_data
        if isinstance(planned, AssetCheckEvaluationPlanned):
            whole = AssetCheckEvaluationPlanned(
                asset_key=planned.asset_key, check_name=planned.check_name
            )
            dagster_event = dagster_event._replace(event_specific_data=whole)
        super().report_dagster_event(dagster_event, run_id, log_level, batch_metadata, timestamp)

    def _get_event_batch_size(self) -> int:
        return _AT_ONCE


class BatchedSqliteEvents(SqliteEventLogStorage):
    """Dagster's event log on SQLite, but it writes a batch in one transaction per file."""

    def store_event_batch(self, events: Sequence[EventLogEntry]) -> None:
        """Store events of one run in one transaction per file.

        If that fails, nothing is stored, and Dagster stores one event after the other instead. So the
        file that all runs share is written first, and cleared again if the run's own can't be.
        """
        inserts = [self.prepare_insert_event(event) for event in events]
        with self.index_transaction() as index:
            ids = [_number(index.execute(insert)) for insert in inserts]
            stored = list(zip(events, ids, strict=True))
            assets = [entry for entry in stored if entry[0].dagster_event_type in ASSET_EVENTS]
            store_assets(self, index, assets)
        try:
            for event, number in stored:
                if event.dagster_event_type not in ASSET_EVENTS:
                    self.store_asset_check_event(event, number)
            with self.run_connection(events[0].run_id) as log:
                for insert in inserts:
                    log.execute(insert)
        except Exception:
            self._forget(ids)
            raise

    def _forget(self, ids: Sequence[int]) -> None:
        """Delete events from the shared file; an asset's own row is overwritten by its next event."""
        with self.index_transaction() as index:
            for column in _IDS:
                index.execute(column.table.delete().where(column.in_(ids)))


def _number(inserted: Any) -> int:  # noqa: ANN401 - only state imports SQLAlchemy
    return inserted.inserted_primary_key[0]


class BatchedSqliteStorage(DagsterSqliteStorage):
    """Dagster's storage on SQLite, with that event log."""

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        super().__init__(base_dir, inst_data)
        self._event_log_storage = BatchedSqliteEvents(folder_of(self._event_log_storage))

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData, config_value: Mapping[str, Any]
    ) -> "BatchedSqliteStorage":
        """Open it where the configuration says."""
        return cls.from_local(inst_data=inst_data, **config_value)
