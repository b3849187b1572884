"""The toy shop in this process: fill models through Dagster, and read back what it was told."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

import dagster as dg
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill
from dagster._core.storage.partition_status_cache import get_and_update_asset_status_cache_value
from deltalake import DeltaTable

from backfill_assets import resolve
from backfill_assets.engine.batch.batch_run import run_batch
from backfill_assets.engine.batch.requests import batch_request
from backfill_assets.engine.fill.observing import observe
from backfill_assets.engine.project.events import Committed
from backfill_assets.engine.project.opening import open_run
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.graph import build_graph
from backfill_assets.orchestration.building import AUDITS_JOB
from backfill_assets.orchestration.resources import SparkResource, StateResource
from backfill_assets.snapshots.environment import PROD
from backfill_assets.snapshots.loaded import Loaded
from backfill_assets_tests.toy import MODELS, SOURCES, land_rows, raw_returns, raw_sales
from backfill_assets_tests.toy_definitions import defs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


class UnwantedSparkError(Exception):
    """Spark was started where nothing needed it."""


class NoSpark(SparkResource):
    """For runs that must not start Spark."""

    @property
    def spark_session(self) -> SparkSession:
        raise UnwantedSparkError


def lent(session: Any) -> SparkResource:  # noqa: ANN401 - Spark's, or the fake's
    """The session of the tests as the run's own."""

    class Lent(SparkResource):
        @property
        def spark_session(self) -> Any:  # noqa: ANN401
            return session

    return Lent(spark_config={})


@dataclass(frozen=True)
class Shop:
    """A data folder with the toy's sources landed, and a Dagster instance that remembers nothing."""

    spark: Any  # Spark's session, or the fake's
    root: str
    instance: dg.DagsterInstance
    defs: dg.Definitions = defs

    def fill(
        self, *models: str, cells: str = "", spark: SparkResource | None = None, **tags: str
    ) -> dg.ExecuteInProcessResult:
        """Materialize models; `cells` is a partition key, or two as `first...last`."""
        first, _, last = cells.partition("...")
        if last:
            tags["dagster/asset_partition_range_start"] = first
            tags["dagster/asset_partition_range_end"] = last
        return dg.materialize(
            cast("list[Any]", [*(self.defs.assets or ()), *(self.defs.asset_checks or ())]),
            selection=[dg.AssetKey(name.split(".")) for name in models],
            partition_key=first if first and not last else None,
            resources=self.resources(spark),
            instance=self.instance,
            tags=tags,
            raise_on_error=False,
        )

    def backfill(self, *keys: str) -> dict[str, Any]:
        """A person launches partitions of a job as a backfill; gives the tags of its runs."""
        asked = PartitionBackfill(
            backfill_id="b1",
            status=BulkActionStatus.REQUESTED,
            from_failure=False,
            tags={},
            backfill_timestamp=0.0,
            partition_names=keys,
        )
        self.instance.add_backfill(asked)
        return {"dagster/backfill": asked.backfill_id}

    def red(self, model: str) -> list[str]:
        """The partitions of a model that Dagster shows as failed."""
        key = dg.AssetKey(model.split("."))
        cut = self.defs.resolve_asset_graph().get(key).partitions_def
        assert cut is not None
        seen = get_and_update_asset_status_cache_value(self.instance, key, cut)
        assert seen is not None
        return sorted(seen.deserialize_failed_partition_subsets(cut).get_partition_keys())

    def audit(self) -> dg.ExecuteInProcessResult:
        """Run the job that audits what is published."""
        job = defs.resolve_job_def(AUDITS_JOB)
        return job.execute_in_process(
            resources=self.resources(), instance=self.instance, raise_on_error=False
        )

    def resources(self, spark: SparkResource | None = None) -> dict[str, Any]:
        return {"backfill_spark": spark or lent(self.spark), "backfill_state": StateResource()}

    def sell(self, day: str, shop: str, amount: int) -> None:
        """A row comes late to the source of sales."""
        land_rows(self.root, raw_sales, (date.fromisoformat(day), shop, Decimal(amount)))

    def refresh(self, model: str, key: str) -> None:
        """Rewrite a published cell, as a refresh or plan may do."""
        state = StateResource()
        loaded = Loaded.of(build_graph(MODELS, SOURCES))
        run = open_run(state.project(loaded, "refresh", lent(self.spark)), PROD)
        observe(run, [model])
        declared = run.graph.model(model)
        request = batch_request(
            run, declared, IntervalSet.of([declared.cadence.cell(key)]), reason="refresh"
        )
        assert isinstance([*run_batch(run, request)][-1], Committed)
        state.store.close()

    def correct(self, day: str) -> None:
        """The rows of a day with a negative amount leave the source."""
        table = DeltaTable(f"{self.root}/{raw_sales.path}")
        table.delete(f"ds = '{day}' AND amount < 0")

    def bring_back(self, day: str, amount: int) -> None:
        """The returns of a day are corrected in their source."""
        table = DeltaTable(f"{self.root}/{raw_returns.path}")
        table.update(updates={"amount": str(amount)}, predicate=f"ds = '{day}'")

    def published(self, model: str, *columns: str) -> list[tuple[Any, ...]]:
        """The rows of a model at its pin, in order; dates as text."""
        path, version = resolve(model)
        table = DeltaTable(path, version=version).to_pyarrow_table(columns=list(columns))
        return sorted(
            tuple(str(row[name]) if isinstance(row[name], date) else row[name] for name in columns)
            for row in table.to_pylist()
        )


def told(result: dg.ExecuteInProcessResult, model: str) -> list[tuple[str | None, dict[str, Any]]]:
    """Every materialization of a model: partition and metadata."""
    return [_shown(event.materialization) for event in _of(result, model, "ASSET_MATERIALIZATION")]


def keys(result: dg.ExecuteInProcessResult, model: str) -> list[str | None]:
    """The partition of every materialization of a model, in order of time."""
    return [key for key, _ in told(result, model)]


def waiting(result: dg.ExecuteInProcessResult, model: str) -> dict[str, list[str]]:
    """The partitions of a model that wait for approval, by plan."""
    found: dict[str, list[str]] = {}
    for key, said in told(result, model):
        if said.get("waits_for_approval"):
            found.setdefault(said["plan"], []).append(str(key))
    return found


def observed(
    result: dg.ExecuteInProcessResult, model: str
) -> list[tuple[str | None, dict[str, Any]]]:
    """Every observation of a model: partition and metadata."""
    return [
        _shown(event.asset_observation_data.asset_observation)
        for event in _of(result, model, "ASSET_OBSERVATION")
    ]


def checks(result: dg.ExecuteInProcessResult, model: str) -> dict[str, dg.AssetCheckEvaluation]:
    """The evaluation of every check of a model; each must be there once."""
    found: dict[str, dg.AssetCheckEvaluation] = {}
    for evaluation in result.get_asset_check_evaluations():
        if evaluation.asset_key.path == model.split("."):
            assert evaluation.check_name not in found
            found[evaluation.check_name] = evaluation
    return found


def shown(result: dg.ExecuteInProcessResult) -> dict[str, Any]:
    """What a run has put on its page."""
    for event in result.all_events:
        if event.event_type_value == "STEP_OUTPUT":
            return {key: entry.value for key, entry in event.step_output_data.metadata.items()}
    return {}


def failure(result: dg.ExecuteInProcessResult) -> str:
    """What the failed step says."""
    for event in result.all_events:
        if event.is_step_failure:
            said = event.step_failure_data.user_failure_data
            return (said.description if said else "") or str(event.step_failure_data.error)
    return ""


def failed_with(result: dg.ExecuteInProcessResult) -> dict[str, Any]:
    """What the failed step shows beside its message."""
    for event in result.all_events:
        if event.is_step_failure:
            said = event.step_failure_data.user_failure_data
            return {key: entry.value for key, entry in said.metadata.items()} if said else {}
    return {}


def _of(result: dg.ExecuteInProcessResult, model: str, kind: str) -> Iterator[dg.DagsterEvent]:
    for event in result.all_events:
        if event.event_type_value == kind and event.asset_key == dg.AssetKey(model.split(".")):
            yield event


def _shown(said: Any) -> tuple[str | None, dict[str, Any]]:  # noqa: ANN401
    return said.partition, {key: entry.value for key, entry in said.metadata.items()}
