"""The columns of a source that a plan reads: whether they are there, and hold a value in each cell."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from backfill_assets.intervals.interval_set import IntervalSet

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, slots=True)
class FileNulls:
    """What is known of the NULLs of one file.

    Attributes:
        cells: from its earliest to its latest row; None where that is not known.
        rows: how many it has; None where that is not known.
        nulls: by column, how many of them are NULL there; None where that is not known.
        one_cell: whether all its rows lie in one cell.
    """

    cells: IntervalSet | None
    rows: int | None
    nulls: Mapping[str, int | None]
    one_cell: bool = False


@dataclass(frozen=True, slots=True)
class SourceColumns:
    """How far the columns that a plan reads of a source are filled.

    Attributes:
        differing: by column, what the table has in its place, in words.
        without: by column, the cells in which no row has a value.
        untold: by column, the cells of which the files do not tell.
    """

    differing: Mapping[str, str] = field(default_factory=dict[str, str])
    without: Mapping[str, IntervalSet] = field(default_factory=dict[str, IntervalSet])
    untold: Mapping[str, IntervalSet] = field(default_factory=dict[str, IntervalSet])


def filled(
    files: Iterable[FileNulls],
    columns: Iterable[str],
    cells: IntervalSet,
    differing: Mapping[str, str],
) -> SourceColumns:
    """Tell from the NULLs of its files which columns of a source have no value in which cells.

    Args:
        files: every file of the table.
        columns: which are read.
        cells: of which; those that hold rows.
        differing: the columns that the table lacks, or has with another type; they are not looked at.
    """
    all_files = [*files]
    without: dict[str, IntervalSet] = {}
    untold: dict[str, IntervalSet] = {}
    for column in columns:
        if column not in differing:
            without[column], untold[column] = _column(all_files, column, cells)
    return SourceColumns(differing, _some(without), _some(untold))


def _column(
    files: Iterable[FileNulls], column: str, cells: IntervalSet
) -> tuple[IntervalSet, IntervalSet]:
    """Give the cells in which a column has no value, and those of which the files do not tell.

    A file that reaches over several cells may have rows in none of those between its first and its last.
    """
    spans = {fill: IntervalSet.empty() for fill in _Fill}
    for file in files:
        if file.rows != 0:
            spans[_fill(file, column)] |= cells if file.cells is None else file.cells & cells
    maybe, unknown = spans[_Fill.FULL], spans[_Fill.UNKNOWN]
    without = spans[_Fill.VOID] - spans[_Fill.SOME] - maybe - unknown
    return without, (unknown | (maybe & spans[_Fill.VOID])) - spans[_Fill.SOME]


class _Fill(Enum):
    """What a file says of a column in the cells that it reaches over."""

    VOID = "no row has a value"
    SOME = "a row of its only cell has a value"
    FULL = "each row has a value, whichever cells they lie in"
    UNKNOWN = "some rows have one, or it is not known"


def _fill(file: FileNulls, column: str) -> _Fill:
    nulls = file.nulls.get(column)
    if nulls is None:
        return _Fill.UNKNOWN
    if nulls == file.rows:
        return _Fill.VOID
    if file.one_cell and file.rows is not None:
        return _Fill.SOME
    return _Fill.UNKNOWN if nulls else _Fill.FULL


def _some(cells: Mapping[str, IntervalSet]) -> dict[str, IntervalSet]:
    return {column: column_cells for column, column_cells in cells.items() if column_cells}
