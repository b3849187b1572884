"""What an environment publishes: its rows, its pointers and the files below them."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable

from backfill_assets import read, resolve

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date

    from pyspark.sql import SparkSession

    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets_tests.stories.oracle import Row
    from backfill_assets_tests.stories.project import Project

KEYS = ("ds", "month_start", "channel", "campaign_id")


def rows(project: Project, model: str) -> list[Row]:
    """Read what prod publishes of a model, with another library than the product's."""
    path, version = resolve(model, settings=project.settings)
    table = DeltaTable(path, version=version).to_pyarrow_table().drop_columns("_cell")
    return in_order(table.to_pylist())


def rows_in(spark: SparkSession, project: Project, model: str, **where: str) -> list[Row]:
    """Read a model in an environment or in a plan: ``env=...`` or ``plan=...``."""
    found = read(model, spark=spark, settings=project.settings, **where)
    return in_order(row.asDict() for row in found.collect())


def in_order(found: Iterable[Row]) -> list[Row]:
    """Sort rows by their key."""
    return sorted(found, key=lambda row: tuple(str(row.get(name)).zfill(12) for name in KEYS))


@dataclass(frozen=True)
class Proof:
    """What is there of a model: equal proofs, and nothing was touched.

    Attributes:
        pointer: version and delta_version of prod.
        files: every file of the table, its log included, with a hash of its bytes.
        records: what the state records of the version's cells.
    """

    pointer: tuple[Any, ...]
    files: dict[str, str]
    records: tuple[Any, ...]


def proof(project: Project, model: str) -> Proof:
    """Note what is there of a model in prod."""
    [pointer] = ask(
        project,
        "SELECT version, delta_version FROM pointers WHERE environment = 'prod' AND model = ?",
        model,
    )
    path, _ = resolve(model, settings=project.settings)
    records = ask(
        project,
        "SELECT starts, valid_from, valid_to, built_at, batch_id, content, changed_at "
        "FROM ready_records WHERE version = ? ORDER BY 1, 2",
        pointer[0],
    )
    return Proof(pointer, files_of(path), tuple(records))


def files_of(folder: str | Path) -> dict[str, str]:
    """Hash every file below a folder."""
    folder = Path(folder)
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(Path(folder).rglob("*"))
        if file.is_file() and not file.name.endswith(".crc")
    }


def ask(project: Project, query: str, *values: object) -> list[tuple[Any, ...]]:
    """Ask the state, past the product."""
    url = f"file:{project.data / 'state.db'}?mode=ro"
    with closing(sqlite3.connect(url, uri=True)) as state:
        return state.execute(query, values).fetchall()


def batches_of(project: Project, *, plan: str | None = None) -> list[tuple[str, str, int]]:
    """List (model, status, days) of the batches of a plan, or of all, in order of their start."""
    where, values = ("WHERE plan_id = ?", (plan,)) if plan else ("", ())
    query = "SELECT model, status, (ends - starts) / 86400 FROM batches"
    return ask(project, f"{query} {where} ORDER BY started_at", *values)


def built_days(project: Project, model: str, plan: Plan) -> list[date]:
    """List the first days of the cells of a model that a plan has built, in order."""
    [(version,)] = ask(
        project,
        "SELECT DISTINCT version FROM batches WHERE plan_id = ? AND model = ?",
        plan.plan_id,
        model,
    )
    found = ask(
        project,
        "SELECT DISTINCT starts FROM ready_records WHERE version = ? AND batch_id IN "
        "(SELECT batch_id FROM batches WHERE plan_id = ?) ORDER BY 1",
        version,
        plan.plan_id,
    )
    return [datetime.fromtimestamp(start, UTC).date() for (start,) in found]


def tables_of(project: Project) -> list[str]:
    """List the folders of tables that lie in the data folder."""
    return sorted(folder.name for folder in (project.data / "tables").glob("*/*"))
