"""Source cells without a single row: wait, fail, or take them as empty, as the source declares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.errors import BackfillAssetsError, RequestError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.text import ranges_text
from backfill_assets.models.cells import cells_read, cells_reading
from backfill_assets.models.source import WhenEmpty
from backfill_assets.snapshots.places import located
from backfill_assets.warehouse.files.tables import MissingTableError
from backfill_assets.warehouse.log.delta_log import head
from backfill_assets.warehouse.sources.source_rows import cells_with_rows
from backfill_assets.warehouse.spark.spark_errors import SparkLostError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.models.model import Model
    from backfill_assets.models.source import Source
    from backfill_assets.models.upstream import Upstream


class EmptySourceError(BackfillAssetsError):
    """A source has no rows where a required cell needs some, and declares that this is a fault."""

    def __init__(self, *, source: str, cells: str, model: str) -> None:
        self.source, self.cells, self.model = source, cells, model
        super().__init__(
            f"source '{source}' has no rows for {cells}, which '{model}' reads, and declares "
            "when_empty=fail; land the rows, or declare when_empty='wait' or 'accept'"
        )


def declared_otherwise(
    *, source: str, model: str, environment: str, to_plan: tuple[str, ...]
) -> RequestError:
    """Name the plan that ends it: of a model that relies on another declaration than others do."""
    return RequestError(
        found=f"'{model}' was built against a different declaration of source '{source}' than other models "
        f"of '{environment}', so it waits",
        do="Promote a plan that rebuilds every model whose declaration is not the one in the code: backfill "
        f"plan {environment} --select {','.join(to_plan)}",
    )


@dataclass(frozen=True, slots=True)
class WaitingCells:
    """Cells of a model that a source keeps from being filled.

    Attributes:
        source: which one.
        cells: the model's.
        error: why that is a fault; None when they just wait.
    """

    source: str
    cells: IntervalSet
    error: BackfillAssetsError | None = None


def cells_held(run: RunContext, model: Model, cells: IntervalSet) -> Iterator[WaitingCells]:
    """Find which of the model's cells can't be filled, because of which source."""
    for upstream in model.reads:
        source = run.graph.sources.get(upstream.name)
        if source is None or not cells:
            continue
        to_plan = run.misread.get(model.name, {}).get(source.name)
        if to_plan is not None:
            error = declared_otherwise(
                source=source.name,
                model=model.name,
                environment=_published_in(run),
                to_plan=to_plan,
            )
            yield WaitingCells(source.name, cells, error)
            continue
        try:
            yield from _held(run, model, upstream, source, cells)
        except SparkLostError:
            raise  # it says nothing of the source
        except BackfillAssetsError as error:  # no table, one that drifted, or a damaged one
            yield WaitingCells(source.name, cells, error)


def _published_in(run: RunContext) -> str:
    """Name the environment that plans are made for; a workspace is its plan's own."""
    follows = run.environment.follows if run.environment.is_workspace else None
    return follows or run.environment.name


def _held(
    run: RunContext, model: Model, upstream: Upstream, source: Source, cells: IntervalSet
) -> Iterator[WaitingCells]:
    read = cells_read(model.cadence, upstream, source.cadence, cells, until=run.until)
    lacking = read - _present(run, source, read)
    if not lacking:
        return
    waiting_cells = cells_reading(model.cadence, upstream, source.cadence, lacking) & cells
    error = None
    if source.when_empty is WhenEmpty.FAIL:
        missing = ranges_text(source.cadence, lacking)
        error = EmptySourceError(source=source.name, cells=missing, model=model.name)
    yield WaitingCells(source.name, waiting_cells, error)


def _present(run: RunContext, source: Source, read: IntervalSet) -> IntervalSet:
    """Give those of the source's cells that are there, by its own policy.

    Raises:
        MissingTableError: the table is absent, and the source doesn't declare ``wait``.
    """
    path = located(source.path, run.data_root)
    if head(path) < 0:
        if source.when_empty is WhenEmpty.WAIT:
            return IntervalSet.empty()
        raise MissingTableError(name=source.name, path=path)
    if source.when_empty is WhenEmpty.ACCEPT:
        return read
    ready_cells = run.store.sources.source_rows(source.name, path, read)  # where batches read it
    if ready_cells is not None:
        return ready_cells
    return cells_with_rows(run.spark(), path, source, read)
