"""The private names of Dagster that we use: why, and which public name is missing.

| used | why | the public name that is missing |
|---|---|---|
| `SqliteEventLogStorage`, `DagsterSqliteStorage`, its tables, `InstanceRef`, `ConfigurableClassData` | a run of 540 cells stores a thousand events at once (ADR 7) | an event storage on SQLite that stores a batch in one transaction |
| `DagsterEventBatchMetadata`, `generate_event_batch_id`, `append` | a step reports its cells as one batch | `context.log_events(...)` |
| `StepMaterializationData`, `RUNLESS_RUN_ID`, `RUNLESS_JOB_NAME` | cells that were filled without Dagster are reported as one batch | `instance.report_runless_asset_events(...)` |
| `AssetCheckEvaluationPlanned` | an announced check is about a run, not about each of its cells | checks that are not announced for each cell |
| `CheckRunHealthResult`, `WorkerStatus`, `instance_of`, `GRPC_INFO_TAG` | a run is called failed when its process is gone | an answer of `DefaultRunLauncher` to the monitor |
| `BulkActionStatus`, `BulkActionsFilter` | models of a backfill that goes on are left to it, also between two of its runs | `instance.get_backfills(...)` by its words |
| `AutomationTarget`, `JobsSensor` | one sensor asks for Dagster's job over all assets, and for jobs | several names in `job_name` of a sensor |

Dagster is imported before anything of ours starts, and this module with it: a missing name is
reported at once, not by the run that would have needed it.
"""

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import dagster as dg

from backfill_assets.errors import PrivateNameError

TRIED = "1.13.27"
"""A release of Dagster that has all of these names."""

try:
    from dagster._core.definitions.asset_checks.asset_check_evaluation import (
        AssetCheckEvaluationPlanned,
    )
    from dagster._core.definitions.target import AutomationTarget
    from dagster._core.events import (
        ASSET_EVENTS,
        DagsterEventBatchMetadata,
        StepMaterializationData,
        generate_event_batch_id,
    )
    from dagster._core.execution.backfill import BulkActionsFilter, BulkActionStatus
    from dagster._core.instance.ref import InstanceRef
    from dagster._core.instance.utils import RUNLESS_JOB_NAME, RUNLESS_RUN_ID
    from dagster._core.launcher import CheckRunHealthResult, WorkerStatus
    from dagster._core.storage.event_log.schema import (
        AssetCheckExecutionsTable,
        AssetEventTagsTable,
        SqlEventLogStorageTable,
    )
    from dagster._core.storage.event_log.sqlite.sqlite_event_log import (
        SqliteEventLogStorage,
    )
    from dagster._core.storage.sqlite_storage import DagsterSqliteStorage
    from dagster._core.storage.tags import GRPC_INFO_TAG
    from dagster._serdes import ConfigurableClassData
except ImportError as gone:
    raise PrivateNameError("dagster", str(gone), tried=TRIED, where=__name__) from gone

_ATTRIBUTES: dict[type, tuple[str, ...]] = {
    dg.DagsterInstance: ("_get_event_batch_size",),
    SqliteEventLogStorage: ("_base_dir", "_store_asset_event_tags", "_store_asset_event"),
    DagsterSqliteStorage: ("_event_log_storage",),
    dg.OpExecutionContext: ("_events",),
    dg.SensorDefinition: ("_targets", "_raw_fn"),
    dg.DefaultRunLauncher: ("_instance",),
}


def check_attributes(attributes: dict[type, tuple[str, ...]]) -> None:
    """Check that classes have private attributes, or that their `__init__` gives them.

    Raises:
        PrivateNameError: one is missing.
    """
    for kind, names in attributes.items():
        given = inspect.unwrap(kind.__init__).__code__.co_names
        for name in names:
            if not hasattr(kind, name) and name not in given:
                missing = f"{kind.__name__} has no {name}"
                raise PrivateNameError("dagster", missing, tried=TRIED, where=__name__)


check_attributes(_ATTRIBUTES)


def backfills_at_work(
    instance: dg.DagsterInstance, assets_of_job: Callable[[str], Collection[dg.AssetKey]]
) -> Mapping[dg.AssetKey, str]:
    """Name the backfill of each asset that one will launch runs of, or has launched them and waits for their end.

    Args:
        instance: whose backfills they are.
        assets_of_job: names all assets of a job: a backfill of a job names none.
    """
    at_work = BulkActionsFilter(statuses=[BulkActionStatus.REQUESTED])
    return {
        key: backfill.backfill_id
        for backfill in instance.get_backfills(filters=at_work)
        for key in backfill.asset_selection or assets_of_job(backfill.job_name or "")
    }


def append(context: dg.AssetExecutionContext, event: dg.DagsterEvent) -> None:
    """Add an event to a step, as `log_event` does, but that has no batches."""
    context.op_execution_context._events.append(event)


def report_without_run(
    instance: dg.DagsterInstance, materializations: Sequence[dg.AssetMaterialization]
) -> Iterator[int]:
    """Report materializations that belong to no run, as `report_runless_asset_event` does one; the storage gets them together.

    Yields:
        How many are reported, or wait for the others of their batch.
    """
    batch = generate_event_batch_id()
    for number, materialization in enumerate(materializations, start=1):
        event = dg.DagsterEvent(
            event_type_value=dg.DagsterEventType.ASSET_MATERIALIZATION.value,
            event_specific_data=StepMaterializationData(materialization),
            job_name=RUNLESS_JOB_NAME,
        )
        where = DagsterEventBatchMetadata(batch, is_end=number == len(materializations))
        instance.report_dagster_event(event, RUNLESS_RUN_ID, batch_metadata=where)
        yield number


class JobsSensor(dg.SensorDefinition):
    """A sensor that requests runs of several jobs, each known by its name alone.

    Args:
        evaluation_fn: what it does.
        job_names: what it may request.
        shown: what else a sensor takes: name, description, interval, status, metadata.
    """

    def __init__(
        self,
        evaluation_fn: Callable[..., Any],
        job_names: Sequence[str],
        **shown: Any,  # noqa: ANN401 - what Dagster's own sensor takes
    ) -> None:
        super().__init__(evaluation_fn=evaluation_fn, job_name=job_names[0], **shown)
        self._targets = [AutomationTarget(name) for name in job_names]

    def with_attributes(
        self,
        *,
        jobs: Sequence[Any] | None = None,  # noqa: ARG002 - jobs known by name stay what they are
        metadata: Mapping[str, Any] | None = None,
    ) -> "JobsSensor":
        """Give a copy with other metadata, as whatever puts definitions together asks for it."""
        return JobsSensor(
            self._raw_fn,
            [target.job_name for target in self.targets],
            name=self.name,
            description=self.description,
            minimum_interval_seconds=self.minimum_interval_seconds,
            default_status=self.default_status,
            metadata=self.metadata if metadata is None else metadata,
        )


def instance_of(launcher: dg.DefaultRunLauncher) -> dg.DagsterInstance:
    """Give the instance that a launcher is for."""
    return launcher._instance


def folder_of(events: SqliteEventLogStorage) -> str:
    """Give the folder of an event log."""
    return events._base_dir


def store_assets(
    events: SqliteEventLogStorage,
    index: Any,  # noqa: ANN401 - only state imports SQLAlchemy
    stored: Sequence[tuple[dg.EventLogEntry, int]],
) -> None:
    """Store the tags and the latest events of assets, beside the events themselves.

    Args:
        events: the event log.
        index: the connection to the file that all runs share.
        stored: the events, each with its number in that file.
    """
    events._store_asset_event_tags(
        index, [event for event, _ in stored], [number for _, number in stored]
    )
    # An asset's own row has its last event of each kind.
    latest = {
        (event.dagster_event_type, event.get_dagster_event().asset_key): (event, number)
        for event, number in stored
    }
    for event, number in latest.values():
        events._store_asset_event(index, event, number)
