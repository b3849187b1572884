"""A computed batch: its rows, cached between their computation, their audit and their commit."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.kind import IncrementalByUniqueKey
from backfill_assets.warehouse.cells import cell_of_text
from backfill_assets.warehouse.commit import commit_cells, merge_cells
from backfill_assets.warehouse.conform import RowStamp, contract, result_rows
from backfill_assets.warehouse.connect import release
from backfill_assets.warehouse.doubles import refuse_doubles
from backfill_assets.warehouse.housekeeping import cells_touched
from backfill_assets.warehouse.inputs import compute
from backfill_assets.warehouse.kept_rows import Kept, only_in_history
from backfill_assets.warehouse.moves import cells_moved_from, keys_in_other_cells
from backfill_assets.warehouse.profile import Subject, profile
from backfill_assets.warehouse.samples import failing_rows
from backfill_assets.warehouse.spark_errors import explaining

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.audit import Audit
    from backfill_assets.models.content import CellProfile
    from backfill_assets.models.model import Model
    from backfill_assets.snapshots.batch import OpenBatch
    from backfill_assets.warehouse.commit import Committed, Ticket
    from backfill_assets.warehouse.inputs import Input, RowsFrom
    from backfill_assets.warehouse.kept_rows import History
    from backfill_assets.warehouse.tables import Table


class MovedMeanwhileError(BackfillAssetsError):
    """Cells that rows of the batch move out of, or would, were written since it was computed."""

    def __init__(self, model: str) -> None:
        self.model = model
        super().__init__(
            f"another batch of '{model}' has meanwhile written cells that rows of this one move out "
            "of; nothing was written, run again"
        )


@dataclass(frozen=True)
class ComputedBatch:
    """The rows that a batch's cells shall hold.

    Attributes:
        model: whose rows they are.
        cells: the batch's, and those that its rows move out of.
        moved: the latter alone.
        target: the table as it was when the rows were computed, layers included.
        inputs: what they were computed from.
        computed: the query's answer in its contract, cached.
        rows: what the cells shall hold, cached.
        kept: rows that only history has, and what becomes of them here; None where none is asked about.
    """

    model: Model
    cells: tuple[Interval, ...]
    moved: IntervalSet
    target: Table
    inputs: Mapping[str, Input]
    computed: DataFrame
    rows: DataFrame
    kept: Kept | None = None

    def profile(self) -> tuple[CellProfile, ...]:
        """Measure rows, checksums and audits per cell, in one action."""
        return profile(self.rows, self._subject)

    def failing_rows(self, audit: Audit) -> tuple[str, ...]:
        """Give a few rows that fail an audit."""
        return failing_rows(self.rows, audit, self._subject)

    def commit(self, ticket: Ticket, now: Table) -> Committed:
        """Make the cells equal to the rows in one commit.

        Args:
            ticket: what the commit says of itself.
            now: the target as it stands under the commit lock.

        Raises:
            DoubleMeanwhileError: one has put a value elsewhere that must be single.
            KeyInAnotherCellError: a batch that committed meanwhile has put a key elsewhere.
            MovedMeanwhileError: the same, of a model whose rows may move; or one has written a cell
                that they move out of.
            CommitLostError: another writer has taken the table over.
        """
        if now != self.target:
            # Other cells were committed since: what must be single must still be in these cells alone.
            refuse_doubles(self.rows, self.model, self.cells, now, self._audited_at(now))
        if not isinstance(self.model.kind, IncrementalByUniqueKey):
            return commit_cells(self.rows, self.model, self.cells, ticket)
        if now != self.target:
            moved = cells_moved_from(self.computed, self.model, self.cells, now)
            if moved or self._are_moved_cells_written(now) or self._carries_into_others(now):
                raise MovedMeanwhileError(self.model.name)
        return merge_cells(self.rows, self.model, self.cells, ticket)

    def _are_moved_cells_written(self, now: Table) -> bool:
        """Whether another batch wrote cells that rows move out of, before they were this one's."""
        if not self.moved:
            return False
        since, cadence = self._audited_at(now), self.model.cadence
        return since is None or any(
            cell_of_text(cadence, text) in self.moved for text in cells_touched(now.path, since)
        )

    def _carries_into_others(self, now: Table) -> bool:
        """Whether another batch has computed, for another cell, a key that this one carries over."""
        if self.kept is None or not self.kept.counts:
            return False
        return bool(keys_in_other_cells(self.rows, self.model, self.cells, now))

    def _audited_at(self, now: Table) -> int | None:
        """Give the commit that the rows were audited at; None where tables under it moved as well."""
        audited = self.target.delta_version
        return audited if replace(now, delta_version=audited) == self.target else None

    @property
    def _subject(self) -> Subject:
        return Subject(self.model, self.cells, self.target, self.inputs)


@contextmanager
def computed_batch(  # noqa: PLR0913 - all that a batch is made of
    session: SparkSession,
    model: Model,
    opened: OpenBatch,
    inputs: Mapping[str, Input],
    *,
    target: Table,
    now: datetime,
    rows_from: RowsFrom = compute,
    history: History | None = None,
) -> Iterator[ComputedBatch]:
    """Compute a batch and keep its rows for as long as the context is open.

    Args:
        session: the batch's own.
        model: what it builds.
        opened: the batch, its inputs pinned.
        inputs: the same, by upstream name.
        target: the table as it stands, layers included.
        now: what its rows are stamped with.
        rows_from: where the rows come from: the query, unless told otherwise.
        history: where rows may be that only history has, and whether they are carried over.
    """
    request = opened.request
    stamp = RowStamp(request.plan_id, request.batch_id, request.fingerprint, now)
    with explaining(target.path), ExitStack() as cached:
        cached.callback(release, session)

        def kept(rows: DataFrame) -> DataFrame:
            cached.callback(rows.unpersist)
            return rows.cache()

        computed = kept(contract(rows_from(session, model, request.interval, inputs), model))
        moved = cells_moved_from(computed, model, request.cells, target)
        cells = tuple(sorted((*request.cells, *moved)))
        found = told = None
        if history is not None:
            found = kept(only_in_history(computed, model, request.cells, target, history))
            told = Kept.of(found, model, carried=history.carried)
        carried = found if told is not None and told.carried else None
        rows = result_rows(computed, model, request.cells, target, stamp, moved, carried)
        rows = rows if rows is computed else kept(rows)
        rows.count()  # fills the cache, so that audit and commit read it and time alone
        yield ComputedBatch(
            model, cells, IntervalSet.of(moved), target, inputs, computed, rows, told
        )
