"""Quote paths inside of Spark SQL."""

from __future__ import annotations

from backfill_assets.models.column import quoted


def table_at(path: str) -> str:
    """Name the Delta table at a path, which may hold any character."""
    return f"delta.{quoted(path)}"
