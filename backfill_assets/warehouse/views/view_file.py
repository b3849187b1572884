"""The file of all views, written whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.settings import Dialect
from backfill_assets.warehouse.files.text_folder import replace_whole
from backfill_assets.warehouse.views.delta_views import spark_statements, trino_statements
from backfill_assets.warehouse.views.duckdb_views import duckdb_statements

if TYPE_CHECKING:
    from pathlib import Path

    from backfill_assets.warehouse.views.published_views import PublishedViews

_STATEMENTS = {
    Dialect.DUCKDB: duckdb_statements,
    Dialect.SPARK: spark_statements,
    Dialect.TRINO: trino_statements,
}


def views_sql(dialect: Dialect, published: PublishedViews) -> str:
    """Write all views in a dialect.

    Raises:
        CorruptTableError: a table's log is damaged.
    """
    statements = "".join(f"{statement};\n" for statement in _STATEMENTS[dialect](published))
    return f"{published.heading}\n{statements}"


def replace_file(path: Path, text: str) -> None:
    """Replace a file in one step: a reader finds the old text or the new one.

    Raises:
        OSError: it can't be written; what was there is as it was.
    """
    replace_whole(path, text.encode(), mode=0o666)
