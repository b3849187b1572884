"""Read what is published: resolve a model to its table and pin, or read it with Spark.

`resolve` starts nothing: any reader of Delta tables can take it from there.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.settings import Settings, read_settings
from backfill_assets.snapshots.environment import PROD
from backfill_assets.state.store import Store
from backfill_assets.warehouse.reading import read_pinned
from backfill_assets.warehouse.session import spark_settings, start_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class NotPublishedError(BackfillAssetsError):
    """An environment has published nothing of a model yet."""

    def __init__(self, model: str, env: str, known: tuple[str, ...]) -> None:
        self.model, self.env = model, env
        listed = ", ".join(known) or "nothing yet"
        super().__init__(
            f"environment '{env}' has published nothing of '{model}' (it has: {listed}); fill it "
            f"with `backfill run --select {model}`, or correct the name"
        )


class Resolved(NamedTuple):
    """Where a model can be read.

    Attributes:
        path: of the Delta table.
        delta_version: the pin: exactly what the environment has published.
    """

    path: str
    delta_version: int


def resolve(model: str, *, env: str = PROD, settings: Settings | None = None) -> Resolved:
    """Find the table and the pin that an environment reads a model at.

    Raises:
        NotPublishedError: there is none yet.
        UnknownEnvironmentError: there is no environment of that name.
    """
    settings = settings or read_settings()
    with Store.open(settings.state, clock=lambda: datetime.now(UTC)) as store:  # noqa: TID251 - for a lease that is never taken
        store.environment(env)
        pointers = store.pointers(env)
        published = tuple(name for name, one in pointers.items() if one.delta_version >= 0)
        if model not in published:
            raise NotPublishedError(model, env, published)
        pointer = pointers[model]
        return Resolved(store.version_path(pointer.version), pointer.delta_version)


def read(
    model: str,
    *,
    env: str = PROD,
    spark: SparkSession | None = None,
    settings: Settings | None = None,
) -> DataFrame:
    """Read a model as an environment has published it.

    Args:
        model: for example ``marketing.campaign_performance``.
        env: the environment.
        spark: a session with Delta; None starts one with this project's settings.
        settings: where things lie; None reads the environment.
    """
    settings = settings or read_settings()
    found = resolve(model, env=env, settings=settings)
    session = spark or start_session(spark_settings(settings))
    return read_pinned(session, found.path, found.delta_version)
