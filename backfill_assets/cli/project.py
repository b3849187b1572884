"""Open the project that a command works on: settings, catalog, state and, when needed, Spark."""

from __future__ import annotations

import importlib
import os
import uuid
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.execution.opening import open_run
from backfill_assets.models.graph import build_graph
from backfill_assets.settings import Settings
from backfill_assets.state.store import Store
from backfill_assets.warehouse.session import SparkSettings, start_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.execution.run_context import RunContext
    from backfill_assets.models.graph import Graph


class CatalogError(BackfillAssetsError):
    """The catalog module can't be imported, or has no MODELS and SOURCES."""

    def __init__(self, module: str, found: str) -> None:
        self.module = module
        super().__init__(
            f"catalog '{module}': {found}; name a module with MODELS and SOURCES in "
            "BACKFILL_CATALOG"
        )


class LazySpark:
    """A Spark session that is started on first use, for commands that may not need one."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._session: Any = None

    def __call__(self) -> Any:  # noqa: ANN401 - only warehouse names Spark's types
        """Give the session."""
        if self._session is None:
            self._session = start_session(spark_settings(self._settings))
        return self._session

    def stop(self) -> None:
        """Stop it, if it was started."""
        if self._session is not None:
            self._session.stop()


def spark_settings(settings: Settings) -> SparkSettings:
    """Give Spark's part of the settings."""
    return SparkSettings(
        jars_dir=settings.jars_dir,
        warehouse=f"{settings.data_root}/spark-warehouse",
        master=settings.spark_master,
        driver_memory=settings.spark_memory,
    )


def now() -> datetime:
    """Read the clock: the one place in the CLI that does."""
    return datetime.now(UTC)


def load_graph(settings: Settings) -> Graph:
    """Import the catalog and check it.

    Raises:
        CatalogError: it can't be imported or lacks MODELS or SOURCES.
    """
    try:
        module = importlib.import_module(settings.catalog)
    except ImportError as error:
        raise CatalogError(settings.catalog, f"can't be imported ({error})") from error
    if not (hasattr(module, "MODELS") and hasattr(module, "SOURCES")):
        raise CatalogError(settings.catalog, "has no MODELS and SOURCES")
    return build_graph(module.MODELS, module.SOURCES)


@contextmanager
def opened_run(environment: str, *, settings: Settings | None = None) -> Iterator[RunContext]:
    """Open a run of one environment, and close state and Spark after it."""
    settings = settings or Settings()
    os.makedirs(settings.data_root, exist_ok=True)  # noqa: PTH103 - may be a URI
    store = Store.open(settings.state, clock=now, lease_seconds=settings.lease_seconds)
    spark = LazySpark(settings)
    try:
        yield open_run(
            store,
            load_graph(settings),
            environment=environment,
            spark=spark,
            data_root=settings.data_root,
            clock=now,
            run_id=f"cli-{uuid.uuid4().hex[:12]}",
        )
    finally:
        spark.stop()
        store.close()
