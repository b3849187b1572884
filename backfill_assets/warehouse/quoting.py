"""Paths inside of Spark SQL."""

from __future__ import annotations

from backfill_assets.models.column import quoted


def table_at(path: str) -> str:
    """Name the Delta table that lies at a path, whatever is in it."""
    return f"delta.{quoted(path)}"
