"""Plant a defect in a copy of rows; the tables that they come from stay as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.models.column import CELL_COLUMN, is_numeric, quoted, sql_literal
from backfill_assets.models.planted import Defect
from backfill_assets.warehouse.files.cells import cell_expression, cell_text
from backfill_assets.warehouse.rows.conform import RowStamp, contract, result_rows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pyspark.sql import DataFrame

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.model import Model
    from backfill_assets.models.planted import Planted
    from backfill_assets.warehouse.files.tables import Table

_HOURS = 2


def planted_rows(  # noqa: C901, PLR0911 - one case for each defect
    rows: DataFrame, model: Model, planted: Planted, cell: Interval
) -> DataFrame:
    """Give rows with a defect in one cell, the same ones each time.

    Args:
        rows: of some cells, with `_cell`; their content does not depend on when they are read.
        model: whose rows they are.
        planted: the defect.
        cell: where it is planted.
    """
    kind = dict(rows.dtypes)[CELL_COLUMN]
    inside = f"{CELL_COLUMN} = CAST('{cell_text(model.cadence, cell)}' AS {kind})"
    share = f"xxhash64({', '.join(map(quoted, model.key))})"
    half = f"{inside} AND pmod({share}, 2) = 0"
    match planted.defect:
        case Defect.DUPLICATED:
            return rows.unionByName(rows.where(inside))
        case Defect.FANNED_OUT:
            return rows.unionByName(_altered(rows.where(inside), model))
        case Defect.DROPPED:
            return rows.where(f"NOT ({inside})")
        case Defect.HALVED:
            return rows.where(f"NOT ({half})")
        case Defect.STOPPED:
            middle = cell.start + cell.duration / 2
            late = f"{quoted(model.time_column or '')} >= {sql_literal(middle)}"
            return rows.where(f"NOT ({inside} AND {late})")
        case Defect.SHIFTED:
            return _shifted(rows, model, share)
        case Defect.DOUBLED:
            return _with(
                rows,
                planted.column,
                _if_it_fits(rows, planted.column, "try_multiply(2, {0})", inside),
            )
        case Defect.NEGATED:
            return _with(
                rows,
                planted.column,
                _if_it_fits(rows, planted.column, "try_multiply(-1, {0})", inside),
            )
        case Defect.EMPTIED:
            return _with(rows, planted.column, f"IF({inside}, NULL, {{0}})")
        case Defect.MOVED:
            later = _later("{0}", dict(rows.dtypes)[planted.column], share)
            return _with(rows, planted.column, f"IF({inside}, {later}, {{0}})")


def rows_of_batch(
    planted: DataFrame, model: Model, cells: Sequence[Interval], target: Table, now: datetime
) -> DataFrame:
    """Give the rows that a batch would write whose query answered with these.

    A merge may keep other rows than it computes: the latest of a key, and keys that were not computed.

    Args:
        planted: the answer of `planted_rows`.
        model: whose rows they are.
        cells: of the batch.
        target: the table that the rows were copied from.
        now: the time of new rows' audit columns.
    """
    computed = planted.select(*(quoted(column.name) for column in model.schema))
    stamp = RowStamp(plan_id=None, batch_id="", code_version="", now=now)
    return result_rows(contract(computed, model), model, cells, target, stamp)


def _with(rows: DataFrame, column: str, value: str) -> DataFrame:
    """Replace a column by a value, of the same type."""
    types = dict(rows.dtypes)
    return rows.selectExpr(*(
        f"CAST({value.format(quoted(name))} AS {types[name]}) AS {quoted(name)}"
        if name == column
        else quoted(name)
        for name in rows.columns
    ))  # fmt: skip


def _if_it_fits(rows: DataFrame, column: str, value: str, where: str) -> str:
    """Write a number in the place of another where the column's type can hold it."""
    kind = dict(rows.dtypes)[column]
    return f"IF({where}, coalesce(TRY_CAST({value} AS {kind}), {{0}}), {{0}})"


def _altered(rows: DataFrame, model: Model) -> DataFrame:
    """Change the numbers of rows a little, as another partner of a join would."""
    for column in model.schema:
        if column.name not in model.key and is_numeric(column.dtype):
            rows = _with(
                rows, column.name, _if_it_fits(rows, column.name, "try_add({0}, 1)", "TRUE")
            )
    return rows


def _shifted(rows: DataFrame, model: Model, share: str) -> DataFrame:
    """Shift the time by two hours; of a model that knows days alone, that part of the rows by a day."""
    column = model.time_column or ""
    kind = dict(rows.dtypes)[column]
    moved = _with(rows, column, _later("{0}", kind, share))
    cell = cell_expression(column, kind, model.cadence)
    cells = rows.select(CELL_COLUMN).distinct()
    again = moved.drop(CELL_COLUMN).selectExpr("*", f"{cell} AS {CELL_COLUMN}")
    return again.join(cells, [CELL_COLUMN], "left_semi").select(*map(quoted, rows.columns))


def _later(time: str, kind: str, share: str) -> str:
    """Give a time two hours later, as SQL; of days, that part of the rows a day later."""
    if kind.startswith("timestamp"):
        return f"{time} + INTERVAL {_HOURS} HOURS"
    return f"IF(pmod({share}, 24) < {_HOURS}, date_add({time}, 1), {time})"
