"""backfill_assets: changing the history of data safely, on Dagster, Spark and Delta.

What an author of pipelines needs is here; each name is imported on first use, so that naming one
does not load Spark or Dagster.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backfill_assets.intervals.cadence import Daily, Hourly, Monthly, Weekly, Whole
    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.audit import (
        accepted_range,
        accepted_values,
        complete,
        distinct_within,
        fresh,
        known_rows,
        metric_within,
        not_null,
        percentile_within,
        python_audit,
        reconciles,
        references,
        row_count_within,
        row_rule,
        sql_audit,
        total_within,
        trend_within,
        unique,
    )
    from backfill_assets.models.column import Column
    from backfill_assets.models.consumer import (
        CheckQuery,
        Consumer,
        ConsumerKind,
        Evaluation,
        OnChange,
        Reading,
    )
    from backfill_assets.models.dbt_exposures import dbt_exposures
    from backfill_assets.models.key_ranges import KeyRanges
    from backfill_assets.models.kind import (
        Full,
        IncrementalByTimeRange,
        IncrementalByUniqueKey,
        SoftDelete,
        Tombstone,
    )
    from backfill_assets.models.model import Model
    from backfill_assets.models.python.function_query import function_query
    from backfill_assets.models.source import Source, TimeColumns, WhenEmpty
    from backfill_assets.models.sql.query import SqlQuery
    from backfill_assets.models.sql.sql_file import sql_file
    from backfill_assets.models.upstream import Reopens, Upstream, own_cells
    from backfill_assets.orchestration.building import build_definitions
    from backfill_assets.orchestration.component import BackfillProject
    from backfill_assets.reading import published, read, resolve

__all__ = [
    "BackfillProject",
    "CheckQuery",
    "Column",
    "Consumer",
    "ConsumerKind",
    "Daily",
    "Evaluation",
    "Full",
    "Hourly",
    "IncrementalByTimeRange",
    "IncrementalByUniqueKey",
    "Interval",
    "KeyRanges",
    "Model",
    "Monthly",
    "OnChange",
    "Reading",
    "Reopens",
    "SoftDelete",
    "Source",
    "SqlQuery",
    "TimeColumns",
    "Tombstone",
    "Upstream",
    "Weekly",
    "WhenEmpty",
    "Whole",
    "accepted_range",
    "accepted_values",
    "build_definitions",
    "complete",
    "dbt_exposures",
    "distinct_within",
    "fresh",
    "function_query",
    "known_rows",
    "metric_within",
    "not_null",
    "own_cells",
    "percentile_within",
    "published",
    "python_audit",
    "read",
    "reconciles",
    "references",
    "resolve",
    "row_count_within",
    "row_rule",
    "sql_audit",
    "sql_file",
    "total_within",
    "trend_within",
    "unique",
]

_HOME = {
    "BackfillProject": "orchestration.component",
    "CheckQuery": "models.consumer",
    "Evaluation": "models.consumer",
    "Column": "models.column",
    "Consumer": "models.consumer",
    "ConsumerKind": "models.consumer",
    "Daily": "intervals.cadence",
    "Full": "models.kind",
    "Hourly": "intervals.cadence",
    "IncrementalByTimeRange": "models.kind",
    "IncrementalByUniqueKey": "models.kind",
    "Interval": "intervals.interval",
    "KeyRanges": "models.key_ranges",
    "Model": "models.model",
    "Monthly": "intervals.cadence",
    "OnChange": "models.consumer",
    "Reading": "models.consumer",
    "Reopens": "models.upstream",
    "SoftDelete": "models.kind",
    "Source": "models.source",
    "SqlQuery": "models.sql.query",
    "TimeColumns": "models.source",
    "Tombstone": "models.kind",
    "Upstream": "models.upstream",
    "Weekly": "intervals.cadence",
    "WhenEmpty": "models.source",
    "Whole": "intervals.cadence",
    "accepted_range": "models.audit",
    "accepted_values": "models.audit",
    "build_definitions": "orchestration.building",
    "complete": "models.audit",
    "dbt_exposures": "models.dbt_exposures",
    "distinct_within": "models.audit",
    "fresh": "models.audit",
    "function_query": "models.python.function_query",
    "known_rows": "models.audit",
    "metric_within": "models.audit",
    "not_null": "models.audit",
    "own_cells": "models.upstream",
    "percentile_within": "models.audit",
    "published": "reading",
    "python_audit": "models.audit",
    "read": "reading",
    "reconciles": "models.audit",
    "references": "models.audit",
    "resolve": "reading",
    "row_count_within": "models.audit",
    "row_rule": "models.audit",
    "sql_audit": "models.audit",
    "sql_file": "models.sql.sql_file",
    "total_within": "models.audit",
    "trend_within": "models.audit",
    "unique": "models.audit",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        message = f"module 'backfill_assets' has no attribute '{name}'"
        raise AttributeError(message)
    return getattr(import_module(f"backfill_assets.{_HOME[name]}"), name)
