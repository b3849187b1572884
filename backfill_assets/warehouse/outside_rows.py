"""Rows outside of a batch: a query's rows for cells that it was not asked for, or for no cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.models.model import CELL_COLUMN
from backfill_assets.warehouse.cells import cell_number, number_expression, number_text
from backfill_assets.warehouse.json_rows import as_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.model import Model


class RowsOutsideBatchError(BackfillAssetsError):
    """A query gave rows that belong to none of the batch's cells."""

    def __init__(self, *, model: str, rows: int, first: str, last: str, example: str) -> None:
        self.model, self.rows, self.example = model, rows, example
        self.first, self.last = first, last
        super().__init__(
            f"the query of '{model}' gave {rows} rows outside the batch's cells "
            f"(cells {first} to {last}), for example {example}; expected rows of the batch's "
            "cells only. Bound the query on the time column by its interval parameters"
        )


class NoTimeError(RowsOutsideBatchError):
    """A query gave rows whose time column is NULL, so that they have no cell."""

    def __init__(self, *, model: str, column: str, rows: int, example: str) -> None:
        super().__init__(model=model, rows=rows, first="NULL", last="NULL", example=example)
        self.column = column

    def __str__(self) -> str:
        return (
            f"the query of '{self.model}' gave {self.rows} rows whose time column "
            f"'{self.column}' is NULL, for example {self.example}; expected a value in every row, "
            "for it names the row's cell. Filter them out in the query, or correct the source"
        )


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
        RowsOutsideBatchError: rows belong to other cells.
        NoTimeError: rows belong to no cell, for their time column is NULL.
    """
    cadence = model.cadence
    if None in counts:
        raise NoTimeError(
            model=model.name,
            column=model.time_column or "",
            rows=counts[None],
            example=_example(rows, f"{CELL_COLUMN} IS NULL"),
        )
    inside = {cell_number(cadence, cell) for cell in cells}
    outside = sorted(cell for cell in counts if cell is not None and cell not in inside)
    if outside:
        raise RowsOutsideBatchError(
            model=model.name,
            rows=sum(counts[cell] for cell in outside),
            first=number_text(cadence, outside[0]),
            last=number_text(cadence, outside[-1]),
            example=_example(rows, f"{number_expression(cadence)} = {outside[0]}"),
        )


def _example(rows: DataFrame, where: str) -> str:
    found = as_json(rows.where(where), 1)
    return found[0] if found else "(none)"
