"""A computed batch: files that no log names yet, which are audited and then published unchanged."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from backfill_assets.errors import BackfillAssetsError, RequestError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.text import counted
from backfill_assets.models.column import quoted
from backfill_assets.models.kind import IncrementalByUniqueKey
from backfill_assets.warehouse.files.cell_files import FOLDERS, rows_by_cell, whole_cells
from backfill_assets.warehouse.files.cells import cell_text
from backfill_assets.warehouse.files.commit import prepare_table, unwritten_cells, written_cells
from backfill_assets.warehouse.files.housekeeping import cells_touched
from backfill_assets.warehouse.files.layers import files_read
from backfill_assets.warehouse.files.log_entry import refuse_gone
from backfill_assets.warehouse.rows.conform import RowStamp, contract, result_rows, without_cells
from backfill_assets.warehouse.rows.doubles import refuse_doubles
from backfill_assets.warehouse.rows.inputs import compute
from backfill_assets.warehouse.rows.kept_rows import (
    KeptRowCounts,
    explaining_casts,
    only_in_history,
)
from backfill_assets.warehouse.rows.moves import (
    cells_moved_from,
    keys_in_other_cells,
    without_overtaken,
)
from backfill_assets.warehouse.rows.profile import Subject, empty_profiles, profile
from backfill_assets.warehouse.rows.samples import failing_rows
from backfill_assets.warehouse.spark.connect import release
from backfill_assets.warehouse.spark.spark_errors import explaining_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.audit import Audit
    from backfill_assets.models.content import CellProfile
    from backfill_assets.models.model import Model
    from backfill_assets.snapshots.batch import OpenBatch
    from backfill_assets.warehouse.files.cell_files import CellFile
    from backfill_assets.warehouse.files.commit import WrittenCells
    from backfill_assets.warehouse.files.tables import Table
    from backfill_assets.warehouse.log.ticket import FoundCommit, Ticket
    from backfill_assets.warehouse.rows.inputs import Input, RowsFrom
    from backfill_assets.warehouse.rows.kept_rows import History


_NONE: Mapping[Interval, int] = MappingProxyType({})


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
    """The files that a batch's cells shall consist of.

    Attributes:
        model: whose rows they are.
        cells: the batch's, and those that its rows move out of.
        moved: the latter alone.
        target: the table as it was when the rows were computed, layers included.
        inputs: the inputs that they were computed from.
        computed: the query's answer in its contract; cached where more than one query reads it.
        rows: the rows that the cells will hold, read from the files.
        written: the files.
        kept: rows that only history has, and whether they are carried over; None where not asked for.
        published: what people read of the model, for audits that compare with it.
    """

    model: Model
    cells: tuple[Interval, ...]
    moved: IntervalSet
    target: Table
    inputs: Mapping[str, Input]
    computed: DataFrame
    rows: DataFrame
    written: WrittenCells
    kept: KeptRowCounts | None = None
    published: Table | None = None

    def profile(self) -> tuple[CellProfile, ...]:
        """Measure rows, checksums and audits per cell, in one action.

        Raises:
            DeclarationError: rows belong to other cells, or to none.
            FilesGoneError: a file is gone, or not whole.
            RequestError: a cell's files do not hold the rows that were measured of it.
        """
        try:
            profiles = profile(self.rows, self._subject)
        except BackfillAssetsError as error:
            refuse_gone(self.target.path, self.written.files)
            raise error from error.__cause__
        self._refuse_mislaid(profiles)
        return profiles

    def _refuse_mislaid(self, profiles: Sequence[CellProfile]) -> None:
        rows = rows_by_cell(self.target.path, self.written.files)
        for measured in profiles:
            text = cell_text(self.model.cadence, measured.cell)
            if rows[text] != measured.content.rows:
                raise RequestError(
                    found=f"the audits saw {counted(measured.content.rows, 'row')} of the cell {text} of "
                    f"{self.target.path}, and the files that were written for it hold {rows[text]}. "
                    "Nothing was committed",
                    do="This is a defect: report it with the model's cadence and the settings of "
                    "Spark",
                )

    def failing_rows(self, audit: Audit) -> tuple[str, ...]:
        """Give a few rows that fail an audit."""
        return failing_rows(self.rows, audit, self._subject)

    def commit(
        self, ticket: Ticket, now: Table, unchanged: Mapping[Interval, int] = _NONE
    ) -> FoundCommit:
        """Replace the cells' files by these, in one commit.

        Args:
            ticket: what the commit says of itself.
            now: the target as it stands under the commit lock.
            unchanged: the number of rows of each cell whose table holds the same ones already: such
                a cell keeps its files.

        Raises:
            DoubleMeanwhileError: another commit has put a unique value into another cell.
            DeclarationError: a batch that committed meanwhile has put a key elsewhere.
            MovedMeanwhileError: the same of a model whose rows may move, or a batch has written a
                cell that they move out of.
            CommitLostError: another writer has taken the table over.
        """
        if now != self.target:
            # Other cells were committed since: unique values must still be in these cells alone.
            refuse_doubles(self.rows, self.model, self.cells, now, self._audited_at(now))
            moved = cells_moved_from(self.computed, self.model, self.cells, now)
            if moved or self._are_moved_cells_written(now) or self._carries_into_others(now):
                raise MovedMeanwhileError(self.model.name)
        spark = self.rows.sparkSession
        prepare_table(lambda: spark, self.model, ticket)
        kept = whole_cells(ticket.path, self.model.cadence, unchanged)
        with explaining_errors(ticket.path):
            return self.written.commit(*self._changed(kept), ticket)

    def _changed(self, kept: IntervalSet) -> tuple[set[str], list[CellFile]]:
        """Give the cells whose files change, and these files; those of a block change together."""
        texts = {cell: cell_text(self.model.cadence, cell) for cell in self.cells}
        every, changed = sorted(texts.values()), {texts[text] for text in texts if text not in kept}
        files: list[CellFile] = []
        others = [*self.written.files]
        while reached := [file for file in others if not changed.isdisjoint(file.may_hold(every))]:
            files += reached
            others = [file for file in others if file not in reached]
            changed.update(*(file.may_hold(every) for file in reached))
        return changed, files

    def _are_moved_cells_written(self, now: Table) -> bool:
        """Whether another batch wrote cells that rows move out of, before they were this one's."""
        if not self.moved:
            return False
        since = self._audited_at(now)
        if since is None:
            return True
        return bool(self.moved & cells_touched(self.model.cadence, now.path, since))

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
        return Subject(self.model, self.cells, self.target, self.inputs, self.published)


@dataclass(frozen=True)
class EmptyBatch:
    """Cells that will hold no row, so that no query is run.

    Attributes:
        model: whose they are.
        cells: which.
        target: the table as it was before, layers included.
        spark: gives a session; asked only where the table is new, and a column's type is nested.
        moved: no cell.
        kept: no row.
    """

    model: Model
    cells: tuple[Interval, ...]
    target: Table
    spark: Callable[[], SparkSession]
    moved: IntervalSet = field(default_factory=IntervalSet.empty)
    kept: KeptRowCounts | None = None

    def profile(self) -> tuple[CellProfile, ...]:
        """Give an empty profile per cell."""
        return empty_profiles(self.model, self.cells)

    def failing_rows(self, audit: Audit) -> tuple[str, ...]:  # noqa: ARG002 - the signature of `ComputedBatch`
        """Give no rows."""
        return ()

    def commit(
        self,
        ticket: Ticket,
        now: Table,  # noqa: ARG002 - the signature of `ComputedBatch`
        unchanged: Mapping[Interval, int] = _NONE,
    ) -> FoundCommit:
        """Remove the cells' files, in one commit.

        Raises:
            CommitLostError: another writer has taken the table over.
        """
        prepare_table(self.spark, self.model, ticket)
        cells = (cell for cell in self.cells if cell not in unchanged)
        with unwritten_cells(ticket.path, self.model.cadence) as written:
            return written.commit(
                {cell_text(self.model.cadence, cell) for cell in cells}, (), ticket
            )


def holds_kept_rows(model: Model, cells: Sequence[Interval], target: Table) -> bool:
    """Whether cells hold rows that stay although the query gave none for them."""
    if not (model.keeps_rows and target.exists):
        return False
    return any(read.files for read in files_read(model, target, IntervalSet.of(cells)))


@contextmanager
def computed_batch(  # noqa: PLR0913 - the parts of a batch
    session: SparkSession,
    model: Model,
    opened: OpenBatch,
    inputs: Mapping[str, Input],
    *,
    target: Table,
    now: datetime,
    rows_from: RowsFrom = compute,
    history: History | None = None,
    published: Table | None = None,
) -> Iterator[ComputedBatch]:
    """Compute a batch into files, and remove them at the end unless a commit was begun.

    Args:
        session: the batch's own.
        model: what it builds.
        opened: the batch, its inputs pinned.
        inputs: the same, by upstream name.
        target: the table as it stands, layers included.
        now: the instant that its rows are stamped with.
        rows_from: gives the rows: by default the model's query.
        history: the published table, whose kept rows are carried over or counted.
        published: what people read of the model, for audits that compare with it.
    """
    request = opened.request
    stamp = RowStamp(request.plan_id, request.batch_id, request.fingerprint, now)
    with explaining_errors(target.path), ExitStack() as stack:
        stack.callback(release, session)

        def cached(rows: DataFrame) -> DataFrame:
            stack.callback(rows.unpersist)
            return rows.cache()

        computed = contract(rows_from(session, model, request.interval, inputs), model)
        computed = without_cells(computed, model, request.stretches.between())
        computed = without_overtaken(computed, model, request.cells, target)
        if (
            history is not None
            or model.keeps_rows
            or isinstance(model.kind, IncrementalByUniqueKey)
        ):
            computed = cached(computed)  # the rows compared with it have queries of their own
        moved = cells_moved_from(computed, model, request.cells, target)
        cells = tuple(sorted((*request.cells, *moved)))
        historic = kept_rows = None
        if history is not None:
            with explaining_casts(model, history):
                historic = cached(only_in_history(computed, model, request.cells, target, history))
                kept_rows = KeptRowCounts.of(historic, model, carried=history.carried)
        carried = historic if kept_rows is not None and kept_rows.carried else None
        rows = result_rows(computed, model, request.cells, target, stamp, moved, carried)
        written = stack.enter_context(written_cells(rows, model, cells, target.path))
        rows = rows_written(session, rows.schema, written)
        yield ComputedBatch(
            model, cells, IntervalSet.of(moved), target, inputs, computed, rows, written, kept_rows,
            published,
        )  # fmt: skip


def rows_written(session: SparkSession, schema: StructType, written: WrittenCells) -> DataFrame:
    """Read the rows of files that no log names."""
    if not written.files:
        return session.createDataFrame([], schema)
    reader = session.read.schema(schema).options(**FOLDERS)
    rows = reader.parquet(f"{written.path.rstrip('/')}/{written.folder}")
    return rows.select(*map(quoted, schema.names))
