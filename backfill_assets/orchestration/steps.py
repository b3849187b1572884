"""The parts of every step of an asset: read its targeted cells, and end with the audits' results."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import dagster as dg

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.model import Model
from backfill_assets.orchestration.partitions import cells_of, partitions_of
from backfill_assets.orchestration.released_runs import CELLS_TAG, MODEL_TAG, cells_of_text
from backfill_assets.orchestration.reporting import SILENT, Reporter


@contextmanager
def as_run_failure() -> Iterator[None]:
    """Fail a run with the text of an error of ours, without a retry.

    Raises:
        dagster.Failure: an error of ours was raised.
    """
    try:
        yield
    except BackfillAssetsError as error:
        raise dg.Failure(description=str(error), allow_retries=False) from error


def targeted_cells(context: dg.AssetExecutionContext, model: Model) -> IntervalSet:
    """Read the cells that the run targets: all of its partitions, or those that a release names."""
    if partitions_of(model.cadence) is None:
        return cells_of(model.cadence, [])
    cells, tags = cells_of(model.cadence, list(context.partition_keys)), context.run.tags
    if CELLS_TAG in tags and tags.get(MODEL_TAG) == model.name:
        return cells & cells_of_text(model.cadence, tags[CELLS_TAG])
    return cells


def finish_step(reporter: Reporter, metadata: Mapping[str, Any]) -> Iterator[Any]:
    """Give the results of the audits, then fail if cells lack, else end.

    Raises:
        dagster.Failure: cells that were asked for are still not ready; it says which and why.
    """
    yield from reporter.check_results()
    if reporter.lacking:
        raise dg.Failure(description="; ".join(reporter.lacking), allow_retries=False)
    yield dg.Output(None, metadata={**SILENT, **metadata})
