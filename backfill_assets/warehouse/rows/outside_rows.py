"""Rows outside of a batch: a query's rows for cells that it was not asked for, or for no cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.errors import DeclarationError
from backfill_assets.intervals.text import counted
from backfill_assets.models.column import CELL_COLUMN
from backfill_assets.warehouse.files.cells import cell_number, number_expression, number_text
from backfill_assets.warehouse.rows.json_rows import as_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.model import Model


def refuse_outside(
    rows: DataFrame, model: Model, cells: Iterable[Interval], counts: Mapping[int | None, int]
) -> None:
    """Refuse rows that belong to none of a batch's cells.

    Args:
        rows: the batch's, with `_cell`.
        model: whose they are.
        cells: of the batch.
        counts: how many rows there are, by number of the cell.

    Raises:
        DeclarationError: rows belong to other cells.
        DeclarationError: rows belong to no cell, for their time column is NULL.
    """
    cadence = model.cadence
    if None in counts:
        example = _example(rows, f"{CELL_COLUMN} IS NULL", model)
        raise DeclarationError(
            found=f"the query of '{model.name}' gave {counted(counts[None], 'row')} whose time column "
            f"'{model.time_column or ''}' is NULL, for example {example}",
            expected="a value in every row, for it names the row's cell",
            do="Filter them out in the query, or correct the source",
        )
    inside = {cell_number(cadence, cell) for cell in cells}
    outside = sorted(cell for cell in counts if cell is not None and cell not in inside)
    if outside:
        strays = sum(counts[cell] for cell in outside)
        first, last = number_text(cadence, outside[0]), number_text(cadence, outside[-1])
        example = _example(rows, f"{number_expression(cadence)} = {outside[0]}", model)
        raise DeclarationError(
            found=f"the query of '{model.name}' gave {counted(strays, 'row')} outside the "
            f"batch's cells (cells {first} to {last}), for example {example}",
            expected="rows of the batch's cells only",
            do="Bound the query on the time column by its interval parameters",
        )


def _example(rows: DataFrame, where: str, model: Model) -> str:
    examples = as_json(rows.where(where), 1, model.shown)
    return examples[0] if examples else "(none)"
