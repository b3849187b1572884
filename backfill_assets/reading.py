"""Read what is published, or what a plan would publish: resolve a model, or read it with Spark.

`resolve` starts nothing: any reader of Delta tables can take it from there.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple, overload

from backfill_assets.errors import BackfillAssetsError, RequestError
from backfill_assets.settings import Settings, read_settings
from backfill_assets.snapshots.environment import PROD, plan_of, workspace_name
from backfill_assets.snapshots.snapshot import stored_model
from backfill_assets.state.environments import UnknownEnvironmentError
from backfill_assets.state.store import Store
from backfill_assets.warehouse.files.layers import (
    EVERY_ROW,
    ResolvedLayer,
    parts_of,
    table_read,
)
from backfill_assets.warehouse.files.tables import refuse_tables_without_state
from backfill_assets.warehouse.rows.reading import read_pinned
from backfill_assets.warehouse.spark.session import spark_settings, start_session

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from backfill_assets.models.model import Model
    from backfill_assets.snapshots.publication import PointerMove
    from backfill_assets.warehouse.files.tables import Table


class NotPublishedError(BackfillAssetsError):
    """An environment publishes nothing of a model."""

    def __init__(self, model: str, env: str, known: tuple[str, ...], do: str) -> None:
        self.model, self.env = model, env
        listed = ", ".join(known) or "nothing yet"
        super().__init__(
            f"environment '{env}' publishes nothing of '{model}' (it has: {listed}); {do}"
        )


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
        return (ResolvedLayer(self.path, self.delta_version, EVERY_ROW),)


class ResolvedLayers(NamedTuple):
    """Where a model can be read that is made up of several tables.

    So it is in a plan that rebuilds some cells of a table, and in an environment that follows
    another one: what was built there comes from a table of its own, all else from those under it.
    It does not unpack like a `Resolved`, so that a part is not read as the whole.

    Example:
        As one query, whether it takes one table or several::

            found = resolve("marketing.campaign_performance", plan="p1a2b3c4d5")
            parts = (
                f"SELECT ds, campaign_id, cost FROM delta.`{layer.path}` "
                f"VERSION AS OF {layer.delta_version} WHERE {layer.where}"
                for layer in found.layers
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
        RequestError: the plan has built nothing yet, or has ended.
    """
    return published(env, plan=plan, settings=settings).resolve(model)


def _resolved(declared: Model, table: Table) -> Resolved | ResolvedLayers:
    top, *under = parts_of(declared.cadence, table)
    if not under and top.where == EVERY_ROW:
        return Resolved(top.path, top.delta_version)
    return ResolvedLayers(*top, tuple(under))


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
        RequestError: the plan has built nothing yet, or has ended.
    """
    return published(env, plan=plan, settings=settings).read(model, spark=spark)


@dataclass(frozen=True, slots=True)
class Published:
    """What an environment, or a plan, reads of all models at one moment: a consistent set.

    No promotion comes between two models of it. What it names stays readable for a day after it was
    replaced, when `backfill gc` may delete it.

    Attributes:
        env: the environment, or a plan's workspace.
        number: the state's counter then: a larger one is later.
        models: what can be read, by name.
    """

    env: str
    number: int
    models: tuple[str, ...]
    _found: Mapping[str, tuple[str, Table]]
    _settings: Settings

    def resolve(self, model: str) -> Resolved | ResolvedLayers:
        """Find the table and the pin of a model.

        Raises:
            NotPublishedError: there is none.
        """
        return _resolved(*self._table(model))

    def read(self, model: str, *, spark: SparkSession | None = None) -> DataFrame:
        """Read a model with Spark; without a session, one is started with this project's settings.

        Raises:
            NotPublishedError: there is none.
        """
        declared, table = self._table(model)
        return read_pinned(spark or start_session(spark_settings(self._settings)), declared, table)

    def _table(self, model: str) -> tuple[Model, Table]:
        if model not in self._found:
            with _opened(self._settings) as store:
                do = _instead(store, self.env, model)
            raise NotPublishedError(model, self.env, self.models, do)
        definition, table = self._found[model]
        return stored_model(definition), table


def published(
    env: str = PROD,
    *,
    plan: str | None = None,
    consumer: str | None = None,
    settings: Settings | None = None,
) -> Published:
    """Look once at all that an environment, or a plan, reads; any number of models is read from it.

    Args:
        env: the environment.
        plan: a plan that is not promoted yet: what its environment would read after it. Cells that
            it has still to build are empty.
        consumer: who reads: while `backfill hold` keeps this consumer at an earlier publication, its models at
            those pins and nothing else; else what `env` publishes. A name that no hold has is not held.
        settings: where things lie; None reads the environment.

    Raises:
        UnknownEnvironmentError: there is no environment of that name.
        UnknownPlanError: there is no such plan.
        RequestError: the plan has built nothing yet, or has ended.
    """
    settings = settings or read_settings()
    with _opened(settings) as store:
        if plan is not None:
            return _built(store, plan, settings)
        return published_to(store, env, consumer, settings)


def published_to(store: Store, env: str, consumer: str | None, settings: Settings) -> Published:
    """Look once at all that a consumer reads of an environment, in an open state; None: all others.

    Raises:
        UnknownEnvironmentError: there is no environment of that name.
    """
    name = env if consumer is None else store.holds.read_by(consumer, env)
    return _looked(store, name, settings)


def _built(store: Store, plan: str, settings: Settings) -> Published:
    try:
        return _looked(store, workspace_name(store.plans.get(plan).plan_id), settings)
    except UnknownEnvironmentError as error:
        stored = store.plans.get(plan)  # it may have ended since
        raise RequestError(
            found=f"plan {stored.plan_id} is {stored.status}, so there is nothing of its own to "
            "read",
            do=f"read environment '{stored.environment}', or build the plan with `backfill "
            f"apply {stored.plan_id}`",
        ) from error


def _looked(store: Store, name: str, settings: Settings) -> Published:
    number, models = store.views.published(name)
    tables = {
        model: (each.definition, table_read(each.tables, store.located, each.pointer.certain))
        for model, each in models.items()
    }
    readable = {model: each for model, each in tables.items() if each[1].exists}
    return Published(name, number, tuple(readable), readable, settings)


def _instead(store: Store, env: str, model: str) -> str:
    """Say how a model comes to be published in an environment, or what took it away."""
    last = _last_move(store, env, model)
    if last is not None and last.new is None:
        return (
            f"plan {last.plan_id} has taken it away ({last.kind}): see `backfill history {model}`"
        )
    if plan_of(env) is not None or store.holds.of_environment(env) is not None:
        return "correct the name"
    at = store.environments.pointers(env).get(model)
    filled = env if at is None else at.environment
    option = "" if filled == PROD else f" --env {filled}"
    return f"fill it with `backfill run{option} --select {model}`, or correct the name"


def _last_move(store: Store, env: str, model: str) -> PointerMove | None:
    """Give the last move of what an environment reads of a model; None where no plan has ever moved it."""
    own = (move for move in store.history.moves_in(env) if move.model == model)
    follows = store.environments.get(env).follows
    followed = _last_move(store, follows, model) if follows else None
    return max(filter(None, (*own, followed)), key=lambda move: move.number, default=None)


def absent_state(settings: Settings) -> str | None:
    """Name the place where a new state would begin; None where there is one. Nothing is made.

    Raises:
        TablesWithoutStateError: there is none, but tables that one has written.
    """
    absent = Store.absent(settings.state)
    if absent is not None:
        refuse_tables_without_state(absent, settings.data_root)
    return absent


@contextmanager
def _opened(settings: Settings) -> Iterator[Store]:
    opened = Store.empty if absent_state(settings) else partial(Store.open, settings.state)
    with opened(clock=_now, data_root=settings.data_root) as store:
        yield store


def _now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - for a lease that is never taken
