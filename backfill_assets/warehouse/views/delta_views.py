"""Views for engines that read Delta tables at a version: Spark by path, Trino by a registered name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlglot

from backfill_assets.warehouse.files.layers import parts_of
from backfill_assets.warehouse.files.tables import delta_schema
from backfill_assets.warehouse.log.places import local_folder
from backfill_assets.warehouse.views.published_views import (
    identifier,
    literal,
    null_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from backfill_assets.warehouse.files.layers import ResolvedLayer
    from backfill_assets.warehouse.views.published_views import PublishedView, PublishedViews

_SPARK, _TRINO = "spark", "trino"


def spark_statements(published: PublishedViews) -> Iterator[str]:
    """Write the statements that make all views in Spark.

    Raises:
        CorruptTableError: a table's log is damaged.
    """
    yield from published.schema_statements(_SPARK)
    yield from published.view_statements(_SPARK, lambda view: _selects(view, _SPARK, _in_spark))


def trino_statements(published: PublishedViews) -> Iterator[str]:
    """Write the statements that register all tables and make all views, in the session's catalogue.

    Raises:
        CorruptTableError: a table's log is damaged.
    """
    yield from published.schema_statements(_TRINO)
    registered = {
        (view.name.schema, view.versions[part.path]): part.path
        for view in published.views
        for part in parts_of(view.model.cadence, view.table)
    }
    for (schema, version), path in registered.items():
        given = {"schema_name": schema, "table_name": version, "table_location": _location(path)}
        named = (f"{name} => {literal(value, _TRINO)}" for name, value in given.items())
        yield f"CALL system.register_table({', '.join(named)})"
    yield from published.view_statements(_TRINO, lambda view: _selects(view, _TRINO, _in_trino))


def _selects(
    view: PublishedView, dialect: str, read: Callable[[PublishedView, ResolvedLayer], str]
) -> list[str]:
    parts = parts_of(view.model.cadence, view.table)
    return [_select(view, part, dialect, read(view, part)) for part in parts]


def _select(view: PublishedView, part: ResolvedLayer, dialect: str, source: str) -> str:
    """Write the query over one table; a column that was declared later is NULL in its rows."""
    names = {name for name, _ in delta_schema(part.path, part.delta_version)}
    columns = ", ".join(
        identifier(name, dialect)
        if name in names
        else f"{null_of(dtype, dialect)} AS {identifier(name, dialect)}"
        for name, dtype in view.columns.items()
    )
    where = sqlglot.transpile(part.where, read=_SPARK, write=dialect)[0]
    return f"SELECT {columns} FROM {source} WHERE {where}"  # noqa: S608 - quoted names


def _in_spark(_: PublishedView, part: ResolvedLayer) -> str:
    return f"delta.{identifier(part.path, _SPARK)} VERSION AS OF {part.delta_version}"


def _in_trino(view: PublishedView, part: ResolvedLayer) -> str:
    version = identifier(view.versions[part.path], _TRINO)
    schema = identifier(view.name.schema, _TRINO)
    return f"{schema}.{version} FOR VERSION AS OF {part.delta_version}"


def _location(path: str) -> str:
    folder = local_folder(path)
    return path if folder is None else f"file://{folder.absolute()}"
