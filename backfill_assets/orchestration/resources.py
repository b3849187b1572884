"""Resources: Spark, started on first use and stopped at the end of the run; and the state."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock

import dagster as dg
from dagster_pyspark import LazyPySparkResource
from pydantic import PrivateAttr

from backfill_assets.engine.automatic.scanned_environment import no_spark
from backfill_assets.engine.project.batch_policy import USUAL_POLICY, batch_policy_of
from backfill_assets.engine.project.channels import channels_of
from backfill_assets.engine.project.gate import gate_of
from backfill_assets.engine.project.plan_terms import terms_of
from backfill_assets.engine.project.project import Project
from backfill_assets.errors import DeclarationError
from backfill_assets.models.graph import Graph
from backfill_assets.reading import absent_state
from backfill_assets.settings import read_settings
from backfill_assets.snapshots.loaded import Loaded
from backfill_assets.state.store import Store
from backfill_assets.warehouse.spark.session import spark_settings
from backfill_assets.warehouse.spark.shared_session import SharedSession


def now() -> datetime:
    """Read the clock: the one place in orchestration that does."""
    return datetime.now(UTC)


class SparkResource(LazyPySparkResource):
    """Dagster's lazy Spark, with this project's Delta and tuning settings in one place.

    `spark_config` adds to those settings, and overrides them.
    """

    _shared: SharedSession | None = PrivateAttr(default=None)
    _making: Lock = PrivateAttr(default_factory=Lock)

    @property
    def spark_session(self):  # noqa: ANN201 - only warehouse imports Spark
        """The session, started on first use; batches ask for it from several threads at once."""
        with self._making:
            if self._shared is None:
                self._shared = SharedSession(spark_settings(read_settings(), self.spark_config))
        return self._shared()

    @contextmanager
    def yield_for_execution(
        self,
        context: dg.InitResourceContext,  # noqa: ARG002 - Dagster passes it
    ) -> Iterator["SparkResource"]:
        """Give the resource to a run, and stop the session, if there is one, at the run's end."""
        try:
            yield self
        finally:
            if self._shared is not None:
                self._shared.stop()
                self._shared = None


def _refuse_unknown_consumers(graph: Graph, catalog: str) -> None:
    """Refuse definitions that lack consumers of their catalog: jobs would publish without asking these."""
    lacking = sorted(
        consumer.name
        for consumer in getattr(sys.modules.get(catalog), "CONSUMERS", ())
        if consumer.name not in graph.consumers
        and all(reading.model in graph.models for reading in consumer.reads)
    )
    if lacking:
        raise DeclarationError(
            found=f"the definitions of Dagster lack consumers that {catalog} declares: {', '.join(lacking)}",
            do="give build_definitions also consumers=CONSUMERS",
        )


class StateResource(dg.ConfigurableResource):
    """The state database, opened for a run."""

    _store: Store | None = PrivateAttr(default=None)

    @property
    def store(self) -> Store:
        """The open store."""
        if self._store is None:
            settings = read_settings()
            absent_state(settings)  # refuses tables of a state that is not there
            if "://" not in settings.data_root:
                Path(settings.data_root).mkdir(parents=True, exist_ok=True)
            self._store = Store.open(
                settings.state,
                clock=now,
                lease_seconds=settings.lease_seconds,
                data_root=settings.data_root,
            )
        return self._store

    @property
    def data_root(self) -> str:
        """The folder or URI under which tables lie."""
        return read_settings().data_root

    def project(
        self, loaded: Loaded, run_id: str, spark: SparkResource | None = None, who: str = ""
    ) -> Project:
        """Open the project for a run, as the settings say.

        Args:
            loaded: the models and sources.
            run_id: of the run.
            spark: started on first use; None where only recorded state is read.
            who: the person who asks, as the history keeps it.

        Raises:
            DeclarationError: the definitions lack consumers of the catalog.
        """
        settings = read_settings()
        _refuse_unknown_consumers(loaded.graph, settings.catalog)
        return Project(
            store=self.store,
            loaded=loaded,
            spark=no_spark if spark is None else lambda: spark.spark_session,
            data_root=settings.data_root,
            clock=now,
            run_id=run_id,
            who=who,
            batches_at_once=settings.max_batches,
            batch_policy=USUAL_POLICY if spark is None else batch_policy_of(settings),
            terms=terms_of(settings),
            views=settings.views,
            gate=lambda: gate_of(settings),
            deliver=channels_of(settings.channels),
        )

    @contextmanager
    def yield_for_execution(
        self,
        context: dg.InitResourceContext,  # noqa: ARG002 - Dagster passes it
    ) -> Iterator["StateResource"]:
        """Give the resource to a run, and close the database at the run's end."""
        try:
            yield self
        finally:
            if self._store is not None:
                self._store.close()
                self._store = None
