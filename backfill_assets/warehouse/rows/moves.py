"""Find keys of a batch that its table already holds in a cell outside of the batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.errors import DeclarationError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.column import CELL_COLUMN, quoted
from backfill_assets.models.kind import IncrementalByUniqueKey, SoftDelete
from backfill_assets.warehouse.files.cells import (
    cell_of_number,
    number_expression,
    number_text,
)
from backfill_assets.warehouse.files.layers import outside, rows_of
from backfill_assets.warehouse.rows.json_rows import masked_columns
from backfill_assets.warehouse.spark.spark_errors import explaining_errors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.model import Model
    from backfill_assets.warehouse.files.tables import Table

_NAMED, _SAMPLE = 5, 3


def key_in_another_cell(model: Model, clashes: Sequence[Clash]) -> DeclarationError:
    """Name the cells outside the batch that hold keys of it, and a few of the keys."""
    cells = ", ".join(number_text(model.cadence, clash.cell) for clash in clashes[:_NAMED])
    keys = ", ".join(clash.key for clash in clashes[:_SAMPLE])
    return DeclarationError(
        found=f"'{model.name}' already holds keys of this batch in the cells {cells}"
        f"{'...' if len(clashes) > _NAMED else ''}, for example {keys}",
        expected="each key in one cell",
        do="Correct the source, or declare rows_move=True if a key may change its cell",
    )


@dataclass(frozen=True, slots=True)
class Clash:
    """A cell outside a batch that holds keys of it: the cell's number, and one of the keys as a sample shows it."""

    cell: int
    key: str


def cells_moved_from(
    computed: DataFrame, model: Model, cells: Sequence[Interval], target: Table
) -> tuple[Interval, ...]:
    """Find the cells outside the batch that hold keys of its rows: they belong to the batch too.

    Args:
        computed: the answer of `conform.contract`.
        model: whose rows they are.
        cells: of the batch.
        target: the table as it is now.

    Raises:
        DeclarationError: there are some, and the model's rows don't move.
    """
    clashes = keys_in_other_cells(computed, model, cells, target)
    if clashes and not (isinstance(model.kind, IncrementalByUniqueKey) and model.kind.rows_move):
        raise key_in_another_cell(model, clashes)
    return tuple(cell_of_number(model.cadence, clash.cell) for clash in clashes)


def without_overtaken(
    computed: DataFrame, model: Model, cells: Sequence[Interval], target: Table
) -> DataFrame:
    """Leave out computed rows of which another cell holds a later version, where rows may move.

    So what the table holds of a key does not depend on which cell was built last. Of equal versions that of
    the later cell is the later one, as in `conform.contract`. A row that is marked as deleted is no later version.

    Args:
        computed: the answer of `conform.contract`.
        model: whose rows they are.
        cells: of the batch.
        target: the table as it is now.
    """
    kind = model.kind
    if not isinstance(kind, IncrementalByUniqueKey) or not kind.rows_move or not kind.latest_by:
        return computed
    policy = model.delete_policy
    mark = (policy.column,) if isinstance(policy, SoftDelete) else ()
    others = rows_elsewhere(
        computed.sparkSession, model, cells, target, model.key, also=(kind.latest_by, *mark)
    )
    if others is None:
        return computed
    from pyspark.sql import functions as F  # noqa: PLC0415 - a tenth of a second that light commands must not pay

    latest = quoted(kind.latest_by)
    later = [f"old.{quoted(name)} = new.{quoted(name)}" for name in model.key]
    later.append(
        f"old.{latest} > new.{latest} OR (new.{latest} IS NULL AND old.{latest} IS NOT NULL) "
        f"OR (old.{latest} <=> new.{latest} AND old.{CELL_COLUMN} > new.{CELL_COLUMN})"
    )
    later += [f"NOT coalesce(old.{quoted(name)}, FALSE)" for name in mark]
    condition = F.expr(" AND ".join(f"({each})" for each in later))
    return computed.alias("new").join(others.alias("old"), condition, "left_anti")


def keys_in_other_cells(
    rows: DataFrame, model: Model, cells: Sequence[Interval], target: Table
) -> tuple[Clash, ...]:
    """Find where a table holds keys of these rows in cells other than these.

    Reads the key columns of the target's other cells, unless the key contains the time column or
    the model does not merge.
    """
    if not isinstance(model.kind, IncrementalByUniqueKey):
        return ()
    others = rows_elsewhere(rows.sparkSession, model, cells, target, model.key)
    if others is None:
        return ()
    return clashes_with(rows, others, model, model.key, target.path)


def clashes_with(
    rows: DataFrame, others: DataFrame, model: Model, columns: Sequence[str], path: str
) -> tuple[Clash, ...]:
    """Find the cells of other rows that hold values of these ones.

    Args:
        rows: whose values are looked for.
        others: an answer of `rows_elsewhere`.
        model: whose rows they are.
        columns: whose values are compared; a NULL equals nothing.
        path: of the table, for an error's text.
    """
    keys = [quoted(name) for name in columns]
    number = number_expression(model.cadence)
    written = ", ".join(masked_columns(columns, model.shown))
    clashing = others.join(rows.select(*keys), list(columns), "left_semi")
    with explaining_errors(path):
        by_cell = (
            clashing.selectExpr(f"{number} AS cell", f"to_json(struct({written})) AS key")
            .groupBy("cell")
            .agg({"key": "min"})
            .orderBy("cell")
            .collect()
        )
    return tuple(Clash(row[0], row[1]) for row in by_cell)


def rows_elsewhere(
    spark: SparkSession,
    model: Model,
    cells: Sequence[Interval],
    target: Table,
    columns: Sequence[str],
    also: Sequence[str] = (),
) -> DataFrame | None:
    """Read some columns and `_cell` of a table's cells outside these; None where no clash can be.

    Equal time columns mean equal cells, so columns with the time column among them can't clash
    with another cell.
    """
    if not target.exists or model.time_column is None or model.time_column in columns:
        return None
    rows = rows_of(spark, model, outside(target, IntervalSet.of(cells)))
    return rows.select(*(quoted(name) for name in dict.fromkeys((*columns, *also))), "_cell")
