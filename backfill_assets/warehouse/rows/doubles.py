"""Find doubles: values that must be unique, and that a later commit has put into another cell.

Uniqueness is audited against the table as it was before a batch computed. Commits to other cells since
then are checked again under the commit lock: only the key columns, and only the cells whose files were
added or removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.models.audit import Severity, Unique
from backfill_assets.models.audits_of import audits_of
from backfill_assets.models.kind import IncrementalByUniqueKey
from backfill_assets.warehouse.files.cells import cells_predicate, number_text
from backfill_assets.warehouse.files.housekeeping import cells_touched
from backfill_assets.warehouse.rows.moves import clashes_with, rows_elsewhere

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.model import Model
    from backfill_assets.warehouse.files.tables import Table
    from backfill_assets.warehouse.rows.moves import Clash


class DoubleMeanwhileError(BackfillAssetsError):
    """Rows hold a unique value that another cell has received since they were audited."""

    def __init__(self, model: Model, audit: Unique, clashes: Sequence[Clash]) -> None:
        self.model, self.audit = model.name, audit.name
        self.cells = tuple(number_text(model.cadence, clash.cell) for clash in clashes)
        super().__init__(
            f"'{model.name}' got values of {', '.join(audit.columns)} in the cells "
            f"{', '.join(self.cells)} since these rows were audited, and they hold the same ones, for "
            f"example {clashes[0].key}; expected each once ({audit.name}). Nothing was written. Run "
            "again, and correct the source where the audit then fails"
        )


def may_be_twice(model: Model) -> bool:
    """Whether a unique value can be in two cells: not if its columns contain the time column."""
    unique = [audit.columns for audit in _unique(model)]
    if isinstance(model.kind, IncrementalByUniqueKey):
        unique.append(tuple(model.key))
    time = model.time_column
    return time is not None and any(time not in columns for columns in unique)


def refuse_doubles(
    rows: DataFrame, model: Model, cells: Sequence[Interval], table: Table, since: int | None
) -> None:
    """Refuse rows with a unique value that another cell has received meanwhile.

    If the columns contain the time column, no row is read: equal values are then in one cell.

    Args:
        rows: that are to be committed.
        model: whose they are.
        cells: that the commit replaces.
        table: as it stands under the commit lock.
        since: the delta_version that the rows were audited against: only cells that were committed
            after it are read; None for every other cell.

    Raises:
        DoubleMeanwhileError: there is one.
    """
    elsewhere = [
        (audit, others)
        for audit in _unique(model)
        if (others := rows_elsewhere(rows.sparkSession, model, cells, table, audit.columns))
        is not None
    ]
    in_touched = None
    if elsewhere and since is not None:
        touched = cells_touched(model.cadence, table.path, since)
        if not touched:
            return
        in_touched = cells_predicate(model.cadence, touched)
    for audit, others in elsewhere:
        compared = others if in_touched is None else others.where(in_touched)
        if clashes := clashes_with(rows, compared, model, audit.columns, table.path):
            raise DoubleMeanwhileError(model, audit, clashes)


def _unique(model: Model) -> Iterator[Unique]:
    """Yield the blocking audits of uniqueness, but that of the key, which a merge checks itself."""
    for audit in audits_of(model):
        if not isinstance(audit, Unique) or audit.severity is not Severity.BLOCKING:
            continue
        merged = isinstance(model.kind, IncrementalByUniqueKey)
        if not (merged and set(audit.columns) == set(model.key)):
            yield audit
