"""Conform a query's result to the model's contract: the rows that a batch's cells will hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.errors import DeclarationError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.column import CELL_COLUMN, all_given, quoted
from backfill_assets.models.kind import (
    IncrementalByUniqueKey,
    SoftDelete,
    Tombstone,
)
from backfill_assets.warehouse.files.cells import cell_expression, cells_predicate
from backfill_assets.warehouse.files.layers import rows_of
from backfill_assets.warehouse.files.stored_columns import column_changes
from backfill_assets.warehouse.rows.checksum import key_hash, same_value

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pyspark.sql import Column, DataFrame, SparkSession

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.model import Model
    from backfill_assets.warehouse.files.stored_columns import ColumnChanges
    from backfill_assets.warehouse.files.tables import Table


def _unlike_declared(model: str, changes: ColumnChanges, extra: list[str]) -> DeclarationError:
    differences = "; ".join(
        f"{word} {', '.join(names)}"
        for word, names in (
            ("without", changes.added),
            ("with undeclared", extra),
            ("with other types:", changes.retyped),
        )
        if names
    )
    return DeclarationError(
        found=f"the query of '{model}' gave rows {differences}",
        expected="exactly the declared columns",
        do="Cast or rename in the query, or change the declaration",
    )


@dataclass(frozen=True, slots=True)
class RowStamp:
    """The values of the audit columns of rows that are written now.

    Attributes:
        plan_id: the plan served; None for a gap fill.
        batch_id: the batch that writes.
        code_version: the snapshot's fingerprint.
        now: when.
    """

    plan_id: str | None
    batch_id: str
    code_version: str
    now: datetime


def contract(computed: DataFrame, model: Model) -> DataFrame:
    """Select the declared columns in order, with `_cell`; of rows with one key keep the latest.

    Tombstones are still among the rows.

    Raises:
        DeclarationError: columns are missing, extra or of another type.
        DeclarationError: the time column can't name a cell on the model's grid.
    """
    types = dict(computed.dtypes)
    declared = {column.name: column.dtype for column in model.schema}
    changes = column_changes(declared, types)
    extra = [name for name in types if name not in declared]
    if changes.added or extra or changes.retyped:
        raise _unlike_declared(model.name, changes, extra)
    time = model.time_column or ""
    cell = cell_expression(time, types.get(time, ""), model.cadence)
    return _latest(computed.selectExpr(*map(quoted, declared), f"{cell} AS {CELL_COLUMN}"), model)


def without_cells(rows: DataFrame, model: Model, cells: IntervalSet) -> DataFrame:
    """Leave out the rows of some cells; rows of no cell stay, to be refused."""
    if not cells:
        return rows
    return rows.where(f"NOT coalesce({cells_predicate(model.cadence, cells)}, FALSE)")


def result_rows(  # noqa: PLR0913, PLR0917 - the parts of the rows
    computed: DataFrame,
    model: Model,
    cells: Sequence[Interval],
    target: Table,
    stamp: RowStamp,
    moved_from: Sequence[Interval] = (),
    only_history: DataFrame | None = None,
) -> DataFrame:
    """Give the rows that the cells will hold: the computed ones, after the model's delete policy.

    With `deletes="none"` and `SoftDelete` missing keys stay (the latter marked); with
    `Tombstone` only a computed tombstone deletes. Rows keep their audit columns while they don't
    change.

    Args:
        computed: the answer of `contract`.
        model: whose rows they are.
        cells: that were computed.
        target: the table as it is now.
        stamp: for rows that are new or changed.
        moved_from: further cells of the batch, which keep their rows but for the computed keys.
        only_history: rows that are kept beside those of the target; see `kept_rows.only_in_history`.
    """
    spark = computed.sparkSession
    rows = computed
    if only_history is not None:
        rows = rows.unionByName(_marked(only_history.select(*_contract_columns(model)), model))
    if model.keeps_rows and (kept := rows_in_cells(spark, model, cells, target)) is not None:
        # A row whose key is NULL can't be told from a computed one.
        known = kept.where(all_given(model.key))
        rows = rows.unionByName(_marked(_absent(known, computed, model), model))
    if moved_from and (moved_rows := rows_in_cells(spark, model, moved_from, target)) is not None:
        rows = rows.unionByName(_absent(moved_rows, computed, model))
    if isinstance(model.delete_policy, Tombstone):
        rows = _without_tombstones(rows, model, model.delete_policy)
    if not model.audit_columns:
        return rows
    before = rows_in_cells(spark, model, (*cells, *moved_from), target)
    if only_history is not None:
        before = only_history if before is None else before.unionByName(only_history)
    return _stamped(rows, before, model, stamp)


def rows_in_cells(
    spark: SparkSession, model: Model, cells: Sequence[Interval], target: Table
) -> DataFrame | None:
    """Read the rows of these cells in a table; None for a table that does not exist yet."""
    return rows_of(spark, model, target, IntervalSet.of(cells)) if target.exists else None


_RANK, _BESIDE = "_rank of a row", "_has a row beside it"


def _latest(rows: DataFrame, model: Model) -> DataFrame:
    from pyspark.sql import Window, functions as F  # noqa: PLC0415 - a tenth of a second that light commands must not pay

    if not isinstance(model.kind, IncrementalByUniqueKey) or model.kind.latest_by is None:
        return rows
    everything = key_hash([column.name for column in model.schema], rows.schema)
    order = Window.partitionBy(*map(quoted, model.key)).orderBy(
        F.col(quoted(model.kind.latest_by)).desc_nulls_last(),
        F.col(CELL_COLUMN).desc_nulls_last(),
        F.expr(everything),
    )
    latest = f"{quoted(_RANK)} = 1 OR NOT ({all_given(model.key)})"  # a NULL is no key
    return rows.withColumn(_RANK, F.row_number().over(order)).where(latest).drop(_RANK)


def _absent(before: DataFrame, computed: DataFrame, model: Model) -> DataFrame:
    """Rows of the table whose keys were not computed; a NULL equals nothing."""
    keys = computed.select(*map(quoted, model.key))
    return before.select(*_contract_columns(model)).join(keys, list(model.key), "left_anti")


def _without_tombstones(rows: DataFrame, model: Model, policy: Tombstone) -> DataFrame:
    """Leave out tombstones.

    Where nothing says which of a key's rows is the latest, a tombstone beside another row stays: the audit of the key
    then refuses both.
    """
    is_row = f"NOT coalesce({quoted(policy.column)}, FALSE)"
    if isinstance(model.kind, IncrementalByUniqueKey) and model.kind.latest_by is not None:
        return rows.where(is_row)
    keys, columns = [*map(quoted, model.key)], [*map(quoted, rows.columns)]
    has_row = f"max({is_row}) OVER (PARTITION BY {', '.join(keys)}) AS {quoted(_BESIDE)}"
    stays = f"({is_row}) OR ({quoted(_BESIDE)} AND {all_given(model.key)})"
    return rows.selectExpr(*columns, has_row).where(stays).select(*columns)


def _marked(gone: DataFrame, model: Model) -> DataFrame:
    if not isinstance(model.delete_policy, SoftDelete):
        return gone
    mark = model.delete_policy.column
    names = (name for name in gone.columns if name != mark)
    return gone.selectExpr(*map(quoted, names), f"TRUE AS {quoted(mark)}")


def _contract_columns(model: Model) -> list[str]:
    return [*(quoted(column.name) for column in model.schema), CELL_COLUMN]


def _stamped(rows: DataFrame, before: DataFrame | None, model: Model, stamp: RowStamp) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: PLC0415

    fresh = {
        "_plan_id": F.lit(stamp.plan_id).cast("string"),
        "_batch_id": F.lit(stamp.batch_id),
        "_code_version": F.lit(stamp.code_version),
        "_inserted_at": F.lit(stamp.now).cast("timestamp"),
        "_updated_at": F.lit(stamp.now).cast("timestamp"),
    }
    if before is None:
        return rows.select("*", *(value.alias(name) for name, value in fresh.items()))
    return _stamped_against(rows, before, model, fresh)


def _stamped_against(
    rows: DataFrame, before: DataFrame, model: Model, fresh: dict[str, Column]
) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: PLC0415

    types = rows.schema
    old, new = before.alias("old"), rows.alias("new")
    # A row whose key is NULL can't be told from another one: it is stamped as new.
    same_key = [F.expr(f"old.{quoted(name)} = new.{quoted(name)}") for name in model.key]
    equal = " AND ".join(
        same_value(f"old.{quoted(name)}", f"new.{quoted(name)}", types[name].dataType)
        for name in types.names
    )
    is_stored = F.expr(f"old.{CELL_COLUMN} IS NOT NULL")
    unchanged = is_stored & F.expr(equal)
    stamps = [
        F.when(is_stored if name == "_inserted_at" else unchanged, F.col(f"old.{name}"))
        .otherwise(value)
        .alias(name)
        for name, value in fresh.items()
    ]
    return new.join(old, same_key, "left").select("new.*", *stamps)
