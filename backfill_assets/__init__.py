"""backfill_assets: changing the history of data safely, on Dagster, Spark and Delta.

What an author of pipelines needs is here; each name is imported on first use, so that naming one
does not load Spark or Dagster.
"""

from __future__ import annotations

from importlib import import_module

_HOME = {
    "Column": "models.column",
    "Model": "models.model",
    "Source": "models.source",
    "TimeColumns": "models.source",
    "WhenEmpty": "models.source",
    "Upstream": "models.upstream",
    "Reopens": "models.upstream",
    "own_cells": "models.upstream",
    "SqlQuery": "models.query",
    "sql_file": "models.sql_file",
    "IncrementalByTimeRange": "models.kind",
    "IncrementalByUniqueKey": "models.kind",
    "Full": "models.kind",
    "SoftDelete": "models.kind",
    "Tombstone": "models.kind",
    "Hourly": "intervals",
    "Daily": "intervals",
    "Weekly": "intervals",
    "Monthly": "intervals",
    "Whole": "intervals",
    "Interval": "intervals.interval",
    "accepted_range": "models.audit",
    "accepted_values": "models.audit",
    "not_null": "models.audit",
    "reconciles": "models.audit",
    "references": "models.audit",
    "row_count_within": "models.audit",
    "row_rule": "models.audit",
    "unique": "models.audit",
    "build_definitions": "orchestration.building",
    "read": "reading",
    "resolve": "reading",
}

__all__ = sorted(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        message = f"module 'backfill_assets' has no attribute '{name}'"
        raise AttributeError(message)
    return getattr(import_module(f"backfill_assets.{_HOME[name]}"), name)
