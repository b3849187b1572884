"""Changes: which rows a merge must update, insert and delete to make cells equal to given rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from backfill_assets.models.column import quoted
from backfill_assets.models.model import CELL_COLUMN
from backfill_assets.warehouse.cells import cells_predicate
from backfill_assets.warehouse.checksum import same_value
from backfill_assets.warehouse.quoting import table_at
from backfill_assets.warehouse.stored_columns import stored_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.model import Model

CHANGE_COLUMN = "_change"


def changes(rows: DataFrame, held: DataFrame, model: Model) -> DataFrame:
    """Compare rows with what a table holds in the same cells; equal rows are left out.

    Returns:
        The new row (the old one where it goes away) with `_change`: insert, update or delete.
    """
    columns = [*stored_columns(model), CELL_COLUMN]
    new = rows.select(*map(quoted, columns)).withColumn("_there", F.lit(1)).alias("new")
    old = held.select(*map(quoted, columns)).withColumn("_there", F.lit(1)).alias("old")
    same_row = " AND ".join(f"old.{quoted(one)} <=> new.{quoted(one)}" for one in _identity(model))
    equal = " AND ".join(
        same_value(f"old.{quoted(one)}", f"new.{quoted(one)}", rows.schema[one].dataType)
        for one in columns
    )
    change = (
        "CASE WHEN old._there IS NULL THEN 'insert' WHEN new._there IS NULL THEN 'delete' "
        f"WHEN NOT ({equal}) THEN 'update' END"
    )
    values = [
        F.expr(f"IF(new._there IS NULL, old.{quoted(one)}, new.{quoted(one)})").alias(one)
        for one in columns
    ]
    compared = new.join(old, F.expr(same_row), "full_outer")
    return compared.select(*values, F.expr(change).alias(CHANGE_COLUMN)).where(
        f"{CHANGE_COLUMN} IS NOT NULL"
    )


def merge_statement(view: str, model: Model, cells: Sequence[Interval], path: str) -> str:
    """Write the MERGE that applies the changes.

    Its condition names the cells, so that Delta reads only their files; a clause for rows that the
    source does not match would make it read them all, which is why deletions are changes too.
    """
    columns = [*stored_columns(model), CELL_COLUMN]
    same_row = " AND ".join(f"t.{quoted(one)} <=> s.{quoted(one)}" for one in _identity(model))
    inside = cells_predicate(model.cadence, cells, f"t.{CELL_COLUMN}")
    updated = ", ".join(f"t.{quoted(one)} = s.{quoted(one)}" for one in columns)
    names, values = (
        ", ".join(f"{prefix}{quoted(one)}" for one in columns) for prefix in ("", "s.")
    )
    inserted = f"INSERT ({names}) VALUES ({values})"  # noqa: S608 - our own declarations' names
    clauses = (
        f"MERGE INTO {table_at(path)} t",
        f"USING {view} s ON {same_row} AND ({inside})",
        f"WHEN MATCHED AND s.{CHANGE_COLUMN} = 'delete' THEN DELETE",
        f"WHEN MATCHED AND s.{CHANGE_COLUMN} = 'update' THEN UPDATE SET {updated}",
        f"WHEN NOT MATCHED AND s.{CHANGE_COLUMN} = 'insert' THEN {inserted}",
    )
    return " ".join(clauses)


def _identity(model: Model) -> tuple[str, ...]:
    return (*model.key, CELL_COLUMN)
