"""Kept rows: published rows of a cell whose keys its computation no longer gives.

Their source has lost them, so only history holds them. A workspace's batch either carries them over,
and they are audited and committed with its cells, or leaves them out and counts them.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.errors import RequestError, one_line
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.text import counted
from backfill_assets.models.column import CELL_COLUMN, all_given, quoted
from backfill_assets.warehouse.files.cells import number_expression, number_text
from backfill_assets.warehouse.files.layers import rows_of
from backfill_assets.warehouse.files.stored_columns import stored_columns
from backfill_assets.warehouse.spark.spark_errors import error_of_ours

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.model import Model
    from backfill_assets.warehouse.files.tables import Table

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class History:
    """The published table of a model that a workspace builds.

    Attributes:
        table: where it is read, layers included.
        carried: whether its kept rows are taken over; False: they are left out.
    """

    table: Table
    carried: bool


@dataclass(frozen=True, slots=True)
class KeptRowCounts:
    """How many kept rows a batch found, by cell as text, and whether it carried them over.

    Attributes:
        counts: rows by cell; cells without any are left out.
        carried: whether they were taken over.
    """

    counts: Mapping[str, int]
    carried: bool

    @classmethod
    def of(cls, rows: DataFrame, model: Model, *, carried: bool) -> KeptRowCounts:
        """Count rows by cell."""
        number = number_expression(model.cadence)
        found = (
            rows.selectExpr(f"{number} AS cell").groupBy("cell").count().orderBy("cell").collect()
        )
        return cls({number_text(model.cadence, row[0]): row[1] for row in found}, carried)

    @property
    def rows(self) -> int:
        """All of them."""
        return sum(self.counts.values())

    @property
    def words(self) -> str:
        """Write their number by cell."""
        cells = [f"{cell} ({count:,})" for cell, count in self.counts.items()]
        more = f" and {counted(len(cells) - _SHOWN, 'more cell')}" if len(cells) > _SHOWN else ""
        done = "carried over" if self.carried else "dropped"
        listed = f": {', '.join(cells[:_SHOWN])}{more}" if cells else ""
        return f"{counted(self.rows, 'kept row')} {done}{listed}"


@contextmanager
def explaining_casts(model: Model, history: History) -> Iterator[None]:
    """Say of published values that the declared types can't hold that they are those of kept rows.

    Raises:
        RequestError: there are some, and they are to be taken over.
    """
    try:
        yield
    except Exception as error:
        if not history.carried or error_of_ours(error) is not error:
            raise
        raise RequestError(
            found=f"kept rows of '{model.name}' can't be taken over into its columns as they are declared now: "
            f"{one_line(error)}. Nothing was published",
            do="Plan it with --kept-rows drop, or declare types that hold the published values",
        ) from error


def only_in_history(
    computed: DataFrame, model: Model, cells: Sequence[Interval], target: Table, history: History
) -> DataFrame:
    """Give the published rows of these cells whose keys neither the computation nor the target has.

    A key that the target holds in any cell was computed before, so it belongs to the new logic. A row whose key is NULL
    can't be told from a computed one, so it is none of these.

    Args:
        computed: the answer of `conform.contract`.
        model: whose rows they are, as it is built now; columns that the published table lacks are NULL.
        cells: that were computed.
        target: the workspace's table, layers included.
        history: the published table.

    Returns:
        Rows with every stored column and `_cell`, of the model's types; of rows that are left out, the key and `_cell`.
    """
    spark = computed.sparkSession
    columns = stored_columns(model)
    # A published key that the new type can't hold equals no computed one.
    cast = "CAST" if history.carried else "TRY_CAST"
    if not history.carried:
        columns = {name: columns[name] for name in model.key}
    typed = [
        f"{cast}({quoted(name)} AS {dtype}) AS {quoted(name)}" for name, dtype in columns.items()
    ]
    rows = rows_of(spark, model, history.table, IntervalSet.of(cells)).where(all_given(model.key))
    rows = rows.selectExpr(*typed, CELL_COLUMN)
    keys = [quoted(name) for name in model.key]
    current_keys = computed.select(*keys)
    if target.exists:
        current_keys = current_keys.unionByName(rows_of(spark, model, target).select(*keys))
    return rows.join(current_keys, list(model.key), "left_anti").select(
        *map(quoted, columns), CELL_COLUMN
    )
