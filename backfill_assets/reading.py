"""Read what is published, or what a plan would publish: resolve a model, or read it with Spark.

`resolve` starts nothing: any reader of Delta tables can take it from there.
"""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, NamedTuple, overload

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.settings import Settings, read_settings
from backfill_assets.snapshots.environment import PROD, workspace_name
from backfill_assets.snapshots.snapshot import stored_model
from backfill_assets.state.store import Store
from backfill_assets.warehouse.layers import parts_of, table_of, without
from backfill_assets.warehouse.reading import read_pinned
from backfill_assets.warehouse.session import spark_settings, start_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from backfill_assets.models.model import Model
    from backfill_assets.warehouse.layers import Part
    from backfill_assets.warehouse.tables import Table

_EVERYTHING = "TRUE"


class NotPublishedError(BackfillAssetsError):
    """An environment has published nothing of a model yet."""

    def __init__(self, model: str, env: str, known: tuple[str, ...]) -> None:
        self.model, self.env = model, env
        listed = ", ".join(known) or "nothing yet"
        super().__init__(
            f"environment '{env}' has published nothing of '{model}' (it has: {listed}); fill it "
            f"with `backfill run --select {model}`, or correct the name"
        )


class NoWorkspaceError(BackfillAssetsError):
    """A plan has no workspace to read: it has not begun, or it has ended."""

    def __init__(self, plan_id: str, status: str, env: str) -> None:
        self.plan_id, self.status, self.env = plan_id, status, env
        super().__init__(
            f"plan {plan_id} is {status}, so there is nothing of its own to read; read environment "
            f"'{env}', or build the plan with `backfill apply {plan_id}`"
        )


class ResolvedLayer(NamedTuple):
    """One of the tables that make up a model.

    Attributes:
        path: of the Delta table.
        delta_version: its pin.
        where: Spark SQL over the column `_cell`: only these rows of it count.
    """

    path: str
    delta_version: int
    where: str


class Resolved(NamedTuple):
    """Where a model can be read.

    Attributes:
        path: of the Delta table.
        delta_version: the pin: exactly what the environment has published.
    """

    path: str
    delta_version: int

    @property
    def layers(self) -> tuple[ResolvedLayer, ...]:
        """The one table, as `ResolvedLayers` gives several."""
        return (ResolvedLayer(self.path, self.delta_version, _EVERYTHING),)


class ResolvedLayers(NamedTuple):
    """Where a model can be read that is made up of several tables.

    So it is in a plan that rebuilds some cells of a table, and in an environment that follows
    another one: what was built there comes from a table of its own, all else from those under it.
    It does not unpack like a `Resolved`, lest somebody read a part for the whole.

    Example:
        As one query, whether it takes one table or several::

            found = resolve("marketing.campaign_performance", plan="p1a2b3c4d5")
            parts = (
                f"SELECT ds, campaign_id, cost FROM delta.`{one.path}` "
                f"VERSION AS OF {one.delta_version} WHERE {one.where}"
                for one in found.layers
            )
            frame = spark.sql(" UNION ALL ".join(parts))

    Attributes:
        path: of the uppermost table.
        delta_version: its pin.
        where: Spark SQL over the column `_cell`: only these rows of it count.
        under: the tables under it, each with the rows that count.
    """

    path: str
    delta_version: int
    where: str
    under: tuple[ResolvedLayer, ...]

    @property
    def layers(self) -> tuple[ResolvedLayer, ...]:
        """All tables, the uppermost first."""
        return (ResolvedLayer(self.path, self.delta_version, self.where), *self.under)


@overload
def resolve(
    model: str, *, env: Literal["prod"] = ..., plan: None = None, settings: Settings | None = None
) -> Resolved: ...  # a protected environment reads every model from one table
@overload
def resolve(
    model: str, *, env: str = ..., plan: str | None = None, settings: Settings | None = None
) -> Resolved | ResolvedLayers: ...
def resolve(
    model: str, *, env: str = PROD, plan: str | None = None, settings: Settings | None = None
) -> Resolved | ResolvedLayers:
    """Find the table and the pin that an environment reads a model at.

    Args:
        model: for example ``marketing.campaign_performance``.
        env: the environment.
        plan: a plan that is not promoted yet: what its environment would read after it. Cells that
            it has still to build are empty.
        settings: where things lie; None reads the environment.

    Returns:
        `Resolved` for one table; `ResolvedLayers` where it takes several.

    Raises:
        NotPublishedError: there is none yet.
        UnknownEnvironmentError: there is no environment of that name.
        UnknownPlanError: there is no such plan.
        NoWorkspaceError: the plan has built nothing yet, or has ended.
    """
    with _opened(settings or read_settings()) as store:
        declared, table = _found(store, model, _environment(store, env, plan))
    top, *under = parts_of(declared.cadence, table)
    if not under and top.where == _EVERYTHING:
        return Resolved(top.path, top.delta_version)
    return ResolvedLayers(*_layer(top), tuple(_layer(one) for one in under))


def read(
    model: str,
    *,
    env: str = PROD,
    plan: str | None = None,
    spark: SparkSession | None = None,
    settings: Settings | None = None,
) -> DataFrame:
    """Read a model as an environment has published it, or as a plan would.

    Args:
        model: for example ``marketing.campaign_performance``.
        env: the environment.
        plan: a plan that is not promoted yet: what its environment would read after it. Cells that
            it has still to build are empty.
        spark: a session with Delta; None starts one with this project's settings.
        settings: where things lie; None reads the environment.

    Raises:
        NotPublishedError: there is none yet.
        UnknownEnvironmentError: there is no environment of that name.
        UnknownPlanError: there is no such plan.
        NoWorkspaceError: the plan has built nothing yet, or has ended.
    """
    settings = settings or read_settings()
    with _opened(settings) as store:
        declared, table = _found(store, model, _environment(store, env, plan))
    return read_pinned(spark or start_session(spark_settings(settings)), declared, table)


@contextmanager
def _opened(settings: Settings) -> Iterator[Store]:
    with Store.open(settings.state, clock=lambda: datetime.now(UTC)) as store:  # noqa: TID251 - for a lease that is never taken
        yield store


def _environment(store: Store, env: str, plan: str | None) -> str:
    """Name the environment that is read: a plan's workspace is one too."""
    if plan is None:
        return store.environment(env).name
    stored = store.plan(plan)
    name = workspace_name(stored.plan_id)
    if name not in {one.name for one in store.environments()}:
        raise NoWorkspaceError(stored.plan_id, stored.status, stored.environment)
    return name


def _found(store: Store, model: str, env: str) -> tuple[Model, Table]:
    """Find a model as the environment runs it, and the tables that it reads it from."""
    pointers = store.pointers(env)
    tables = {name: table_of(store.tables(one)) for name, one in pointers.items() if name == model}
    if model not in tables or not tables[model].exists:
        published = tuple(name for name, one in pointers.items() if one.delta_version >= 0)
        raise NotPublishedError(model, env, published)
    pointer, table = pointers[model], tables[model]
    declared = stored_model(store.snapshot_definition(pointer.fingerprint))
    return declared, without(table, pointer.certain) if pointer.certain else table


def _layer(part: Part) -> ResolvedLayer:
    return ResolvedLayer(part.path, part.delta_version, part.where)
