"""The three models as a SQLMesh project: its files, written anew for each edit."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from benchmarks.peer import subject
from benchmarks.plain_spark import plain_spark

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.peer.subject import Query, Size

GATEWAY = "spark"
_WINDOW = "event_date BETWEEN @start_date AND @end_date"


def write_project(folder: Path, size: Size, edit: str) -> None:
    """Write all files of the project, as they are after an edit."""
    models = folder / "models"
    models.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(json.dumps(_config(folder, size)))  # JSON is YAML, too
    external = {"name": subject.SOURCE, "columns": dict(subject.SOURCE_COLUMNS)}
    (folder / "external_models.yaml").write_text(json.dumps([external]))
    for name, text in _models(size, edit).items():
        (models / f"{name}.sql").write_text(text)


def warehouse(folder: Path) -> Path:
    """The folder below which SQLMesh's tables lie."""
    return folder / "warehouse"


def _config(folder: Path, size: Size) -> dict[str, object]:
    state = {"type": "duckdb", "database": str(folder / "state.duckdb")}
    gateway = {"connection": {"type": "spark", "config": _spark(folder)}, "state_connection": state}
    defaults = {"dialect": "spark", "start": str(size.first_day), "storage_format": "delta"}
    return {
        "gateways": {GATEWAY: gateway},
        "default_gateway": GATEWAY,
        "model_defaults": defaults,
        "disable_anonymized_analytics": True,
        "plan": {"auto_categorize_changes": {"sql": "full"}},
    }


def _spark(folder: Path) -> dict[str, str]:
    metastore = f"jdbc:derby:;databaseName={folder / 'metastore'};create=true"
    return {
        **plain_spark(str(warehouse(folder))),
        "spark.sql.sources.default": "delta",
        "spark.hadoop.javax.jdo.option.ConnectionURL": metastore,
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder}",
    }


def _models(size: Size, edit: str) -> dict[str, str]:
    return {
        "performance": _model(
            subject.PERFORMANCE,
            _by_time("event_date", subject.BATCH_DAYS),
            f"start '{size.first_day}', cron '@daily', partitioned_by (event_date),"
            " audits (not_null(columns := (campaign_id, event_date)))",
            subject.performance(edit, _WINDOW),
        ),
        "trends": _model(
            subject.TRENDS,
            _by_time("month_start", subject.BATCH_MONTHS),
            f"start '{size.first_month}', cron '@monthly', partitioned_by (month_start)",
            subject.trends(_WINDOW),
        ),
        "roi": _model(
            subject.ROI, "FULL", f"start '{size.first_day}', cron '@daily'", subject.roi()
        ),
    }


def _by_time(column: str, cells: int) -> str:
    return f"INCREMENTAL_BY_TIME_RANGE (time_column ({column}, '%Y-%m-%d'), batch_size {cells})"


def _model(name: str, kind: str, options: str, query: Query) -> str:
    columns = ", ".join(f"{column} {dtype}" for column, dtype in query.columns)
    head = f"MODEL (name {name}, kind {kind}, {options}, columns ({columns}));"
    return f"{head}\n{query.sql}\n"
