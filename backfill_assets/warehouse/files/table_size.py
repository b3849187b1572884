"""Estimate the size of some cells of a table from its log, without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.intervals.grid import Unit
from backfill_assets.warehouse.files.file_spans import entries_of, file_of
from backfill_assets.warehouse.log.delta_log import ABSENT, CorruptTableError, head, opened_log

if TYPE_CHECKING:
    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.intervals.interval_set import IntervalSet

_BYTES = "size_bytes"


def source_bytes(
    path: str,
    *,
    column: str | None = None,
    cadence: Cadence | None = None,
    cells: IntervalSet | None = None,
    delta_version: int | None = None,
) -> int:
    """Estimate how many bytes of a table lie in some cells; 0 for a table that is not there.

    A file counts by the share of its own cells, as far as its partition or its statistics tell them;
    else as a whole.

    Args:
        path: of the Delta table.
        column: the time column, or `_cell` of a table of ours; None for one that has none.
        cadence: whose cells they are.
        cells: which; None for the whole table.
        delta_version: at which; None for now.

    Raises:
        CorruptTableError: the log is damaged.
    """
    if head(path) == ABSENT:
        return 0
    log = opened_log(path, delta_version)
    if column is None or cadence is None or cells is None or cadence.unit is Unit.WHOLE:
        return sum(int(file[_BYTES]) for file in entries_of(log, [_BYTES]))
    shares = (
        file[_BYTES] * _share(file_of(file, column, cadence).cells(cadence), cells)
        for file in entries_of(log)
    )
    return round(sum(shares))


def bytes_in(path: str, delta_version: int | None = None) -> int:
    """Give the size of a table's files; 0 where there is none, or none that can be read.

    Args:
        path: of the Delta table.
        delta_version: at which; None for now.
    """
    try:
        return source_bytes(path, delta_version=delta_version)
    except CorruptTableError:
        return 0


def _share(file_cells: IntervalSet | None, cells: IntervalSet) -> float:
    if file_cells is None:
        return 1.0
    return (file_cells & cells).seconds() / file_cells.seconds() if file_cells else 0.0
