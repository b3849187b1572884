"""Views for DuckDB over the very files of the published versions: no extension reads the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlglot

from backfill_assets.warehouse.files.layers import files_of_parts
from backfill_assets.warehouse.log.places import local_folder
from backfill_assets.warehouse.views.published_views import identifier, literal, nothing_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.warehouse.files.layers import PartFiles
    from backfill_assets.warehouse.views.published_views import PublishedView, PublishedViews

_DIALECT = "duckdb"
_GLOB = str.maketrans({sign: f"[{sign}]" for sign in "*?["})


def duckdb_statements(published: PublishedViews) -> Iterator[str]:
    """Write the statements that make all views, in one transaction.

    Raises:
        CorruptTableError: a table's log is damaged.
    """
    yield "BEGIN TRANSACTION"
    yield from published.schema_statements(_DIALECT)
    yield from published.view_statements(_DIALECT, _selects)
    yield "COMMIT"


def _selects(view: PublishedView) -> list[str]:
    parts = files_of_parts(view.model.cadence, view.table)
    return [_select(view, part) for part in parts if part.files]


def _select(view: PublishedView, part: PartFiles) -> str:
    """Write the query over the files of one table.

    The query without rows gives every column and its type, also one that no file has yet.
    """
    paths = ", ".join(literal(_pattern(part.path, file), _DIALECT) for file in part.files)
    columns = ", ".join(identifier(name, _DIALECT) for name in view.columns)
    typed = view.columns if part.where is None else view.typed_columns
    where = "" if part.where is None else f"\nWHERE {_condition(part.where)}"
    return (
        f"SELECT {columns} FROM (\n"  # noqa: S608 - quoted names
        f"{nothing_of(typed, _DIALECT)}\nUNION ALL BY NAME\n"
        f"SELECT * FROM read_parquet([{paths}], union_by_name = true, hive_partitioning = false)"
        f"\n){where}"
    )


def _pattern(path: str, file: str) -> str:
    """Write the pattern that matches one file alone."""
    folder = local_folder(path)
    root = path.rstrip("/") if folder is None else str(folder.absolute())
    return f"{root}/{file}".translate(_GLOB)


def _condition(where: str) -> str:
    return sqlglot.transpile(where, read="spark", write=_DIALECT)[0]
