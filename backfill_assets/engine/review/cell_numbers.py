"""Numbers of cells as they were held: a column's exact sum, or the rows, from recorded versions."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

from backfill_assets.errors import RequestError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.text import ranges_text
from backfill_assets.models.column import is_numeric
from backfill_assets.warehouse.files.cell_files import files_at, missing_files
from backfill_assets.warehouse.files.cells import cell_text
from backfill_assets.warehouse.files.tables import Table, delta_schema
from backfill_assets.warehouse.rows.totals import sums_by_cell

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.engine.review.number_history import RecordedCells
    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.model import Model
    from backfill_assets.planning.review.number_changes import HeldContent

ROWS = "*"
"""The name under which rows are counted rather than a column summed."""


@dataclass
class CellNumbers:
    """The numbers of some cells; equal contents are read once.

    Attributes:
        run: the environment's.
        model: whose cells.
        column: the column that is summed, or `ROWS`.
        recorded: what tables held in the cells.
        unread: cells that can't be read as they were held, by why.
    """

    run: RunContext
    model: Model
    column: str
    recorded: RecordedCells
    unread: dict[str, IntervalSet] = field(default_factory=dict[str, IntervalSet])
    _numbers: dict[object, Decimal] = field(default_factory=dict[object, Decimal])
    _types: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    _found: bool = False

    def read(self, wanted: Iterable[tuple[Interval, HeldContent]]) -> None:
        """Read the numbers of cells as they were held; equal contents are read once.

        Raises:
            RequestError: no table has the column, it is not numeric, or a value of it has no sum.
        """
        if self.column == ROWS:
            return
        places: dict[object, list[tuple[Interval, HeldContent]]] = defaultdict(list)
        for cell, held in dict.fromkeys(wanted):
            places[self._key(cell, held)].append((cell, held))
        remaining = {key: several[::-1] for key, several in places.items()}  # the newest first
        any_to_read = bool(remaining)
        while remaining:
            tables: dict[tuple[str, int], list[tuple[object, Interval]]] = defaultdict(list)
            for key, several in remaining.items():
                cell, held = several.pop(0)
                tables[held.version, self._delta_version(held, cell)].append((key, cell))
            for (version, delta_version), cells in tables.items():
                self._read(version, delta_version, cells)
            remaining = {
                key: several
                for key, several in remaining.items()
                if several and key not in self._numbers
            }
        if any_to_read and not self._found and self.column not in _names(self.model):
            raise _no_column(self.model, self.column)

    def number(self, cell: Interval, held: HeldContent) -> Decimal | None:
        """Give the number of a cell as it was held; None where it can't be read."""
        if self.column == ROWS:
            return None if held.content is None else Decimal(held.content.rows)
        return self._numbers.get(self._key(cell, held))

    def _key(self, cell: Interval, held: HeldContent) -> object:
        """Give what decides the number: equal keys, equal numbers.

        Checksums are those of one type: 15000 as a bigint and 150.00 as a decimal have the same.
        """
        content, dtype = held.content, self._dtype(held.fingerprint)
        if content is None or dtype is None or self.column not in content.columns:
            return cell, held.version, held.since, held.batch_id
        return cell, content.rows, content.key, content.columns[self.column], dtype

    def _dtype(self, fingerprint: str) -> str | None:
        """Give the column's type in a snapshot; None where that is not known."""
        if fingerprint not in self._types:
            model = self.run.store.snapshots.model(fingerprint)
            types = {column.name: column.dtype for column in (model.schema if model else ())}
            self._types[fingerprint] = types.get(self.column)
        return self._types[fingerprint]

    def _delta_version(self, held: HeldContent, cell: Interval) -> int:
        if held.since is None:
            return -1
        last = self.recorded.last_read(held, cell)
        return self.run.store.versions.known_head(held.version) if last is None else last

    def _read(
        self, version: str, delta_version: int, cells_by_key: list[tuple[object, Interval]]
    ) -> None:
        keys = {cell: key for key, cell in cells_by_key}
        if not self.run.store.versions.is_known(version):
            return self._leave_out(f"table {version} was deleted by `backfill gc`", keys)
        if delta_version < 0:
            return self._leave_out(f"the cells of table {version} were cut otherwise", keys)
        path = self.run.store.versions.version_path(version)
        types = dict(delta_schema(path, delta_version))
        if self.column not in types:
            self._numbers.update(dict.fromkeys(keys.values(), Decimal(0)))
            return None
        self._found = True
        if not is_numeric(types[self.column]):
            raise _no_sum(self.model, self.column, types[self.column])
        gone = self._gone(path, delta_version, keys)
        self._leave_out(f"files of table {version} were deleted", gone)
        present_cells = IntervalSet.of(cell for cell in keys if cell not in gone)
        table = Table(path, delta_version)
        sums = (
            sums_by_cell(self.run.spark, self.model, table, self.column, present_cells)
            if present_cells
            else {}
        )
        for cell, total in sums.items():
            if total is None:
                raise _has_no_sum(self.model, self.column, cell)
            self._numbers[keys[cell]] = total
        return None

    def _gone(self, path: str, delta_version: int, cells: Iterable[Interval]) -> set[Interval]:
        """Give those of some cells of which a file is not there any more."""
        by_text = {cell_text(self.model.cadence, cell): cell for cell in cells}
        files, texts = files_at(path, delta_version, by_text), sorted(by_text)
        missing = {*missing_files(path, files)}
        lost = (text for file in files if file.name in missing for text in file.may_hold(texts))
        return {by_text[text] for text in lost}

    def _leave_out(self, why: str, cells: Iterable[Interval]) -> None:
        left_cells = IntervalSet.of(cells)
        if left_cells:
            self.unread[why] = self.unread.get(why, IntervalSet.empty()) | left_cells


def _names(model: Model) -> list[str]:
    return [column.name for column in model.schema]


def _no_column(model: Model, column: str) -> RequestError:
    return RequestError(
        found=f"'{model.name}' has no column '{column}', and no table of it that was published had one; "
        f"it has {', '.join(_names(model))}",
        do="name one of them, or '*' for the number of rows",
    )


def _no_sum(model: Model, column: str, dtype: str) -> RequestError:
    return RequestError(
        found=f"column '{column}' of '{model.name}' is {dtype}, which has no sum",
        do="name a numeric column, or '*' for the number of rows",
    )


def _has_no_sum(model: Model, column: str, cell: Interval) -> RequestError:
    cell_name = ranges_text(model.cadence, IntervalSet.of([cell]))
    return RequestError(
        found=f"column '{column}' of '{model.name}' has no sum in {cell_name}: a value is NaN, infinite or too "
        "large",
        do="name another column, or '*' for the number of rows",
    )
