"""Source cells without a single row: wait, fail, or take them as empty, as the source declares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.execution.run_context import source_path
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.text import ranges_text
from backfill_assets.models.cells import cells_read, cells_reading
from backfill_assets.models.source import WhenEmpty
from backfill_assets.warehouse.source_rows import cells_with_rows
from backfill_assets.warehouse.tables import MissingTableError, head

if TYPE_CHECKING:
    from backfill_assets.execution.run_context import RunContext
    from backfill_assets.models.model import Model
    from backfill_assets.models.source import Source


class EmptySourceError(BackfillAssetsError):
    """A source has no rows where a required cell needs some, and declares that this is a fault."""

    def __init__(self, *, source: str, cells: str, model: str) -> None:
        self.source, self.cells, self.model = source, cells, model
        super().__init__(
            f"source '{source}' has no rows for {cells}, which '{model}' reads, and declares "
            "when_empty=fail; land the rows, or declare when_empty='wait' or 'accept'"
        )


def cells_without_rows(run: RunContext, model: Model, cells: IntervalSet) -> dict[str, IntervalSet]:
    """Find the model's cells that wait for rows of a source, per source.

    Raises:
        EmptySourceError: a source that declares ``fail`` has no rows for a cell that is read.
        MissingTableError: a source's table is absent, and the source doesn't declare ``wait``.
    """
    waiting: dict[str, IntervalSet] = {}
    for upstream in model.reads:
        source = run.graph.sources.get(upstream.name)
        if source is None or not cells:
            continue
        read = cells_read(model.cadence, upstream, source.cadence, cells, until=run.clock())
        lacking = read - _present(run, source, read)
        if lacking and source.when_empty is WhenEmpty.FAIL:
            found = ranges_text(source.cadence, lacking)
            raise EmptySourceError(source=source.name, cells=found, model=model.name)
        if lacking:
            held = cells_reading(model.cadence, upstream, source.cadence, lacking) & cells
            waiting[source.name] = held
    return waiting


def _present(run: RunContext, source: Source, read: IntervalSet) -> IntervalSet:
    path = source_path(run.data_root, source.path)
    if head(path) < 0:
        if source.when_empty is WhenEmpty.WAIT:
            return IntervalSet.empty()
        raise MissingTableError(name=source.name, path=path)
    if source.when_empty is WhenEmpty.ACCEPT:
        return read
    return cells_with_rows(run.spark(), path, source, read)
