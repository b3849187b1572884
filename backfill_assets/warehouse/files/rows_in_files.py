"""The rows of some cells, read from the files of their tables without Spark."""

from __future__ import annotations

from datetime import UTC, date
from typing import TYPE_CHECKING

from backfill_assets.intervals.cadence import WHOLE_CELL
from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.zones import zone_of
from backfill_assets.models.model import CELL_COLUMN
from backfill_assets.warehouse.files.cells import cell_text
from backfill_assets.warehouse.files.layers import cells_by_table
from backfill_assets.warehouse.spark.spark_errors import NeedsSparkError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    import pyarrow as pa
    import pyarrow.compute as pc

    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.model import Model
    from backfill_assets.warehouse.files.tables import Table


def rows_in_files(
    model: Model, table: Table, cells: IntervalSet, names: Sequence[str], most: int
) -> Iterator[pa.Table]:
    """Read columns of the rows of some cells, one Arrow table per table that answers for some.

    Args:
        model: whose rows they are.
        table: what is read, layers included.
        cells: whose rows.
        names: of the columns; those that a table lacks are left out of its rows.
        most: how many rows at most, of all tables together.

    Raises:
        NeedsSparkError: there are more rows, or the files can't be read here.
    """
    from deltalake import DeltaTable  # noqa: PLC0415 - only readers of rows need it
    from deltalake.exceptions import DeltaError  # noqa: PLC0415
    from pyarrow.dataset import ParquetReadOptions  # noqa: PLC0415
    from pyarrow.lib import ArrowException  # noqa: PLC0415

    options = ParquetReadOptions(coerce_int96_timestamp_unit="us")  # as Spark reads them
    left = most
    for layer, inside in cells_by_table(table, cells):
        try:
            at_pin = DeltaTable(layer.path, version=layer.delta_version)
            held = at_pin.to_pyarrow_dataset(parquet_read_options=options)
            chosen = condition_on_cells(model, inside)
            left -= held.count_rows(filter=chosen)
            if left < 0:
                raise NeedsSparkError(layer.path, f"there are more than {most:,} rows")
            there = [name for name in names if name in held.schema.names]
            rows = held.to_table(columns=there, filter=chosen)
        except (OSError, ValueError, OverflowError, DeltaError, ArrowException) as error:
            raise NeedsSparkError(layer.path, str(error)) from error
        yield rows


def condition_on_cells(model: Model, cells: IntervalSet) -> pc.Expression:
    """Choose the rows of some cells by `_cell`, as `cells.cells_predicate` does."""
    import pyarrow.compute as pc  # noqa: PLC0415

    cadence, zone = model.cadence, zone_of(model.cadence.tz)

    def at(instant: datetime) -> pc.Expression:
        if cadence.unit.is_subday:
            return pc.scalar(instant.astimezone(UTC))
        return pc.scalar(instant.astimezone(zone).date())

    field = pc.field(CELL_COLUMN)
    if cadence.unit is Unit.WHOLE:
        return field == pc.scalar(date.fromisoformat(cell_text(cadence, WHOLE_CELL)))
    chosen = [(field >= at(span.start)) & (field < at(span.end)) for span in cells]
    condition = chosen[0]
    for other in chosen[1:]:
        condition |= other
    return condition
